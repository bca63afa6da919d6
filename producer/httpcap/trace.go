package httpcap

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"

	"github.com/natscope/natscope/subjects/network"
)

// unset is the time of a phase that did not occur.
const unset = -1

// timing is what the hooks of net/http/httptrace told of the newest attempt to
// send a request. Times are on the source's clock. The call's mutex guards it.
type timing struct {
	dnsStart, dnsEnd         float64
	connectStart, connectEnd float64
	tlsStart, tlsEnd         float64
	gotConn, wroteHeaders    float64
	wroteRequest, firstByte  float64
	connected                bool
	reused                   bool
	remoteIP                 string
	remotePort               int
	sent                     []network.Header // headers as they went over the wire
}

func (t *timing) reset() {
	*t = timing{
		dnsStart: unset, dnsEnd: unset, connectStart: unset, connectEnd: unset, tlsStart: unset, tlsEnd: unset,
		gotConn: unset, wroteHeaders: unset, wroteRequest: unset, firstByte: unset,
	}
}

// phases tells the timing in milliseconds after the start of the request. now
// is when its headers were complete.
func (t *timing) phases(p *network.Timing, began, now float64) {
	rel := func(at float64) float64 {
		if at == unset {
			return unset
		}
		return max(0, at-began)
	}
	*p = network.Timing{
		DNSStart: rel(t.dnsStart), DNSEnd: rel(t.dnsEnd),
		ConnectStart: rel(t.connectStart), ConnectEnd: rel(t.connectEnd),
		TLSStart: rel(t.tlsStart), TLSEnd: rel(t.tlsEnd),
		SendStart: rel(t.gotConn), SendEnd: rel(t.wroteRequest),
		HeadersStart: rel(t.firstByte), HeadersEnd: rel(now),
	}
	if t.reused {
		// A dial that this request began can lose against a connection that became idle: it was not waited for.
		p.DNSStart, p.DNSEnd, p.ConnectStart, p.ConnectEnd, p.TLSStart, p.TLSEnd = unset, unset, unset, unset, unset, unset
	}
	if p.SendEnd == unset {
		// The server answered before the request was sent to its end.
		p.SendEnd = rel(t.wroteHeaders)
	}
}

// outgoing is a call of a client, with the hooks that tell its timing.
type outgoing struct {
	call
	hooks httptrace.ClientTrace
}

// newOutgoing returns the call of a request that is about to be sent.
func newOutgoing(s sink, req *http.Request, bodies func(mediaType string) bool) *outgoing {
	o := &outgoing{}
	o.init(s, req, bodies)
	return o
}

// trace returns the hooks of a call. net/http calls them on several goroutines,
// some of them after RoundTrip has returned.
func (o *outgoing) trace() *httptrace.ClientTrace {
	c := &o.call
	o.hooks = httptrace.ClientTrace{
		GetConn:      func(string) { c.note((*timing).reset) },
		DNSStart:     func(httptrace.DNSStartInfo) { c.at(func(t *timing, now float64) { t.dnsStart = now }) },
		DNSDone:      func(httptrace.DNSDoneInfo) { c.at(func(t *timing, now float64) { t.dnsEnd = now }) },
		ConnectStart: func(string, string) { c.at((*timing).connecting) },
		ConnectDone: func(_, _ string, err error) {
			c.at(func(t *timing, now float64) { t.connectedAt(now, err) })
		},
		TLSHandshakeStart:    func() { c.at(func(t *timing, now float64) { t.tlsStart = now }) },
		TLSHandshakeDone:     func(tls.ConnectionState, error) { c.at(func(t *timing, now float64) { t.tlsEnd = now }) },
		GotConn:              func(info httptrace.GotConnInfo) { c.at(func(t *timing, now float64) { t.got(now, info) }) },
		WroteHeaderField:     func(name string, values []string) { c.note(func(t *timing) { t.wrote(c, name, values) }) },
		WroteHeaders:         func() { c.at(func(t *timing, now float64) { t.wroteHeaders = now }) },
		WroteRequest:         func(httptrace.WroteRequestInfo) { c.at(func(t *timing, now float64) { t.wroteRequest = now }) },
		GotFirstResponseByte: func() { c.at(func(t *timing, now float64) { t.firstByte = now }) },
	}
	return &o.hooks
}

// at runs one hook with the time. Hooks of an ended request change nothing.
func (c *call) at(f func(*timing, float64)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.contain()
	if !c.ended.Load() {
		f(&c.timing, c.sink.Now())
	}
}

// note runs one hook that needs no time.
func (c *call) note(f func(*timing)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.contain()
	if !c.ended.Load() {
		f(&c.timing)
	}
}

// connecting keeps the first of several dials: net tries addresses side by side.
func (t *timing) connecting(now float64) {
	if t.connectStart == unset {
		t.connectStart = now
	}
}

// connectedAt keeps the first dial that succeeded, else the last that failed.
func (t *timing) connectedAt(now float64, err error) {
	if !t.connected {
		t.connectEnd, t.connected = now, err == nil
	}
}

func (t *timing) got(now float64, info httptrace.GotConnInfo) {
	t.gotConn, t.reused = now, info.Reused
	if info.Conn != nil {
		t.remoteIP, t.remotePort = peer(info.Conn.RemoteAddr())
	}
}

// wrote keeps one header line in the order of the wire. HTTP/2's pseudo headers
// repeat what the start of the request says.
func (t *timing) wrote(c *call, name string, values []string) {
	if len(name) > 0 && name[0] == ':' {
		return
	}
	if t.sent == nil {
		t.sent = make([]network.Header, 0, 8)
	}
	for _, v := range values {
		t.sent = append(t.sent, network.Header{text(name), c.secrets.header(name, v)})
	}
}

// peer splits an address. The name of a Unix socket is no IP and gives nothing.
func peer(addr net.Addr) (string, int) {
	switch a := addr.(type) {
	case nil:
		return "", 0
	case *net.TCPAddr:
		return a.AddrPort().Addr().Unmap().String(), a.Port
	}
	return peerText(addr.String())
}

// peerText splits an address that is a text.
func peerText(addr string) (string, int) {
	ap, err := netip.ParseAddrPort(addr)
	if err != nil {
		return "", 0
	}
	return ap.Addr().Unmap().String(), int(ap.Port())
}
