package httpcap

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"sync"

	"github.com/natscope/natscope/subjects/network"
)

// encoder writes the payloads of package network as JSON. It exists because a
// request costs four records and encoding/json would be most of what capture
// costs; its test holds it to what encoding/json reads back.
type encoder struct {
	b []byte
	// lines is room for the headers of one payload.
	lines []network.Header
	// phases is room for the timing of one payload.
	phases network.Timing
}

// The largest buffer and the most header lines that go back to the pool.
const (
	maxPooled = 64 << 10
	maxLines  = 256
)

var encoders = sync.Pool{New: func() any { return &encoder{b: make([]byte, 0, 2048)} }}

func newEncoder() *encoder {
	e := encoders.Get().(*encoder)
	e.b = e.b[:0]
	return e
}

// free returns the encoder to the pool. Its bytes are not valid afterwards.
func (e *encoder) free() {
	clear(e.lines)
	if cap(e.b) <= maxPooled && cap(e.lines) <= maxLines {
		encoders.Put(e)
	}
}

// list returns the lines of h, as headerList does, until the encoder is freed.
func (e *encoder) list(h http.Header, s secrets) []network.Header {
	e.lines = headerList(e.lines[:0], h, s)
	return e.lines
}

func (e *encoder) start(s *network.Start, stack []*frame) {
	e.object(s.ID)
	e.opt("direction", string(s.Direction))
	e.str("method", s.Method)
	e.str("url", s.URL)
	e.headers("headers", s.Headers)
	e.opt("type", s.Type)
	e.flag("hasBody", s.HasBody)
	e.count("bodyBytes", s.BodyBytes)
	e.opt("documentURL", s.DocumentURL)
	if len(stack) > 0 {
		e.name("stack")
		e.b = append(e.b, '[')
		for i, f := range stack {
			if i > 0 {
				e.b = append(e.b, ',')
			}
			e.b = append(e.b, f.json...)
		}
		e.b = append(e.b, ']')
	}
	e.opt("trace", s.Trace)
	e.opt("route", s.Route)
	e.opt("client", s.Client)
	e.opt("redirectOf", string(s.RedirectOf))
	e.close()
}

// frame encodes one line of a stack.
func (e *encoder) frame(f network.Frame) {
	e.b = append(e.b, '{')
	e.str("function", f.Function)
	e.str("url", f.URL)
	e.name("line")
	e.b = strconv.AppendInt(e.b, int64(f.Line), 10)
	e.count("column", int64(f.Column))
	e.close()
}

func (e *encoder) bodyEnd(v *network.BodyEnd) {
	e.object(v.ID)
	e.num("bytes", v.Bytes)
	e.num("captured", v.Captured)
	e.flag("truncated", v.Truncated)
	e.flag("redacted", v.Redacted)
	e.close()
}

func (e *encoder) response(r *network.Response) {
	e.object(r.ID)
	e.num("status", int64(r.Status))
	e.opt("statusText", r.StatusText)
	e.headers("headers", r.Headers)
	e.opt("url", r.URL)
	e.opt("mimeType", r.MIMEType)
	e.opt("charset", r.Charset)
	e.opt("protocol", r.Protocol)
	e.opt("remoteIP", r.RemoteIP)
	e.count("remotePort", int64(r.RemotePort))
	e.flag("reused", r.Reused)
	e.headers("requestHeaders", r.RequestHeaders)
	if t := r.Timing; t != nil {
		e.name("timing")
		e.timing(t)
	}
	if t := r.TLS; t != nil {
		e.name("tls")
		e.tls(t)
	}
	e.flag("hasBody", r.HasBody)
	e.opt("route", r.Route)
	e.close()
}

func (e *encoder) tls(t *network.TLS) {
	e.b = append(e.b, '{')
	e.str("version", t.Version)
	e.opt("cipher", t.Cipher)
	e.opt("group", t.Group)
	e.opt("subject", t.Subject)
	e.opt("issuer", t.Issuer)
	if len(t.Names) > 0 {
		e.name("names")
		e.b = append(e.b, '[')
		for i, n := range t.Names {
			if i > 0 {
				e.b = append(e.b, ',')
			}
			e.string(n)
		}
		e.b = append(e.b, ']')
	}
	e.seconds("validFrom", t.ValidFrom)
	e.seconds("validTo", t.ValidTo)
	e.close()
}

// seconds writes a time in seconds, unless it is zero.
func (e *encoder) seconds(name string, v float64) {
	if v != 0 {
		e.name(name)
		e.b = strconv.AppendFloat(e.b, v, 'f', -1, 64)
	}
}

func (e *encoder) timing(t *network.Timing) {
	e.b = append(e.b, '{')
	e.ms("dnsStart", t.DNSStart)
	e.ms("dnsEnd", t.DNSEnd)
	e.ms("connectStart", t.ConnectStart)
	e.ms("connectEnd", t.ConnectEnd)
	e.ms("tlsStart", t.TLSStart)
	e.ms("tlsEnd", t.TLSEnd)
	e.ms("sendStart", t.SendStart)
	e.ms("sendEnd", t.SendEnd)
	e.ms("headersStart", t.HeadersStart)
	e.ms("headersEnd", t.HeadersEnd)
	e.close()
}

func (e *encoder) dataReceived(v *network.DataReceived) {
	e.object(v.ID)
	e.num("bytes", v.Bytes)
	e.count("wire", v.Wire)
	e.close()
}

func (e *encoder) message(v *network.Message) {
	e.object(v.ID)
	e.flag("sent", v.Sent)
	e.opt("event", v.Event)
	e.opt("eventId", v.EventID)
	e.count("opcode", int64(v.Opcode))
	e.count("code", int64(v.Code))
	e.str("data", v.Data)
	e.flag("base64", v.Base64)
	e.count("bytes", v.Bytes)
	e.count("retry", v.Retry)
	e.close()
}

func (e *encoder) end(v *network.End) {
	e.object(v.ID)
	e.num("bytes", v.Bytes)
	e.count("wire", v.Wire)
	e.num("captured", v.Captured)
	e.flag("truncated", v.Truncated)
	e.opt("error", v.Error)
	e.flag("canceled", v.Canceled)
	e.flag("redacted", v.Redacted)
	e.headers("trailers", v.Trailers)
	e.close()
}

func (e *encoder) failure(v *network.Error) {
	e.object(v.ID)
	e.str("text", v.Text)
	e.flag("canceled", v.Canceled)
	e.close()
}

// object opens a payload; all of them begin with the id of the request.
func (e *encoder) object(id network.RequestID) {
	e.b = append(e.b, '{')
	e.str("id", string(id))
}

func (e *encoder) close() { e.b = append(e.b, '}') }

// name starts a member.
func (e *encoder) name(name string) {
	if e.b[len(e.b)-1] != '{' {
		e.b = append(e.b, ',')
	}
	e.b = append(e.b, '"')
	e.b = append(e.b, name...)
	e.b = append(e.b, '"', ':')
}

func (e *encoder) str(name, v string) {
	e.name(name)
	e.string(v)
}

// opt, count and flag leave out zero values, as the payloads' omitempty does.
func (e *encoder) opt(name, v string) {
	if v != "" {
		e.str(name, v)
	}
}

func (e *encoder) count(name string, v int64) {
	if v != 0 {
		e.num(name, v)
	}
}

func (e *encoder) flag(name string, v bool) {
	if v {
		e.name(name)
		e.b = append(e.b, "true"...)
	}
}

func (e *encoder) num(name string, v int64) {
	e.name(name)
	e.b = strconv.AppendInt(e.b, v, 10)
}

// ms writes milliseconds with the precision of a microsecond.
func (e *encoder) ms(name string, v float64) {
	e.name(name)
	if v == unset {
		e.b = append(e.b, "-1"...)
		return
	}
	// Numbers of this size are exact in float64; formatting them as floats would be a tenth of what a record costs.
	us := math.Round(v * 1000)
	if us < 0 || us > 1<<52 {
		e.b = strconv.AppendFloat(e.b, v, 'f', 3, 64)
		return
	}
	n := int64(us)
	e.b = strconv.AppendInt(e.b, n/1000, 10)
	n %= 1000
	e.b = append(e.b, '.', byte('0'+n/100), byte('0'+n/10%10), byte('0'+n%10))
}

func (e *encoder) headers(name string, hs []network.Header) {
	if len(hs) == 0 {
		return
	}
	e.name(name)
	e.b = append(e.b, '[')
	for i, h := range hs {
		if i > 0 {
			e.b = append(e.b, ',')
		}
		e.b = append(e.b, '[')
		e.string(h[0])
		e.b = append(e.b, ',')
		e.string(h[1])
		e.b = append(e.b, ']')
	}
	e.b = append(e.b, ']')
}

// string writes a JSON string. Plain ASCII, which nearly all of it is, is
// copied; encoding/json does the rest and replaces what is not UTF-8.
func (e *encoder) string(s string) {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			quoted, err := json.Marshal(s)
			if err != nil {
				quoted = []byte(`""`)
			}
			e.b = append(e.b, quoted...)
			return
		}
	}
	e.b = append(e.b, '"')
	e.b = append(e.b, s...)
	e.b = append(e.b, '"')
}
