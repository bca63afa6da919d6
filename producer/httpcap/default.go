package httpcap

import (
	"net/http"
	"sync"

	"github.com/natscope/natscope/producer"
)

// Default records with p what goes through http.DefaultTransport, which
// http.Get, http.DefaultClient and every http.Client without a transport of its
// own use. restore puts the transport back that was there before, unless
// somebody else has replaced it since. With a nil p nothing changes.
//
// Call it early: a variable is set that the whole program shares. Programs that
// take http.DefaultTransport for an *http.Transport, to clone it, still get one,
// with the same settings; what they send through the clone is not recorded, and
// neither are WebSockets over TLS, which net/http keeps away from protocols that
// are registered. Protocols that were registered before with
// http.Transport.RegisterProtocol are known again after restore.
func Default(p *producer.Producer, opts ...Option) (restore func()) {
	if p == nil {
		return func() {}
	}
	return setDefault(producerSink{p}, opts...)
}

// defaultMu guards the variable http.DefaultTransport against two calls of this package at once.
var defaultMu sync.Mutex

func setDefault(s sink, opts ...Option) (restore func()) {
	defaultMu.Lock()
	defer defaultMu.Unlock()
	before := http.DefaultTransport
	after := front(newTransport(s, before, opts...))
	http.DefaultTransport = after
	return func() {
		defaultMu.Lock()
		defer defaultMu.Unlock()
		if http.DefaultTransport == after {
			http.DefaultTransport = before
		}
	}
}

// front returns a transport that sends everything through t and is an
// *http.Transport, if what t wraps is one: programs rely on that of the default.
func front(t *transport) http.RoundTripper {
	base, ok := t.next.(*http.Transport)
	if !ok {
		return t
	}
	f := base.Clone()
	f.RegisterProtocol("http", protocolTransport{t})
	// net/http registers its HTTP/2 as "https" at the first request, unless a
	// struct like this one is there already.
	f.RegisterProtocol("https", protocolTransport{t})
	return f
}

// protocolTransport has the one exported field that net/http looks for, in which
// it finds CloseIdleConnections.
type protocolTransport struct{ Transport *transport }

// RoundTrip implements http.RoundTripper.
func (p protocolTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	return p.Transport.RoundTrip(req)
}
