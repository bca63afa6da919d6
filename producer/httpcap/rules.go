package httpcap

import (
	"hash/fnv"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
)

// Rules say which requests and which bodies are captured. The zero value
// captures everything. Patterns may hold "*", which stands for any text, "/" and
// "." included; they match without regard to case. A list that is empty includes
// everything, or excludes nothing.
type Rules struct {
	// Hosts and NotHosts are patterns for the host that a request goes to, or was
	// addressed to, with its port or without.
	Hosts, NotHosts []string
	// Paths and NotPaths are patterns for the path of the URL, as "/api/*".
	Paths, NotPaths []string
	// Types and NotTypes are patterns for the media types of bodies, as "image/*".
	// They decide about bodies only; of the others the sizes are told.
	Types, NotTypes []string
	// Share is the part of the requests that is captured, above 0 and below 1; 0
	// means all. Requests of one trace (traceparent) are captured together, the
	// others by chance.
	Share float64
}

// want reports whether a request is captured.
func (r *Rules) want(req *http.Request, host string) bool {
	if len(r.Hosts)+len(r.NotHosts) > 0 {
		name, _, err := net.SplitHostPort(host)
		if err != nil {
			name = host
		}
		if len(r.Hosts) > 0 && !matchAny(r.Hosts, host) && !matchAny(r.Hosts, name) || matchAny(r.NotHosts, host) || matchAny(r.NotHosts, name) {
			return false
		}
	}
	if !included(r.Paths, r.NotPaths, req.URL.Path) {
		return false
	}
	return r.Share <= 0 || r.Share >= 1 || chance(req.Header.Get("Traceparent")) < r.Share
}

// wantBody reports whether bodies of a media type are captured.
func (r *Rules) wantBody(mediaType string) bool { return included(r.Types, r.NotTypes, mediaType) }

func included(yes, no []string, s string) bool {
	return (len(yes) == 0 || matchAny(yes, s)) && !matchAny(no, s)
}

// chance is a number from 0 to 1, the same for all requests of one trace.
func chance(traceparent string) float64 {
	parts := strings.Split(traceparent, "-")
	if len(parts) < 4 || len(parts[1]) != 32 {
		return rand.Float64()
	}
	h := fnv.New64a()
	h.Write([]byte(parts[1]))
	// FNV mixes the last bytes too little into the upper bits.
	x := h.Sum64()
	x ^= x >> 32
	x *= 0x9e3779b97f4a7c15
	return float64(x>>11) / (1 << 53)
}

func matchAny(patterns []string, s string) bool {
	for _, p := range patterns {
		if match(strings.ToLower(p), strings.ToLower(s)) {
			return true
		}
	}
	return false
}

// match reports whether s matches a pattern in which "*" stands for any text.
func match(pattern, s string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == s
	}
	rest, ok := strings.CutPrefix(s, parts[0])
	if !ok {
		return false
	}
	last := parts[len(parts)-1]
	for _, p := range parts[1 : len(parts)-1] {
		at := strings.Index(rest, p)
		if at < 0 {
			return false
		}
		rest = rest[at+len(p):]
	}
	return len(rest) >= len(last) && strings.HasSuffix(rest, last)
}
