package httpcap

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/felixge/httpsnoop"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
)

const (
	// holdBytes is how much of a response net/http holds back before it sends the
	// headers; until then it may still add to them.
	holdBytes = 2048
	// sniffBytes is how much of a body net/http looks at to tell its type.
	sniffBytes = 512
)

// served is an incoming request and what its handler answers. Its records and
// fields are guarded by the call's mutex.
type served struct {
	call
	w     http.ResponseWriter
	req   *http.Request
	route func(*http.Request) string
	// startRoute is what the start said of the route.
	startRoute string

	// status is that of the header that the handler wrote, 0 before; header are its lines.
	status int
	header []network.Header
	// contentType and encoding are the ones that say what the body is.
	contentType, encoding string
	// length is the size that the handler announced, -1 if none.
	length int64
	// trailers are the names that the handler announced.
	trailers []string
	// allowed says that the response may have a body on the wire.
	allowed bool
	// sniff says that net/http tells the type by head, the first bytes of the body.
	sniff bool
	head  []byte
	// held is what was written of an event stream before the response was recorded.
	held []byte
	// committed says that the response was recorded: its headers are on their way.
	committed bool
	hijacked  bool
	// observe says that the connection may be observed once it is taken over;
	// socket then tells of it, and of its end.
	observe bool
	socket  *Socket
	// writeErr is the first error of a write.
	writeErr error
}

// wroteHeader notes the header as the handler is about to write it. Only the
// first one counts; informational ones come before it.
func (s *served) wroteHeader(code int) {
	s.guard(func() {
		if s.status != 0 || code < 200 && code != http.StatusSwitchingProtocols {
			return
		}
		h := s.w.Header()
		s.status, s.length = code, -1
		s.header = headerList(make([]network.Header, 0, len(h)+2), h, s.secrets)
		s.allowed = s.req.Method != http.MethodHead && code >= 200 && code != http.StatusNoContent && code != http.StatusNotModified
		if n, err := strconv.ParseInt(h.Get("Content-Length"), 10, 64); err == nil && n >= 0 {
			s.length = n
		}
		_, typed := h["Content-Type"]
		s.contentType, s.encoding = h.Get("Content-Type"), h.Get("Content-Encoding")
		if t, _ := mediaType(s.contentType); t == "text/event-stream" && s.allowed && !isEncoded(s.encoding) {
			s.events = &eventParser{emit: s.message}
		}
		s.sniff = !typed && s.allowed && s.encoding == "" && h.Get("Transfer-Encoding") == ""
		for _, names := range h["Trailer"] {
			for name := range strings.SplitSeq(names, ",") {
				s.trailers = append(s.trailers, http.CanonicalHeaderKey(strings.TrimSpace(name)))
			}
		}
		if code == http.StatusSwitchingProtocols {
			s.commit(false)
			return
		}
		s.limit = s.sink.Limits().ResponseBodyBytes
	})
}

// startBody begins the capture of the body, if there is one on the wire.
func (s *served) startBody() {
	if s.body == nil && s.allowed {
		s.body = s.capture(subjects.ResponseBody, s.contentType, s.encoding)
	}
}

// wrote observes bytes of the body that the server took.
func (s *served) wrote(p []byte, err error) {
	s.guard(func() {
		if err != nil && s.writeErr == nil {
			s.writeErr = err
		}
		if len(p) == 0 || !s.allowed || s.hijacked {
			return
		}
		if s.sniff && !s.committed && len(s.head) < sniffBytes {
			s.head = append(s.head, p[:min(len(p), sniffBytes-len(s.head))]...)
		}
		if s.startBody(); s.total < s.limit {
			s.body.Write(p)
		}
		if s.events != nil && !s.committed {
			s.held = append(s.held, p...)
		}
		was := s.committed
		if s.passed(int64(len(p))); s.events != nil && was {
			s.events.write(p)
		}
	})
}

// wroteString is wrote for a string, which is copied in pieces.
func (s *served) wroteString(p string, err error) {
	var buf [1 << 10]byte
	for len(p) > 0 {
		n := copy(buf[:], p)
		s.wrote(buf[:n], nil)
		p = p[n:]
	}
	if err != nil {
		s.wrote(nil, err)
	}
}

// passed counts bytes of the body. What net/http still holds back is told later.
func (s *served) passed(n int64) {
	if !s.committed {
		s.total, s.pending = s.total+n, s.pending+n
		if s.total < holdBytes {
			return
		}
		s.commit(false)
		n = 0
	}
	s.received(n)
}

// readFrom lets the server send src as it likes, after the part that is observed:
// what is captured, and the beginning, whose arrival makes net/http write the header.
func (s *served) readFrom(next httpsnoop.ReadFromFunc, src io.Reader) (int64, error) {
	room := s.room()
	var sent int64
	if room > 0 {
		n, err := next(io.LimitReader(&sourceTee{s, src}, room))
		if sent = n; err != nil || n < room {
			s.wrote(nil, err)
			return n, err
		}
	}
	n, err := next(src)
	s.guard(func() {
		if n > 0 && s.allowed {
			s.passed(n)
		}
	})
	s.wrote(nil, err)
	return sent + n, err
}

// room is how many bytes of a source are observed.
func (s *served) room() (n int64) {
	s.guard(func() {
		if s.status == 0 || s.sniff && !s.committed {
			n = sniffBytes
		}
		if s.bodies != nil && (s.status == 0 || s.allowed) {
			n = max(n, s.sink.Limits().ResponseBodyBytes-s.total)
		}
	})
	return n
}

// sourceTee observes what the server reads of a source.
type sourceTee struct {
	s   *served
	src io.Reader
}

// Read implements io.Reader.
func (t *sourceTee) Read(p []byte) (int, error) {
	n, err := t.src.Read(p)
	if n > 0 {
		t.s.wroteHeader(http.StatusOK)
		t.s.wrote(p[:n], nil)
	}
	return n, err
}

// flush notes that the headers go out now.
func (s *served) flush() {
	s.wroteHeader(http.StatusOK)
	s.guard(func() { s.commit(false) })
}

// hijack notes that the handler took the connection, and reports whether a Socket shall observe it.
func (s *served) hijack() (observe bool) {
	s.guard(func() {
		s.hijacked = true
		if s.observe {
			s.socket, s.upgrade = newSocket(&s.call), true
			observe = true
		}
		if !s.committed {
			if s.status == 0 && upgrades(s.req.Header) {
				// The handler writes the answer itself. It took the connection of a
				// client that asked for another protocol, which is an answer, too.
				s.status = http.StatusSwitchingProtocols
				s.header = headerList(nil, s.w.Header(), s.secrets)
			}
			s.commit(false)
		}
		if s.socket != nil {
			s.socket.opened, s.body = true, nil
		}
	})
	return observe
}

// commit records the response. done says that the handler has returned, so that
// net/http knows the size of a short body.
func (s *served) commit(done bool) {
	if s.committed {
		return
	}
	s.committed = true
	now := s.sink.Now()
	r := network.Response{
		ID: s.id, Status: s.status, StatusText: http.StatusText(s.status), Protocol: protocolName(s.req.Proto, s.req.ProtoMajor),
		HasBody: s.allowed && (!done || s.total > 0) || (s.hijacked || s.status == http.StatusSwitchingProtocols) && !s.observe,
		TLS:     tlsDetails(s.req.TLS),
	}
	r.RemoteIP, r.RemotePort = peerText(s.req.RemoteAddr)
	if route := s.routeNow(); route != s.startRoute {
		r.Route = route
	}
	if s.status == 0 {
		r.StatusText = "the handler took the connection"
	}
	if s.sniff && len(s.head) > 0 {
		s.header = append(s.header, network.Header{"Content-Type", http.DetectContentType(s.head)})
	}
	if done && s.length < 0 && s.status >= 200 && len(s.trailers) == 0 && s.status != http.StatusNoContent && s.status != http.StatusNotModified &&
		(s.req.Method != http.MethodHead || s.total > 0) {
		s.header = append(s.header, network.Header{"Content-Length", strconv.FormatInt(s.total, 10)})
	}
	s.size, s.head = s.length, nil
	if s.hijacked || s.status == http.StatusSwitchingProtocols {
		// What follows is not the server's: neither its size nor its bytes are known.
		s.size, s.sniff = -1, false
		if s.body == nil {
			s.body = uncaptured{}
		}
	} else if r.HasBody {
		s.startBody()
	}
	r.Headers = s.header
	for _, h := range s.header {
		if h[0] == "Content-Type" {
			r.MIMEType, r.Charset = mediaType(h[1])
		}
	}
	e := newEncoder()
	s.serverTiming(&e.phases, now)
	r.Timing = &e.phases
	e.response(&r)
	s.record(network.TopicResponse, now, e)
	s.told, s.header = now, nil
	if s.events != nil {
		s.events.write(s.held)
		s.held = nil
	}
}

// serverTiming tells the phases that a server sees: the request was sent when
// its body was read, and the response begins with its headers.
func (s *served) serverTiming(p *network.Timing, now float64) {
	sent := 0.0
	if s.upload != nil && s.upload.lastRead > s.began {
		sent = s.upload.lastRead - s.began
	}
	at := max(0, now-s.began)
	*p = network.Timing{
		DNSStart: unset, DNSEnd: unset, ConnectStart: unset, ConnectEnd: unset, TLSStart: unset, TLSEnd: unset,
		SendStart: 0, SendEnd: min(sent, at), HeadersStart: at, HeadersEnd: at,
	}
}

// goneText says why a response was not delivered.
const goneText = "the client closed the connection"

// finish records the end of a request whose handler returned.
func (s *served) finish() {
	if !s.isHijacked() {
		s.wroteHeader(http.StatusOK)
	}
	ctx := s.req.Context()
	gone := ctx.Err() == context.Canceled && context.Cause(ctx) == context.Canceled
	s.guard(func() {
		s.endUpload()
		if s.socket != nil {
			return
		}
		if s.hijacked {
			s.end(network.End{}, subjects.BodyComplete)
			return
		}
		if gone && !s.committed {
			s.failNow(goneText+" before the response was sent", true)
			return
		}
		s.commit(true)
		end, reason := network.End{Trailers: s.trailerLines()}, subjects.BodyComplete
		switch {
		case gone && (s.length < 0 || s.total < s.length):
			end.Error, end.Canceled, reason = goneText, true, subjects.BodyAborted
		case s.writeErr != nil && s.allowed:
			end.Error, reason = s.secrets.error(s.writeErr), subjects.BodyAborted
		case s.allowed && s.length > s.total:
			end.Error, reason = fmt.Sprintf("the handler wrote %d of the %d bytes that it announced", s.total, s.length), subjects.BodyAborted
		}
		s.end(end, reason)
	})
}

// broke records the end of a request whose handler panicked with v, or ended its goroutine.
func (s *served) broke(v any) {
	why := s.secrets.rules.Text(panicText(v))
	s.guard(func() {
		s.endUpload()
		if !s.committed {
			// Nothing of the response has left: the server closes the connection.
			s.failNow(why, false)
			return
		}
		s.end(network.End{Error: why}, subjects.BodyAborted)
	})
}

// endUpload ends the request body: the handler reads no more of it.
func (s *served) endUpload() {
	if u := s.upload; u != nil {
		reason := subjects.BodyAborted
		if u.size >= 0 && u.passed >= u.size {
			reason = subjects.BodyComplete
		}
		u.end(reason)
	}
}

func (s *served) isHijacked() (yes bool) {
	s.guard(func() { yes = s.hijacked })
	return yes
}

// trailerLines returns what the handler set of the trailers: those that it
// announced, and those with net/http's prefix.
func (s *served) trailerLines() (out []network.Header) {
	h := s.w.Header()
	for _, name := range s.trailers {
		for _, v := range h[name] {
			out = append(out, network.Header{text(name), s.secrets.header(name, v)})
		}
	}
	for name, values := range h {
		if after, ok := strings.CutPrefix(name, http.TrailerPrefix); ok {
			for _, v := range values {
				out = append(out, network.Header{text(after), s.secrets.header(after, v)})
			}
		}
	}
	return out
}
