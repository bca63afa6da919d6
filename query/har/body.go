package har

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/natscope/natscope/store/bodyview"
	"github.com/natscope/natscope/store/replica"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
)

// settle is how long a body that still runs is read: what came of it is there at once.
const settle = 300 * time.Millisecond

// body is what is written of a body: text, or base64 of bytes.
type body struct {
	text     string
	base64   bool
	there    bool
	comment  string
	size     int64 // decoded bytes
	complete bool
}

type bodies struct{ request, response body }

// readBodies reads what there is of both bodies of a request.
func readBodies(ctx context.Context, r *Request, o Options) (b bodies) {
	q := &r.Request
	if o.Body == nil {
		return b
	}
	if q.Start.Value.HasBody && (q.BodyEnd == nil || q.BodyEnd.Value.Captured > 0) {
		b.request = readBody(ctx, r, subjects.RequestBody, q.BodyEnd != nil || q.Ending != network.Running, o)
	}
	if q.Response != nil && q.Response.Value.HasBody && (q.End == nil || q.End.Captured > 0) && q.Response.Value.Status != 101 {
		b.response = readBody(ctx, r, subjects.ResponseBody, q.Ending != network.Running, o)
	}
	return b
}

func readBody(ctx context.Context, r *Request, d subjects.Direction, ended bool, o Options) body {
	wait, limit := o.Limits.Query, o.Limits.ResponseBodyBytes
	if !ended {
		wait = settle
	}
	encodings := contentEncoding(r.Request.Start.Value.Headers)
	if d == subjects.RequestBody {
		limit = o.Limits.RequestBodyBytes
	} else {
		encodings = contentEncoding(r.Request.Response.Value.Headers)
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	var data []byte
	var last replica.BodyPart
	subject := subjects.BodySubject{Space: r.Space, Source: r.Source, Generation: subjects.Generation(r.Request.Generation), Request: r.Request.ID(), Direction: d}
	err := o.Body(ctx, subject, func(p replica.BodyPart) error {
		data = append(data, p.Data[:min(int64(len(p.Data)), max(limit-int64(len(data)), 0))]...)
		last = p
		return nil
	})
	switch {
	case errors.Is(err, replica.ErrBodyEvicted):
		return body{comment: "the body was captured but is no longer kept"}
	case errors.Is(err, replica.ErrNoBody):
		return body{comment: "the source captured no body"}
	case err != nil && ended:
		return body{comment: "the body could not be read: " + err.Error()}
	}
	whole := err == nil && last.End == subjects.BodyComplete && int64(len(data)) == last.Total
	out := body{there: true, complete: whole}
	// A page sees bodies decoded that have their headers still: what is not encoded stays as it is.
	if view, err := bodyview.Decode(encodings, data, !whole, 2*limit); err == nil {
		data, whole = view.Data, whole && !view.Truncated
	}
	out.size = int64(len(data))
	switch {
	case err != nil:
		out.comment = fmt.Sprintf("incomplete: the first %d bytes of a body that was still coming", len(data))
	case !whole && last.Total > int64(len(data)):
		out.comment = fmt.Sprintf("truncated: captured are %d of %d bytes", len(data), last.Total)
	case !whole && last.End == subjects.BodyAborted:
		out.comment = "the body ended early"
	case !whole:
		out.comment = "truncated"
	}
	out.text, out.base64 = bodyview.Text(data, !whole)
	if n := base64.StdEncoding.EncodedLen(len(data)); !out.base64 && escaped(out.text) > n {
		// Text of control characters, as a bomb decompresses to, is six times its size in JSON.
		out.text, out.base64 = base64.StdEncoding.EncodeToString([]byte(out.text)), true
	}
	return out
}

// escaped is about how many bytes text takes in JSON.
func escaped(text string) int {
	n := len(text)
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"', c == '\\', c == '\n', c == '\r', c == '\t', c == '\b', c == '\f':
			n++
		case c < 0x20:
			n += 5
		}
	}
	return n
}

// fit leaves a body out that takes more than room bytes, and returns what is taken.
func (b *body) fit(room int64) int64 {
	n := int64(len(b.text))
	if !b.base64 {
		n = int64(escaped(b.text))
	}
	if n <= room {
		return n
	}
	*b = body{comment: fmt.Sprintf("left out: with its %d bytes the archive would be larger than DevTools can open; natscope body has it", len(b.text))}
	return 0
}

func contentEncoding(list []network.Header) []string { return values(list, "Content-Encoding") }
