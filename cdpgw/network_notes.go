package cdpgw

import (
	"fmt"

	"github.com/natscope/natscope/subjects/network"
)

// What the protocol has no place for is shown among the response headers, under
// names that nobody takes for those of a server. DevTools can show each in a
// column and filter by it.
const (
	noteRoute    = "natscope-route"
	noteRequest  = "natscope-request-body"
	noteResponse = "natscope-response-body"
)

// notes returns the lines that follow the headers of a response: trailers, and
// what must be known of the bodies.
func notes(r *network.Request) []network.Header {
	var out []network.Header
	if r.End != nil {
		out = append(out, r.End.Trailers...)
	}
	route := r.Start.Value.Route
	if r.Response != nil && r.Response.Value.Route != "" {
		route = r.Response.Value.Route
	}
	if route != "" {
		out = append(out, network.Header{noteRoute, route})
	}
	if b := r.BodyEnd; b != nil {
		if text := bodyNote(b.Value.Captured, b.Value.Bytes, b.Value.Truncated, b.Value.Redacted, ""); text != "" {
			out = append(out, network.Header{noteRequest, text})
		}
	}
	if text := responseNote(r); text != "" {
		out = append(out, network.Header{noteResponse, text})
	}
	return out
}

func responseNote(r *network.Request) string {
	e := r.End
	if e == nil {
		return ""
	}
	early := ""
	switch {
	case e.Error != "":
		early = "ended early: " + e.Error
	case e.Canceled:
		early = "ended early: the application stopped reading"
	}
	return bodyNote(e.Captured, e.Bytes, e.Captured < e.Bytes && e.Truncated, e.Redacted, early)
}

// bodyNote says what a body that is not whole lacks; it is empty for a whole one.
func bodyNote(captured, bytes int64, truncated, redacted bool, early string) string {
	text := early
	switch {
	case redacted:
		text = join(text, "changed or withheld by the source's redaction rules")
	case truncated && captured == 0 && bytes > 0:
		text = join(text, fmt.Sprintf("truncated: none of its %d bytes were captured", bytes))
	case truncated:
		text = join(text, fmt.Sprintf("truncated: the first %d of %d bytes were captured", captured, bytes))
	}
	return text
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

// amended reports whether the end of a request brought something that belongs to
// its response, so that this is told again.
func amended(r *network.Request) bool {
	if r.End == nil || r.Response == nil {
		return false
	}
	if len(r.End.Trailers) > 0 || responseNote(r) != "" {
		return true
	}
	b := r.BodyEnd
	return b != nil && b.T > r.Response.T && (b.Value.Truncated || b.Value.Redacted)
}
