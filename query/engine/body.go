package engine

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/natscope/natscope/query"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/store/replica"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
)

// The directions of bodies in questions.
const (
	directionResponse = "response"
	directionRequest  = "request"
)

// settle is how long a body that still runs is read when its end is not waited for.
const settle = 300 * time.Millisecond

// Body implements query.API.
func (e *Engine) Body(ctx context.Context, q query.BodyRequest) (query.BodyAnswer, error) {
	if q.Direction == "" {
		q.Direction = directionResponse
	}
	if q.Direction != directionResponse && q.Direction != directionRequest {
		return query.BodyAnswer{}, query.Errorf(query.ErrMalformed, "direction %.40q: use response or request", q.Direction)
	}
	if q.Offset < 0 {
		return query.BodyAnswer{}, query.Errorf(query.ErrMalformed, "offset is negative")
	}
	var b bodyOf
	var err error
	e.view(func(v view) {
		var src *fold.Source
		var r *network.Request
		if src, r, err = v.request(q.ID); err == nil {
			b = newBodyOf(v.space.Name, src, r, q.Direction)
		}
	})
	if err != nil {
		return query.BodyAnswer{}, err
	}
	body, err := e.read(ctx, b, q.Wait)
	if err != nil {
		return query.BodyAnswer{}, err
	}
	return answerBody(q, b, body), nil
}

// bodyOf is what is known of a body before it is read.
type bodyOf struct {
	subject subjects.BodySubject
	id      query.RequestID
	known   query.BodyInfo
	none    bool
	mime    string
	charset string
	codings []string
}

func newBodyOf(space subjects.Space, src *fold.Source, r *network.Request, direction string) bodyOf {
	b := bodyOf{
		subject: subjects.BodySubject{Space: space, Source: src.ID, Generation: subjects.Generation(r.Generation), Request: r.ID(), Direction: subjects.ResponseBody},
		id:      summary(src.ID, r).ID, known: responseBody(r),
	}
	var h []network.Header
	if direction == directionRequest {
		b.subject.Direction, b.known, b.none = subjects.RequestBody, requestBody(r), !r.Start.Value.HasBody
		h = r.Start.Value.Headers
	} else {
		b.none = r.Response == nil && r.Ending != network.Running || r.Ending != network.Running && b.known.Bytes == 0 && b.known.Captured == 0 && !b.known.Truncated
		if r.Response != nil {
			h = r.Response.Value.Headers
			b.mime, b.charset = r.Response.Value.MIMEType, r.Response.Value.Charset
		}
	}
	b.describe(h)
	return b
}

// read reads what was captured of a body.
func (e *Engine) read(ctx context.Context, b bodyOf, wait bool) (replica.Body, error) {
	if b.none {
		return replica.Body{End: subjects.BodyComplete, Complete: true}, nil
	}
	if body, ok := e.bodies.get(b.subject); ok {
		return body, nil
	}
	running := !b.known.Ended
	deadline := e.limits.Query
	if running && !wait {
		deadline = settle
	}
	part, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	limit := e.limits.ResponseBodyBytes
	if b.subject.Direction == subjects.RequestBody {
		limit = e.limits.RequestBodyBytes
	}
	var body replica.Body
	err := e.state.FollowBody(part, b.subject, func(p replica.BodyPart) error {
		room := max(limit-int64(len(body.Data)), 0)
		body.Data = append(body.Data, p.Data[:min(int64(len(p.Data)), room)]...)
		body.End, body.Total = p.End, p.Total
		return nil
	})
	switch {
	case err == nil:
		body.Complete = body.End == subjects.BodyComplete && int64(len(body.Data)) == body.Total
		e.bodies.put(b.subject, body)
		return body, nil
	case ctx.Err() == nil && running && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, replica.ErrNoBody)):
		// What came so far is the answer.
		return body, nil
	case errors.Is(err, replica.ErrBodyEvicted):
		return replica.Body{}, query.Errorf(query.ErrGone, "the body of %s was captured, but is no longer kept; natscope up and natscope store keep more with --body-age and --body-bytes", b.id)
	case errors.Is(err, replica.ErrNoBody):
		return replica.Body{}, query.Errorf(query.ErrNotFound, "nothing of the %s body of %s was captured", directionName(b.subject.Direction), b.id)
	}
	return replica.Body{}, fmt.Errorf("read the body of %s: %w", b.id, err)
}

func directionName(d subjects.Direction) string {
	if d == subjects.RequestBody {
		return directionRequest
	}
	return directionResponse
}

// answerBody cuts the range out of a body.
func answerBody(q query.BodyRequest, b bodyOf, body replica.Body) query.BodyAnswer {
	out := query.BodyAnswer{
		ID: b.id, Direction: q.Direction, MIMEType: clean(b.mime, 200), Captured: int64(len(body.Data)),
		Total: max(body.Total, b.known.Bytes, int64(len(body.Data))), End: body.End, Running: body.End == "",
	}
	out.Truncated = body.End != "" && !body.Complete
	data := body.Data
	if !q.Raw {
		data, out.Decoded = b.decode(body.Data, !body.Complete)
	}
	limit := bound(q.Limit, query.DefaultBodyBytes, query.MaxBodyBytes)
	size := int64(len(data))
	out.Size = size
	out.Offset = min(q.Offset, size)
	part := data[out.Offset:min(out.Offset+limit, size)]
	if isText(data) {
		part = wholeRunes(part, out.Offset+int64(len(part)) < size)
		out.Text = string(part)
	}
	if out.Text == "" || !utf8.ValidString(out.Text) {
		// The offset is inside of a character, or these are no texts.
		out.Text, out.Base64 = "", base64.StdEncoding.EncodeToString(part)
	}
	out.Length = int64(len(part))
	out.More = out.Offset+out.Length < size
	return out
}

// isText reports whether bytes are text that people can read. A character that
// is cut at the end, where the capture ended, does not count.
func isText(data []byte) bool {
	data = wholeRunes(data, true)
	if !utf8.Valid(data) {
		return false
	}
	for _, c := range data[:min(len(data), 4096)] {
		if c == 0 {
			return false
		}
	}
	return true
}

// wholeRunes cuts a character that does not end in data, if more follows.
func wholeRunes(data []byte, more bool) []byte {
	if !more {
		return data
	}
	for i := 1; i <= min(utf8.UTFMax, len(data)); i++ {
		if c := data[len(data)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(data[len(data)-i:]) && len(data) > i {
				return data[:len(data)-i]
			}
			return data
		}
	}
	return data
}

// The bounds of the cache of bodies, which spares reading a body anew for each range.
const (
	maxCachedBodies = 32
	maxCachedBytes  = 64 << 20
)

// bodyCache keeps bodies that have ended, which never change.
type bodyCache struct {
	mu     sync.Mutex // guards everything below
	order  []subjects.BodySubject
	bodies map[subjects.BodySubject]replica.Body
	bytes  int
}

func (c *bodyCache) get(s subjects.BodySubject) (replica.Body, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b, ok := c.bodies[s]
	return b, ok
}

func (c *bodyCache) put(s subjects.BodySubject, b replica.Body) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.bodies[s]; ok || len(b.Data) > maxCachedBytes/2 {
		return
	}
	if c.bodies == nil {
		c.bodies = make(map[subjects.BodySubject]replica.Body)
	}
	c.order, c.bodies[s], c.bytes = append(c.order, s), b, c.bytes+len(b.Data)
	for len(c.order) > maxCachedBodies || c.bytes > maxCachedBytes {
		old := c.order[0]
		c.order = c.order[1:]
		c.bytes -= len(c.bodies[old].Data)
		delete(c.bodies, old)
	}
}
