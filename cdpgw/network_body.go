package cdpgw

import (
	"context"
	"encoding/base64"
	"errors"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/natscope/natscope/store/replica"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
)

// maxBodyMatches is how many lines a search in one body returns.
const maxBodyMatches = 1000

type requestParams struct {
	RequestID RequestID `json:"requestId"`
}

type responseBodyResult struct {
	Body          string `json:"body"`
	Base64Encoded bool   `json:"base64Encoded"`
}

type postDataResult struct {
	PostData      string `json:"postData"`
	Base64Encoded bool   `json:"base64Encoded"`
}

// networkGetResponseBody returns what was captured of a response. It waits for
// the end of one that is still on its way.
func (s *session) networkGetResponseBody(p requestParams) (any, error) {
	fetch, err := s.responseBody(p.RequestID)
	if err != nil {
		return nil, err
	}
	return later(func(ctx context.Context) (any, error) {
		data, err := fetch(ctx)
		if err != nil {
			return nil, err
		}
		text, encoded := bodyText(data)
		return responseBodyResult{Body: text, Base64Encoded: encoded}, nil
	}), nil
}

// responseBody returns what reads the body of a response, without locks.
func (s *session) responseBody(id RequestID) (func(context.Context) ([]byte, error), error) {
	src, r, err := s.request(id)
	if err != nil {
		return nil, err
	}
	if r.Response == nil && r.Ending != network.Running {
		return nil, failf("No data found for resource with given identifier: no response came.")
	}
	if emptyResponse(r) {
		return func(context.Context) ([]byte, error) { return nil, nil }, nil
	}
	running := r.Ending == network.Running
	return s.readBody(s.body(src, r, subjects.ResponseBody), running, "The response is still being received; its body is shown when it ends."), nil
}

// emptyResponse reports whether it is known that a response has no body.
func emptyResponse(r *network.Request) bool {
	if r.End != nil {
		return r.End.Bytes == 0 && r.End.Captured == 0 && !r.End.Truncated
	}
	return r.Response != nil && !r.Response.Value.HasBody && r.Ending != network.Running
}

// readBody reads a body within the query deadline; waiting is the answer when the deadline passes.
func (s *session) readBody(subject subjects.BodySubject, running bool, waiting string) func(context.Context) ([]byte, error) {
	state, wait := s.gateway.state, s.gateway.limits.Query
	return func(ctx context.Context) ([]byte, error) {
		ctx, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		var body replica.Body
		err := begun(ctx, running, func() (err error) {
			body, err = state.Body(ctx, subject)
			return err
		})
		if errors.Is(err, context.DeadlineExceeded) && running {
			return nil, failf("%s", waiting)
		}
		return body.Data, err
	}
}

// networkGetRequestPostData returns what was captured of a request's body.
func (s *session) networkGetRequestPostData(p requestParams) (any, error) {
	src, r, err := s.request(p.RequestID)
	if err != nil {
		return nil, err
	}
	if !r.Start.Value.HasBody || r.BodyEnd != nil && r.BodyEnd.Value.Captured == 0 {
		return nil, failf("No post data available for the request")
	}
	fetch := s.readBody(s.body(src, r, subjects.RequestBody), r.BodyEnd == nil, "The request body is still being sent; it is shown when it ends.")
	return later(func(ctx context.Context) (any, error) {
		data, err := fetch(ctx)
		if errors.Is(err, replica.ErrNoBody) {
			return nil, failf("No post data available for the request")
		}
		if err != nil {
			return nil, err
		}
		text, encoded := bodyText(data)
		return postDataResult{PostData: text, Base64Encoded: encoded}, nil
	}), nil
}

// bodyText returns bytes as text if that is lossless, and as base64 if not.
func bodyText(data []byte) (text string, encoded bool) {
	if utf8.Valid(data) {
		return string(data), false
	}
	return base64.StdEncoding.EncodeToString(data), true
}

type searchBodyParams struct {
	RequestID     RequestID `json:"requestId"`
	Query         string    `json:"query"`
	CaseSensitive bool      `json:"caseSensitive"`
	IsRegex       bool      `json:"isRegex"`
}

type bodyMatch struct {
	LineNumber  int    `json:"lineNumber"`
	LineContent string `json:"lineContent"`
}

// networkSearchInResponseBody finds lines of a response. The body of a running
// request is not waited for: a search over all requests must end.
func (s *session) networkSearchInResponseBody(p searchBodyParams) (any, error) {
	pattern := p.Query
	if !p.IsRegex {
		pattern = regexp.QuoteMeta(pattern)
	}
	if !p.CaseSensitive {
		pattern = "(?i)" + pattern
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, failf("The regular expression cannot be read: %v", err)
	}
	_, r, err := s.request(p.RequestID)
	if err != nil {
		return nil, err
	}
	none := map[string][]bodyMatch{"result": {}}
	fetch, err := s.responseBody(p.RequestID)
	if err != nil || r.Ending == network.Running {
		return none, nil
	}
	return later(func(ctx context.Context) (any, error) {
		data, err := fetch(ctx)
		if err != nil || !utf8.Valid(data) {
			return none, nil
		}
		return map[string][]bodyMatch{"result": grep(re, string(data))}, nil
	}), nil
}

func grep(re *regexp.Regexp, text string) []bodyMatch {
	out := []bodyMatch{}
	for i, line := range strings.Split(text, "\n") {
		if line = strings.TrimSuffix(line, "\r"); re.MatchString(line) {
			if out = append(out, bodyMatch{i, line}); len(out) == maxBodyMatches {
				break
			}
		}
	}
	return out
}

// bodyPause is how long to wait before asking again for a body that has not begun.
const bodyPause = 200 * time.Millisecond

// begun reads a body with read. While the request is running, no body means that
// its first bytes are not there yet, so it asks again until ctx ends.
func begun(ctx context.Context, running bool, read func() error) error {
	for {
		err := read()
		if !running || !errors.Is(err, replica.ErrNoBody) {
			return err
		}
		pause := time.NewTimer(bodyPause)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return ctx.Err()
		}
	}
}
