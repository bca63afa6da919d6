package cdpgw

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/natscope/natscope/store/bodyview"
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

// networkGetResponseBody returns what was captured of a response, decoded. It
// waits for the end of one that is still on its way. The protocol cannot say that
// a body is cut, so its text does.
func (s *session) networkGetResponseBody(p requestParams) (any, error) {
	fetch, err := s.responseBody(p.RequestID)
	if err != nil {
		return nil, err
	}
	return later(func(ctx context.Context) (any, error) {
		v, err := fetch(ctx)
		if err != nil {
			return nil, err
		}
		text, encoded := bodyview.Text(v.data, v.cut)
		if !encoded {
			text += v.note
		}
		return responseBodyResult{Body: text, Base64Encoded: encoded}, nil
	}), nil
}

// shownBody is a body as a person reads it.
type shownBody struct {
	data []byte
	// cut says that data is only the beginning; note says it in words, if the rest was not captured.
	cut  bool
	note string
}

// fetchBody reads a body, without locks.
type fetchBody func(context.Context) (shownBody, error)

// responseBody returns what reads the body of a response.
func (s *session) responseBody(id RequestID) (fetchBody, error) {
	src, r, err := s.request(id)
	if err != nil {
		return nil, err
	}
	if r.Response == nil && r.Ending != network.Running {
		return nil, failf("No data found for resource with given identifier: no response came.")
	}
	if emptyResponse(r) {
		return func(context.Context) (shownBody, error) { return shownBody{}, nil }, nil
	}
	redacted := r.End != nil && r.End.Redacted
	return s.readBody(bodyQuestion{
		subject: s.body(src, r, subjects.ResponseBody), running: r.Ending == network.Running, redacted: redacted, encodings: encodingsOf(r),
		limit: s.gateway.limits.ResponseBodyBytes, waiting: "The response is still being received; its body is shown when it ends.",
	}), nil
}

// encodingsOf returns the content encodings of a response.
func encodingsOf(r *network.Request) []string {
	if r.Response == nil {
		return nil
	}
	var out []string
	for _, line := range r.Response.Value.Headers {
		if strings.EqualFold(line[0], "Content-Encoding") {
			out = append(out, line[1])
		}
	}
	return out
}

// emptyResponse reports whether it is known that a response has no body.
func emptyResponse(r *network.Request) bool {
	if r.End != nil {
		return r.End.Bytes == 0 && r.End.Captured == 0 && !r.End.Truncated
	}
	return r.Response != nil && !r.Response.Value.HasBody && r.Ending != network.Running
}

// bodyQuestion is a body to read, with all that must be known of its request.
type bodyQuestion struct {
	subject           subjects.BodySubject
	running, redacted bool
	encodings         []string
	// limit is how much of it is captured at most.
	limit int64
	// waiting is the answer when a running body does not end in time.
	waiting string
}

// How many bodies one connection reads at a time, of requests that have ended and
// of running ones: each may need as much memory as the limit allows, some times over.
const (
	endedBodies   = 4
	runningBodies = 16
)

// readBody reads a body within the query deadline.
func (s *session) readBody(q bodyQuestion) fetchBody {
	state, wait, turns := s.gateway.state, s.gateway.limits.Query, s.bodies
	if q.running {
		turns = s.runningBodies
	}
	return func(ctx context.Context) (shownBody, error) {
		select {
		case turns <- struct{}{}:
			defer func() { <-turns }()
		case <-ctx.Done():
			return shownBody{}, ctx.Err()
		}
		ctx, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		var body replica.Body
		err := begun(ctx, q.running, func() (err error) {
			body, err = state.Body(ctx, q.subject)
			return err
		})
		switch {
		case errors.Is(err, context.DeadlineExceeded) && q.running:
			return shownBody{}, failf("%s", q.waiting)
		case err != nil:
			return shownBody{}, err
		}
		return showBody(body, q), nil
	}
}

// showBody undoes the content encoding of a body. One that is not what its headers
// say stays as it is: pages see bodies decoded that have their headers still.
func showBody(body replica.Body, q bodyQuestion) shownBody {
	out := shownBody{data: body.Data, cut: body.End != subjects.BodyComplete}
	captured := len(body.Data)
	if v, err := bodyview.Decode(q.encodings, body.Data, out.cut, 2*q.limit); err == nil {
		out.data = v.Data
		if v.Truncated && !out.cut {
			out.cut, out.note = true, fmt.Sprintf("\n\n[natscope: truncated: shown are the first %d bytes of what this compressed body of %d bytes holds]", len(v.Data), captured)
		}
	}
	if body.End == subjects.BodyTruncated && !q.redacted && body.Total > int64(captured) {
		out.note = fmt.Sprintf("\n\n[natscope: truncated: the first %d of %d bytes of this body were captured]", captured, body.Total)
	}
	return out
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
	fetch := s.readBody(bodyQuestion{
		subject: s.body(src, r, subjects.RequestBody), running: r.BodyEnd == nil && r.Ending == network.Running, redacted: r.BodyEnd != nil && r.BodyEnd.Value.Redacted,
		limit: s.gateway.limits.RequestBodyBytes, waiting: "The request body is still being sent; it is shown when it ends.",
	})
	return later(func(ctx context.Context) (any, error) {
		v, err := fetch(ctx)
		if errors.Is(err, replica.ErrNoBody) {
			return nil, failf("No post data available for the request")
		}
		if err != nil {
			return nil, err
		}
		// DevTools undoes content encodings itself, and reads the bytes of multipart bodies.
		text, encoded := bodyview.Text(v.data, v.cut)
		if !encoded {
			text += v.note
		}
		return postDataResult{PostData: text, Base64Encoded: encoded}, nil
	}), nil
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
		v, err := fetch(ctx)
		if err != nil {
			return none, nil
		}
		text, bytes := bodyview.Text(v.data, v.cut)
		if bytes {
			return none, nil
		}
		return map[string][]bodyMatch{"result": grep(re, text)}, nil
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
