package v8

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// The bounds of one connection to an inspector.
const (
	// maxWaiting is how many commands, and maxWaitingBytes how many bytes of them, wait to be written.
	maxWaiting      = 4096
	maxWaitingBytes = 128 << 20
	// dialTimeout bounds the opening of a connection, writeTimeout the writing of one command.
	dialTimeout  = 5 * time.Second
	writeTimeout = 20 * time.Second
	// lingerWithin bounds how long a connection that is closed waits for answers.
	lingerWithin = 300 * time.Millisecond
)

// errHungUp says that the connection to the inspector is over.
var errHungUp = errors.New("v8: the connection to the inspector ended")

// protocolError is an engine's refusal of a command, in the engine's own words.
type protocolError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    string `json:"data,omitempty"`
}

// Error returns the message, with the details if there are any.
func (e *protocolError) Error() string {
	if e.Data != "" {
		return e.Message + ": " + e.Data
	}
	return e.Message
}

// notFound is the code of a method that the engine does not have.
const notFound = -32601

// message is one message of an engine: an answer if it has an id, else an event.
type message struct {
	ID int64 `json:"id"`
	// Session names the session inside of the connection that it belongs to, if any.
	Session string          `json:"sessionId"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   *protocolError  `json:"error"`
}

// parse reads a message. Engines write the answers and events of their own
// backend in one form, which is taken apart without looking at the whole of it:
// a piece of a heap snapshot need not be scanned three times.
func parse(data []byte) (message, error) {
	if rest, ok := bytes.CutPrefix(data, []byte(`{"method":"`)); ok {
		if name, rest, ok := bytes.Cut(rest, []byte(`","params":`)); ok && len(name) < 128 && !bytes.ContainsAny(name, `"\`) {
			if params, ok := bytes.CutSuffix(rest, []byte("}")); ok && len(params) > 1 && params[0] == '{' && json.Valid(params) {
				return message{Method: string(name), Params: params}, nil
			}
		}
	}
	if rest, ok := bytes.CutPrefix(data, []byte(`{"id":`)); ok {
		if id, rest, ok := bytes.Cut(rest, []byte(`,"result":`)); ok && len(id) < 19 {
			n, err := strconv.ParseInt(string(id), 10, 64)
			if result, ok := bytes.CutSuffix(rest, []byte("}")); err == nil && ok && json.Valid(result) {
				return message{ID: n, Result: result}, nil
			}
		}
	}
	var m message
	if err := json.Unmarshal(data, &m); err != nil {
		return message{}, fmt.Errorf("v8: a message of the inspector is not JSON: %w", err)
	}
	return m, nil
}

// peer is one protocol session: commands go out by send, messages come in by
// receive, in order and from one goroutine.
type peer struct {
	// send hands one command over. It does not block.
	send func(data []byte) error
	// event takes events, on the goroutine that calls receive.
	event func(method string, params json.RawMessage)
	// name is the session inside of a connection, empty for the connection's own.
	name string
	// route takes the messages of sessions inside of this one, nil if there are none.
	route func(m message)

	mu      sync.Mutex // guards all below
	last    int64
	pending map[int64]func(json.RawMessage, error)
	err     error // why it is over
	// idle is closed when nothing is pending, nil if nobody waits for that.
	idle chan struct{}
}

func newPeer(send func([]byte) error, event func(string, json.RawMessage)) *peer {
	return &peer{send: send, event: event, pending: make(map[int64]func(json.RawMessage, error))}
}

// start sends a command. done is called once, from the goroutine of receive, or
// from start itself when the command cannot be sent.
func (p *peer) start(method string, params any, done func(json.RawMessage, error)) {
	raw, ok := params.(json.RawMessage)
	if !ok && params != nil {
		b, err := json.Marshal(params)
		if err != nil {
			done(nil, fmt.Errorf("v8: params of %s: %w", method, err))
			return
		}
		raw = b
	}
	p.mu.Lock()
	if p.err != nil {
		err := p.err
		p.mu.Unlock()
		done(nil, err)
		return
	}
	p.last++
	id := p.last
	p.pending[id] = done
	p.mu.Unlock()
	name, _ := json.Marshal(method)
	data := make([]byte, 0, len(raw)+len(name)+48)
	data = fmt.Appendf(data, `{"id":%d,"method":%s`, id, name)
	if len(raw) > 0 {
		data = append(append(data, `,"params":`...), raw...)
	}
	if p.name != "" {
		session, _ := json.Marshal(p.name)
		data = append(append(data, `,"sessionId":`...), session...)
	}
	if err := p.send(append(data, '}')); err != nil {
		if done := p.forget(id); done != nil {
			done(nil, err)
		}
	}
}

// forget takes a command off the list and returns its function, nil if it was answered.
func (p *peer) forget(id int64) func(json.RawMessage, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	done := p.pending[id]
	delete(p.pending, id)
	p.settle()
	return done
}

// settled returns a channel that is closed once all commands are answered.
func (p *peer) settled() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.idle == nil {
		p.idle = make(chan struct{})
	}
	idle := p.idle
	p.settle()
	return idle
}

// settle tells that all commands are answered. The lock is held.
func (p *peer) settle() {
	if p.idle != nil && len(p.pending) == 0 {
		close(p.idle)
		p.idle = nil
	}
}

// call sends a command and waits for its answer, which must not be done on the goroutine of receive.
func (p *peer) call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	type answer struct {
		result json.RawMessage
		err    error
	}
	got := make(chan answer, 1)
	p.start(method, params, func(r json.RawMessage, err error) { got <- answer{r, err} })
	select {
	case a := <-got:
		return a.result, a.err
	case <-ctx.Done():
		return nil, fmt.Errorf("v8: %s: the program did not answer in time: %w", method, ctx.Err())
	}
}

// receive takes one message.
func (p *peer) receive(data []byte) {
	m, err := parse(data)
	if err != nil {
		return // One that cannot be read is one that nobody waits for.
	}
	if m.Session != "" && m.Session != p.name {
		if p.route != nil {
			p.route(m)
		}
		return
	}
	p.handle(m)
}

// handle takes one message of this session.
func (p *peer) handle(m message) {
	if m.Method != "" {
		p.event(m.Method, m.Params)
		return
	}
	if done := p.forget(m.ID); done != nil {
		if m.Error != nil {
			done(nil, m.Error)
			return
		}
		done(m.Result, nil)
	}
}

// end answers everything that waits. Commands that come later are answered at once.
func (p *peer) end(err error) {
	p.mu.Lock()
	if p.err == nil {
		p.err = err
	}
	pending := p.pending
	p.pending = make(map[int64]func(json.RawMessage, error))
	p.settle()
	p.mu.Unlock()
	for _, done := range pending {
		done(nil, err)
	}
}

// link is a WebSocket to an inspector, with a peer on it.
type link struct {
	*peer
	ws *websocket.Conn
	// closed is closed when the reader has ended.
	closed chan struct{}

	wmu     sync.Mutex // guards all below
	wake    sync.Cond
	waiting [][]byte
	bytes   int
	over    bool
}

// dial opens a connection. event is called from its reader; it must not wait
// for answers of the same connection.
func dial(ctx context.Context, url string, event func(method string, params json.RawMessage)) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	d := websocket.Dialer{
		NetDialContext:  (&net.Dialer{Timeout: dialTimeout}).DialContext,
		ReadBufferSize:  64 << 10,
		WriteBufferSize: 16 << 10,
	}
	ws, res, err := d.DialContext(ctx, url, nil)
	if err != nil {
		if res != nil {
			return nil, fmt.Errorf("v8: connect to %s: the inspector answered %s", url, res.Status)
		}
		return nil, fmt.Errorf("v8: connect to %s: %w", url, err)
	}
	l := &link{ws: ws, closed: make(chan struct{})}
	l.wake.L = &l.wmu
	l.peer = newPeer(l.enqueue, event)
	go l.write()
	go l.read()
	return l, nil
}

// enqueue hands a command to the writer.
func (l *link) enqueue(data []byte) error {
	l.wmu.Lock()
	defer l.wmu.Unlock()
	switch {
	case l.over:
		return errHungUp
	case len(l.waiting) >= maxWaiting || l.bytes > maxWaitingBytes:
		return fmt.Errorf("v8: %d commands wait for a program that does not read them", len(l.waiting))
	}
	l.waiting = append(l.waiting, data)
	l.bytes += len(data)
	l.wake.Signal()
	return nil
}

// write writes commands until the connection ends.
func (l *link) write() {
	defer l.ws.Close()
	for {
		l.wmu.Lock()
		for len(l.waiting) == 0 && !l.over {
			l.wake.Wait()
		}
		batch, over := l.waiting, l.over
		l.waiting, l.bytes = nil, 0
		l.wmu.Unlock()
		for _, data := range batch {
			if err := writeText(l.ws.NetConn(), data); err != nil {
				return
			}
		}
		if over {
			l.linger()
			_ = l.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Now().Add(time.Second))
			return
		}
	}
}

// linger waits for what the program still has to answer. Node falls over an answer
// that it is about to write to a connection that has just been closed.
func (l *link) linger() {
	t := time.NewTimer(lingerWithin)
	defer t.Stop()
	select {
	case <-l.settled():
	case <-l.closed:
	case <-t.C:
	}
}

// writeText writes a text as one frame, in one write, between which no other can
// come: inspectors of Node hang up when a message comes in several frames, which
// is how the library sends those that are larger than its buffer.
func writeText(c net.Conn, data []byte) error {
	const final, text, masked = 0x80, 1, 0x80
	frame := make([]byte, 0, len(data)+14)
	frame = append(frame, final|text)
	switch n := len(data); {
	case n < 126:
		frame = append(frame, masked|byte(n))
	case n < 1<<16:
		frame = binary.BigEndian.AppendUint16(append(frame, masked|126), uint16(n))
	default:
		frame = binary.BigEndian.AppendUint64(append(frame, masked|127), uint64(n))
	}
	// A mask guards against proxies that take texts for requests. There is none on the way to an inspector.
	key := [4]byte{}
	binary.BigEndian.PutUint32(key[:], rand.Uint32())
	frame = append(frame, key[:]...)
	start := len(frame)
	frame = append(frame, data...)
	for i := range data {
		frame[start+i] ^= key[i&3]
	}
	if err := c.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	_, err := c.Write(frame)
	return err
}

// close ends the connection. It returns at once; what was sent before still goes
// out, and is answered if that takes no longer than lingerWithin.
func (l *link) close() {
	l.wmu.Lock()
	defer l.wmu.Unlock()
	l.over = true
	l.wake.Signal()
}
