// Package grpccap shows gRPC calls as requests, on the side that calls and on the
// side that serves: method, metadata, every message as a line of JSON, sizes,
// trailers and the status.
//
// It owns: the life of a call from its start to its one ending. It must not know:
// NATS, the HTTP/2 below gRPC. It is a stats.Handler, so that it sees unary calls
// and streams alike and changes nothing that the application sees; grpc-go calls
// it on the goroutines of the call. It starts none. A panic in here is contained
// and counted as a lost record.
//
// A call that gRPC makes again over another connection shows as a request for
// each attempt. Messages are shown as protojson writes them, which takes time in
// proportion to their size; larger ones than 256 KiB show as their size.
package grpccap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/producer/redact"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
)

// maxMessage is the size of the largest message that is shown, in bytes on the wire.
const maxMessage = 256 << 10

// Client returns a handler for grpc.WithStatsHandler that records the calls of a
// client with p. target is what grpc.NewClient gets; it is shown as their host.
// With a nil p nothing is recorded.
func Client(p *producer.Producer, target string) stats.Handler {
	if at := strings.LastIndexByte(target, '/'); at >= 0 {
		target = target[at+1:]
	}
	return &handler{p: p, target: target}
}

// Server returns a handler for grpc.StatsHandler that records the calls that a
// server answers with p. With a nil p nothing is recorded.
func Server(p *producer.Producer) stats.Handler { return &handler{p: p, server: true} }

type handler struct {
	p      *producer.Producer
	target string
	server bool
}

// calls numbers the calls of the process.
var calls atomic.Uint64

type callKey struct{}

// call is one attempt of a call. grpc-go tells of both directions on goroutines of their own.
type call struct {
	p      *producer.Producer
	id     network.RequestID
	method string

	mu                sync.Mutex // guards all below
	started, answered bool
	ended             bool
	began             float64
	streams           bool
	peer              net.Addr
	// request and response are the messages of the client and of the server.
	request, response side
	trailer           metadata.MD
}

// side is one direction of messages.
type side struct {
	body        *producer.Body
	bytes, wire int64
	redacted    bool
	ended       bool
}

// TagRPC implements stats.Handler.
func (h *handler) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	if h.p == nil {
		return ctx
	}
	c := &call{p: h.p, id: network.RequestID("grpc-" + strconv.FormatUint(calls.Add(1), 36)), method: info.FullMethodName}
	return context.WithValue(ctx, callKey{}, c)
}

// TagConn implements stats.Handler.
func (h *handler) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (h *handler) HandleConn(context.Context, stats.ConnStats) {}

// HandleRPC implements stats.Handler.
func (h *handler) HandleRPC(ctx context.Context, s stats.RPCStats) {
	c, _ := ctx.Value(callKey{}).(*call)
	if c == nil || s.IsClient() == h.server {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	defer func() {
		if recover() != nil {
			c.ended = true
			h.p.Lost(subjects.PlaneNet, 1)
		}
	}()
	if c.ended {
		return
	}
	switch s := s.(type) {
	case *stats.Begin:
		c.streams = s.IsClientStream || s.IsServerStream
		if !h.server {
			md, _ := metadata.FromOutgoingContext(ctx)
			c.start(network.Outgoing, h.target, md, nil)
		}
	case *stats.InHeader:
		if h.server {
			authority := ""
			if a := s.Header.Get(":authority"); len(a) > 0 {
				authority = a[0]
			}
			c.start(network.Incoming, authority, s.Header, s.RemoteAddr)
			return
		}
		c.answer(s.Header)
	case *stats.OutHeader:
		if h.server {
			c.answer(s.Header)
		} else {
			c.peer = s.RemoteAddr
		}
	case *stats.InPayload:
		if h.server {
			c.message(&c.request, subjects.RequestBody, s.Payload, s.Length, s.WireLength)
		} else {
			c.answer(nil)
			c.message(&c.response, subjects.ResponseBody, s.Payload, s.Length, s.WireLength)
		}
	case *stats.OutPayload:
		if h.server {
			c.answer(nil)
			c.message(&c.response, subjects.ResponseBody, s.Payload, s.Length, s.WireLength)
		} else {
			c.message(&c.request, subjects.RequestBody, s.Payload, s.Length, s.WireLength)
		}
	case *stats.InTrailer:
		c.trailer = s.Trailer
	case *stats.OutTrailer:
		c.trailer = s.Trailer
	case *stats.End:
		if !h.server && len(s.Trailer) > 0 {
			c.trailer = s.Trailer
		}
		c.end(s.Error, h.server)
	}
}

// start records the start of the call.
func (c *call) start(d network.Direction, host string, md metadata.MD, peer net.Addr) {
	if c.started {
		return
	}
	c.started, c.began, c.peer = true, c.p.Now(), peer
	if host == "" {
		host = "unknown.invalid"
	}
	v := network.Start{
		ID: c.id, Direction: d, Method: "POST", URL: c.p.Redactor().URL("http://" + clean(host) + clean(c.method)),
		Headers: c.headers(md), Type: "fetch", HasBody: true, BodyBytes: -1,
	}
	if d == network.Incoming {
		v.Route = clean(c.method)
		if peer != nil {
			v.Client = clean(peer.String())
		}
	}
	if t := md.Get("traceparent"); len(t) > 0 {
		v.Trace = clean(t[0])
	}
	c.p.Record(subjects.PlaneNet, network.TopicStart, v)
}

// answer records that headers came, or went. Messages may come without them.
func (c *call) answer(md metadata.MD) {
	if c.answered || !c.started {
		return
	}
	c.answered = true
	at := max(0, c.p.Now()-c.began)
	v := network.Response{
		ID: c.id, Status: 200, StatusText: "OK", Headers: c.headers(md), MIMEType: "application/json", Charset: "utf-8", Protocol: "h2", HasBody: true,
		Timing: &network.Timing{DNSStart: -1, DNSEnd: -1, ConnectStart: -1, ConnectEnd: -1, TLSStart: -1, TLSEnd: -1, HeadersStart: at, HeadersEnd: at},
	}
	if c.streams {
		v.MIMEType = "application/x-ndjson"
	}
	if c.peer != nil {
		if ap, err := netip.ParseAddrPort(c.peer.String()); err == nil {
			v.RemoteIP, v.RemotePort = ap.Addr().Unmap().String(), int(ap.Port())
		}
	}
	c.p.Record(subjects.PlaneNet, network.TopicResponse, v)
}

// message records one message as a line of a body.
func (c *call) message(s *side, d subjects.Direction, payload any, length, wire int) {
	if !c.started || s.ended {
		return
	}
	line, changed, ok := c.p.Redactor().Body("application/json", false, encode(payload, length))
	if !ok {
		line = []byte(`"[redacted]"`)
	}
	s.redacted = s.redacted || changed
	line = append(slices.Clip(line), '\n')
	if s.body == nil {
		s.body = c.p.Body(c.id, d)
	}
	s.body.Write(line)
	s.bytes, s.wire = s.bytes+int64(len(line)), s.wire+int64(wire)
	if d == subjects.ResponseBody {
		c.p.Record(subjects.PlaneNet, network.TopicDataReceived, network.DataReceived{ID: c.id, Bytes: int64(len(line)), Wire: int64(wire)})
		return
	}
	if !c.streams {
		c.endRequest(subjects.BodyComplete)
	}
}

func (c *call) endRequest(reason string) {
	s := &c.request
	if s.ended {
		return
	}
	s.ended = true
	v := network.BodyEnd{ID: c.id, Bytes: s.bytes, Redacted: s.redacted}
	if s.body != nil {
		s.body.End(reason, s.bytes)
		v.Captured, v.Truncated = s.body.Captured(), s.body.Truncated()
	}
	c.p.Record(subjects.PlaneNet, network.TopicRequestBodyEnd, v)
}

// end records how the call ended. On a server err is what the handler returned.
func (c *call) end(err error, server bool) {
	c.ended = true
	if !c.started {
		return
	}
	st, ok := status.FromError(err)
	if !ok {
		st = status.FromContextError(err)
	}
	canceled := st.Code() == codes.Canceled || errors.Is(err, context.Canceled)
	text := ""
	if err != nil {
		text = c.p.Redactor().Text(clean(st.Code().String() + ": " + st.Message()))
	}
	reason := subjects.BodyComplete
	if err != nil {
		reason = subjects.BodyAborted
	}
	c.endRequest(reason)
	// A status that came from the other side is an answer, if only of trailers.
	if !c.answered && err != nil && !server && len(c.trailer) == 0 {
		c.p.Record(subjects.PlaneNet, network.TopicError, network.Error{ID: c.id, Text: text, Canceled: canceled})
		return
	}
	c.answer(nil)
	s := &c.response
	v := network.End{ID: c.id, Bytes: s.bytes, Wire: s.wire, Error: text, Canceled: canceled, Redacted: s.redacted}
	if s.body == nil {
		s.body = c.p.Body(c.id, subjects.ResponseBody)
	}
	s.body.End(reason, s.bytes)
	v.Captured, v.Truncated = s.body.Captured(), s.body.Truncated()
	v.Trailers = append([]network.Header{{"grpc-status", strconv.Itoa(int(st.Code()))}}, c.headers(c.trailer)...)
	if st.Message() != "" {
		v.Trailers = slices.Insert(v.Trailers, 1, network.Header{"grpc-message", c.p.Redactor().Text(clean(st.Message()))})
	}
	c.p.Record(subjects.PlaneNet, network.TopicEnd, v)
}

// headers returns metadata in the order of its keys. Values of binary keys are
// shown in hexadecimal, and only if the rules find nothing in their bytes: the
// details of a status repeat its message there.
func (c *call) headers(md metadata.MD) (out []network.Header) {
	keys := make([]string, 0, len(md))
	for k := range md {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		for _, v := range md[k] {
			if strings.HasSuffix(k, "-bin") {
				if seen := clean(v); c.p.Redactor().Text(seen) != seen {
					v = redact.Mark
				} else {
					v = fmt.Sprintf("%x", v)
				}
			}
			out = append(out, network.Header{clean(k), c.p.Redactor().Header(k, clean(v))})
		}
	}
	return out
}

// encode shows a message as JSON.
func encode(payload any, length int) (b []byte) {
	defer func() {
		if recover() != nil {
			b = fmt.Appendf(nil, `"a message of %d bytes that cannot be shown"`, length)
		}
	}()
	if length > maxMessage {
		return fmt.Appendf(nil, `"a message of %d bytes"`, length)
	}
	var err error
	if m, ok := payload.(proto.Message); ok {
		b, err = protojson.MarshalOptions{AllowPartial: true}.Marshal(m)
	} else {
		b, err = json.Marshal(payload)
	}
	if err != nil {
		return fmt.Appendf(nil, `"a message of %d bytes that cannot be shown"`, length)
	}
	return b
}

func clean(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
