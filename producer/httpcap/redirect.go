package httpcap

import (
	"net/http"
	"sync"
	"weak"

	"github.com/natscope/natscope/subjects/network"
)

// redirects knows the newest responses that sent a client elsewhere. http.Client
// puts such a response into the request that follows it, which is all that ties
// the two together.
var redirects redirectTable

// redirectTable holds no response alive. When more clients are between two
// requests than it has places, the chains of the oldest show as separate requests.
type redirectTable struct {
	mu      sync.Mutex
	entries [256]redirect
	next    int
}

type redirect struct {
	response weak.Pointer[http.Response]
	sink     sink
	id       network.RequestID
}

// note remembers a response if it sends the client elsewhere.
func (t *redirectTable) note(resp *http.Response, s sink, id network.RequestID) {
	if resp.StatusCode < 300 || resp.StatusCode > 399 || resp.Header.Get("Location") == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.entries[t.next] = redirect{weak.Make(resp), s, id}
	t.next = (t.next + 1) % len(t.entries)
}

// of returns the request whose response sent req on its way, or nothing.
func (t *redirectTable) of(req *http.Request, s sink) network.RequestID {
	if req.Response == nil {
		return ""
	}
	p := weak.Make(req.Response)
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.entries {
		if e.response == p && e.sink == s {
			return e.id
		}
	}
	return ""
}
