package producer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/nats-io/nats.go"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/realm"
	"github.com/natscope/natscope/subjects/source"
)

// The bounds of commands.
const (
	// maxCommands is how many commands of one source run at once; more are answered with realm.CodeBusy.
	maxCommands = 32
	// maxCapabilities is how many capabilities a descriptor lists.
	maxCapabilities = 64
	// commandGrace is how long the end of a producer waits for functions that were told to stop.
	commandGrace = time.Second
)

// CommandFunc carries a command out. It runs on a goroutine of its own, never
// the loop's, and should return when ctx ends: whoever asked hears of a timeout
// then, but the function counts as running until it returns. Its result becomes
// JSON; json.RawMessage goes as it is. An error that is, or wraps, a sentinel or
// an Error of package realm travels with its code, any other one as
// realm.CodeFailed. A panic is contained and becomes such an error.
type CommandFunc func(ctx context.Context, params json.RawMessage) (any, error)

// OnCommand says who carries out a method, and lists it among the source's
// capabilities. The last function wins; nil removes it. Methods that nobody
// carries out are answered with realm.CodeUnsupported. The producer itself
// answers realm.MethodPing, and a function for it is never called.
func (p *Producer) OnCommand(method string, h CommandFunc) {
	if !p.commands.handle(realm.Method(method), h) {
		return
	}
	p.mu.Lock()
	p.advertise()
	p.mu.Unlock()
	p.wake()
}

// advertise brings the descriptor's capabilities up to date. The caller holds p.mu.
func (p *Producer) advertise() {
	list := slices.Concat(p.declared, p.commands.methods(), p.sessions.methods())
	slices.Sort(list)
	list = slices.Compact(list)
	list = list[:min(len(list), maxCapabilities)]
	if slices.Equal(list, p.descriptor.Capabilities) {
		return
	}
	p.descriptor.Capabilities = list
	if p.update == nil {
		p.update = new(source.Update)
	}
	p.update.Capabilities = &list
}

// sessionKey finds the session of a command in its context.
type sessionKey struct{}

// SessionOf returns who asked for the command whose context this is, for Emit;
// false when nobody wants to hear of events.
func SessionOf(ctx context.Context) (realm.Session, bool) {
	s, ok := ctx.Value(sessionKey{}).(realm.Session)
	return s, ok
}

// commands carries out what gateways ask of a source.
type commands struct {
	p *Producer
	// limit is the most bytes of an answer for the server that is connected, 0 while there is none.
	limit atomic.Int64
	// paced holds a token while a long answer is sent.
	paced chan struct{}
	// counts is what Stats tells.
	done, failed, refused atomic.Uint64

	mu       sync.Mutex // guards all below
	handlers map[realm.Method]CommandFunc
	running  map[*call]struct{}
	closed   bool
	// idle is closed once nothing runs any more and nothing will.
	idle chan struct{}
}

func newCommands(p *Producer) *commands {
	return &commands{p: p, handlers: make(map[realm.Method]CommandFunc), running: make(map[*call]struct{}), idle: make(chan struct{}), paced: make(chan struct{}, 1)}
}

// handle sets or removes a function and reports whether that changes what the source can do.
func (c *commands) handle(m realm.Method, h CommandFunc) bool {
	if m == "" || m == realm.MethodPing {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, before := c.handlers[m]
	if h == nil {
		delete(c.handlers, m)
		return before
	}
	c.handlers[m] = h
	return !before
}

func (c *commands) methods() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]string, 0, len(c.handlers))
	for m := range c.handlers {
		out = append(out, string(m))
	}
	return out
}

// call is a command that runs. It is answered once, whatever comes first.
type call struct {
	msg    *nats.Msg
	cancel context.CancelFunc
	once   sync.Once
}

// take starts a command, or answers it at once when it cannot run. It never blocks.
func (c *commands) take(m *nats.Msg, r realm.Request) {
	x := &call{msg: m}
	c.mu.Lock()
	h := c.handlers[r.Method]
	if h == nil && !c.closed {
		c.mu.Unlock()
		if !c.p.sessions.take(m, r) {
			c.answer(x, nil, fmt.Errorf("%w: this source does not support %.80q", realm.ErrUnsupported, r.Method))
		}
		return
	}
	switch {
	case c.closed:
		c.mu.Unlock()
		c.answer(x, nil, fmt.Errorf("%w: the program ends", realm.ErrGone))
		return
	case len(c.running) >= maxCommands:
		c.mu.Unlock()
		c.answer(x, nil, fmt.Errorf("%w: %d commands run in this source already; ask again", realm.ErrBusy, maxCommands))
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), r.Deadline(c.p.o.Limits.Command))
	if r.Session != nil {
		ctx = context.WithValue(ctx, sessionKey{}, *r.Session)
	}
	x.cancel = cancel
	c.running[x] = struct{}{}
	c.mu.Unlock()
	c.p.sessions.saw(r.Session)
	go c.run(ctx, x, r, h)
}

// run carries a command out.
func (c *commands) run(ctx context.Context, x *call, r realm.Request, h CommandFunc) {
	late := context.AfterFunc(ctx, func() {
		c.answer(x, nil, fmt.Errorf("%w: the source did not finish %s in time; it may still do it", realm.ErrTimeout, r.Method))
	})
	result, err := any(nil), fmt.Errorf("%w: the function for %s ended its goroutine", realm.ErrFailed, r.Method)
	defer func() {
		if late() {
			c.answer(x, result, err)
		}
		x.cancel()
		c.finished(x)
	}()
	if e := contained(func() { result, err = h(ctx, r.Params) }); e != nil {
		err = fmt.Errorf("%w: %w", realm.ErrFailed, e)
		c.p.trouble("command failed", fmt.Errorf("producer: the function for %s failed: %w", r.Method, e))
	}
}

// finished frees the place of a command.
func (c *commands) finished(x *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.running, x)
	if c.closed && len(c.running) == 0 {
		close(c.idle)
	}
}

// answer answers a command unless that has happened.
func (c *commands) answer(x *call, result any, err error) {
	x.once.Do(func() {
		data := c.encode(result, err)
		switch {
		case x.msg.Reply == "":
		case c.isLong(data):
			c.p.events.answer(nil, x.msg.Reply, data)
			c.p.wake()
		default:
			c.send(x.msg, data)
		}
	})
}

// send answers a request, in pieces if the server takes no message as long.
// Whoever asked will time out if this fails; there is nobody else to tell.
func (c *commands) send(m *nats.Msg, data []byte) {
	for _, p := range c.pieces(m.Reply, data) {
		if m.RespondMsg(p) != nil {
			return
		}
	}
}

// The pace of long answers. A server gives a reader up for whom too much waits,
// and with it everything that a gateway shows.
const (
	// piecesAtOnce is how many pieces of an answer are sent before the asker has to say that it has them.
	piecesAtOnce = 4
	// paceWithin is how long the asker may take for that.
	paceWithin = 20 * time.Second
)

// isLong reports whether an answer is sent at the asker's pace.
func (c *commands) isLong(data []byte) bool {
	limit := int(c.limit.Load())
	return limit > 0 && len(data) > piecesAtOnce*limit
}

// sendPaced sends a long answer, one at a time for the whole source. Each few
// pieces it waits for the asker. One that is not heard gets no more.
func (c *commands) sendPaced(ctx context.Context, nc *nats.Conn, pieces []*nats.Msg) {
	select {
	case c.paced <- struct{}{}:
		defer func() { <-c.paced }()
	case <-ctx.Done():
		return
	}
	for i, m := range pieces {
		if (i+1)%piecesAtOnce != 0 || i == len(pieces)-1 {
			if nc.PublishMsg(m) != nil {
				return
			}
			continue
		}
		wait, cancel := context.WithTimeout(ctx, paceWithin)
		_, err := nc.RequestMsgWithContext(wait, m)
		cancel()
		if err != nil {
			// A piece too few would leave the asker waiting; this one ends that.
			data, _ := json.Marshal(realm.AnswerOf(nil, fmt.Errorf("%w: the rest of a long answer could not be sent: %w", realm.ErrFailed, err)))
			_ = nc.PublishMsg(&nats.Msg{Subject: m.Subject, Data: data})
			return
		}
	}
}

// pieces makes the messages of an answer.
func (c *commands) pieces(subject string, data []byte) []*nats.Msg {
	limit := int(c.limit.Load())
	if limit <= 0 || len(data) <= limit {
		return []*nats.Msg{{Subject: subject, Data: data}}
	}
	pieces := subjects.SplitAnswer(data, limit)
	out := make([]*nats.Msg, len(pieces))
	for i, p := range pieces {
		at := subjects.Chunk{Index: i + 1, Count: len(pieces)}
		out[i] = &nats.Msg{Subject: subject, Data: p, Header: nats.Header{subjects.HeaderChunk: {at.String()}}}
	}
	return out
}

// encode makes an answer, and counts it.
func (c *commands) encode(result any, err error) []byte {
	var raw json.RawMessage
	if v, ok := result.(Verbatim); ok && err == nil {
		raw = json.RawMessage(v)
	} else if err == nil && result != nil {
		if e := contained(func() { raw, err = json.Marshal(result) }); e != nil {
			err = e
		}
		if err != nil {
			err = fmt.Errorf("%w: the result is not JSON: %w", realm.ErrFailed, err)
		}
	}
	if err == nil && len(raw) > realm.MaxAnswer {
		err = fmt.Errorf("%w: the result has %d bytes, an answer takes %d; ask for less", realm.ErrTooLarge, len(raw), realm.MaxAnswer)
	}
	switch {
	case err == nil:
		c.done.Add(1)
	case realm.CodeOf(err) == realm.CodeFailed || realm.CodeOf(err) == realm.CodeTimeout:
		c.failed.Add(1)
	default:
		c.refused.Add(1)
	}
	if err != nil {
		data, _ := json.Marshal(realm.AnswerOf(nil, err))
		return data
	}
	if !utf8.Valid(raw) {
		raw = bytes.ToValidUTF8(raw, []byte("\ufffd"))
	}
	// By hand: encoding/json would check and copy the result once more.
	data := append(make([]byte, 0, len(raw)+24), `{"ok":true`...)
	if len(raw) > 0 {
		data = append(append(data, `,"result":`...), raw...)
	}
	return append(data, '}')
}

// close ends all commands and answers them: whoever waits hears at once that the source goes.
func (c *commands) close() {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return
	}
	c.closed = true
	running := make([]*call, 0, len(c.running))
	for x := range c.running {
		running = append(running, x)
	}
	if len(running) == 0 {
		close(c.idle)
	}
	c.mu.Unlock()
	for _, x := range running {
		c.answer(x, nil, fmt.Errorf("%w: the program ends", realm.ErrGone))
		x.cancel()
	}
}

// wait waits a little for the functions that were told to stop. One that does not is left alone.
func (c *commands) wait() {
	t := time.NewTimer(commandGrace)
	defer t.Stop()
	select {
	case <-c.idle:
	case <-t.C:
	}
}

// pong is the answer to a ping. Its result is also beside ok, where the first readers look for it.
type pong struct {
	OK         bool                `json:"ok"`
	Generation subjects.Generation `json:"generation"`
	T          float64             `json:"t"`
	Result     pingResult          `json:"result"`
}

type pingResult struct {
	Generation subjects.Generation `json:"generation"`
	T          float64             `json:"t"`
}

// pong makes the answer to a ping.
func (p *Producer) pong() pong {
	r := pingResult{p.Generation(), p.Now()}
	return pong{OK: true, Generation: r.Generation, T: r.T, Result: r}
}

// onCommand takes what gateways ask. It runs on a goroutine of nats.go.
func (l *loop) onCommand(m *nats.Msg) {
	r, err := realm.ParseRequest(m.Data)
	switch {
	case err != nil:
		respond(m, realm.AnswerOf(nil, err))
	case r.Method == realm.MethodPing && l.p.isClosing():
		// Whoever wants the id may have it.
		respond(m, realm.AnswerOf(nil, fmt.Errorf("%w: the source is closing", realm.ErrGone)))
	case r.Method == realm.MethodPing && l.p.o.Alive != nil:
		l.give(order{kind: orderPing, msg: m, unsure: true})
	case r.Method == realm.MethodPing:
		respond(m, l.p.pong())
	default:
		l.p.commands.take(m, r)
	}
}
