package command

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/realm"
)

// maxWaiting bounds the commands that wait for answers.
const maxWaiting = 16 << 10

// nobody stands for the session of a command without one, in its reply subject.
const nobody = "-"

// NATS is the Commander over a NATS connection.
type NATS struct {
	nc      *nats.Conn
	space   subjects.Space
	gateway subjects.GatewayID
	sub     *nats.Subscription
	// prefix begins the tokens of this Commander, last counts them.
	prefix string
	last   atomic.Uint64

	mu       sync.Mutex // guards all below
	waiting  map[string]*waiting
	listener func(Event)
	closed   bool
}

// waiting is a command whose answer did not come yet.
type waiting struct {
	// answer holds the answer, or an error. It has room for one.
	answer chan answered
	// parts are the pieces so far; they belong to the callback.
	parts []byte
	next  int
}

type answered struct {
	data []byte
	err  error
}

// New returns a Commander that names itself gateway, which is unique among those
// of the space. The connection outlives it.
func New(nc *nats.Conn, space subjects.Space, gateway subjects.GatewayID) (*NATS, error) {
	if !subjects.IsToken(string(space)) || !subjects.IsToken(string(gateway)) {
		return nil, fmt.Errorf("command: space %.80q, gateway %.80q: %w", space, gateway, subjects.ErrToken)
	}
	// What another process with the same name is answered must not be taken for its own.
	c := &NATS{nc: nc, space: space, gateway: gateway, prefix: strings.ToLower(rand.Text()[:8]), waiting: make(map[string]*waiting)}
	sub, err := nc.Subscribe(subjects.SessionsOf(space, gateway), c.received)
	if err != nil {
		return nil, fmt.Errorf("command: listen to answers and events: %w", err)
	}
	// A burst of events must not cost an answer: the bound is that of the sources.
	_ = sub.SetPendingLimits(1<<20, 256<<20)
	c.sub = sub
	return c, nil
}

// Close ends it. Commands that wait fail. It is idempotent.
func (c *NATS) Close() {
	c.mu.Lock()
	all := c.waiting
	c.waiting, c.closed = nil, true
	c.mu.Unlock()
	for _, w := range all {
		w.answer <- answered{err: errClosed}
	}
	_ = c.sub.Unsubscribe()
}

var errClosed = fmt.Errorf("%w: the gateway is stopping", realm.ErrFailed)

// Do implements Commander.
func (c *NATS) Do(ctx context.Context, src subjects.SourceID, gen subjects.Generation, r realm.Request) (json.RawMessage, error) {
	answer, err := c.Start(ctx, src, gen, r)
	if err != nil {
		return nil, err
	}
	return answer()
}

// Start implements Commander.
func (c *NATS) Start(ctx context.Context, src subjects.SourceID, gen subjects.Generation, r realm.Request) (Pending, error) {
	if deadline, ok := ctx.Deadline(); ok {
		r.DeadlineMS = max(time.Until(deadline).Milliseconds(), 1)
	}
	data, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", realm.ErrMalformed, r.Method, err)
	}
	token := c.prefix + strconv.FormatUint(c.last.Add(1), 36)
	w := &waiting{answer: make(chan answered, 1), next: 1}
	if err := c.expect(token, w); err != nil {
		return nil, err
	}
	if err := c.nc.PublishMsg(&nats.Msg{Subject: subjects.Command(c.space, src, gen), Reply: c.reply(src, r.Session, token), Data: data}); err != nil {
		c.forget(token)
		if errors.Is(err, nats.ErrMaxPayload) {
			return nil, fmt.Errorf("%w: the command has %d bytes, more than a message takes", realm.ErrTooLarge, len(data))
		}
		return nil, fmt.Errorf("%w: the gateway could not reach %s: %w", realm.ErrFailed, src, err)
	}
	return func() (json.RawMessage, error) { return c.wait(ctx, src, r.Method, token, w) }, nil
}

// wait waits for the answer to a command that was sent.
func (c *NATS) wait(ctx context.Context, src subjects.SourceID, m realm.Method, token string, w *waiting) (json.RawMessage, error) {
	select {
	case a := <-w.answer:
		if a.err != nil {
			if errors.Is(a.err, nats.ErrNoResponders) {
				return nil, fmt.Errorf("%w: the program behind %s is gone", realm.ErrGone, src)
			}
			return nil, a.err
		}
		return realm.ParseAnswer(a.data)
	case <-ctx.Done():
		c.forget(token)
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, fmt.Errorf("%w: %s did not answer in time; it may still do what was asked", realm.ErrTimeout, src)
		}
		return nil, fmt.Errorf("%w: nobody waits for %s any more: %w", realm.ErrCanceled, m, ctx.Err())
	}
}

// reply returns the subject to which a command is answered.
func (c *NATS) reply(src subjects.SourceID, s *realm.Session, token string) string {
	id := subjects.SessionID(nobody)
	if s != nil && s.Gateway == string(c.gateway) && subjects.IsToken(s.ID) {
		id = subjects.SessionID(s.ID)
	}
	return subjects.Reply(c.space, src, c.gateway, id, token)
}

// Tell implements Commander.
func (c *NATS) Tell(src subjects.SourceID, gen subjects.Generation, r realm.Request) error {
	data, err := json.Marshal(r)
	if err == nil {
		err = c.nc.Publish(subjects.Command(c.space, src, gen), data)
	}
	if err != nil {
		return fmt.Errorf("command: tell %s of %s: %w", src, r.Method, err)
	}
	return nil
}

func (c *NATS) expect(token string, w *waiting) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return errClosed
	case len(c.waiting) >= maxWaiting:
		return fmt.Errorf("%w: %d commands of this gateway wait for answers", realm.ErrBusy, len(c.waiting))
	}
	c.waiting[token] = w
	return nil
}

func (c *NATS) forget(token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, token)
}

// received takes an answer or an event. It runs on the subscription's goroutine.
func (c *NATS) received(m *nats.Msg) {
	src, _, session, token, err := subjects.ParseReply(m.Subject)
	if err != nil {
		return
	}
	if token != "" {
		c.answered(token, m)
		if m.Reply != "" {
			_ = m.Respond(nil) // The source goes on with the next pieces.
		}
		return
	}
	c.mu.Lock()
	f := c.listener
	c.mu.Unlock()
	e := Event{Source: src, Session: session}
	if m.Reply != "" {
		e.acknowledge = func() { _ = m.Respond(nil) }
	}
	// What is no event is a fault of the source that nobody here can mend.
	if e.Event, err = realm.ParseEvent(m.Data); err != nil || f == nil {
		e.Acknowledge()
		return
	}
	f(e)
}

// answered takes one piece of an answer, or all of it.
func (c *NATS) answered(token string, m *nats.Msg) {
	c.mu.Lock()
	w := c.waiting[token]
	c.mu.Unlock()
	if w == nil {
		return
	}
	a := answered{data: m.Data}
	at, err := subjects.ParseChunk(subjects.Header(m.Header))
	switch {
	case len(m.Data) == 0 && m.Header.Get("Status") == "503":
		a.err = nats.ErrNoResponders
	case err != nil:
		a.err = fmt.Errorf("%w: %w", realm.ErrMalformed, err)
	case at.Index != w.next && at.Count > 1:
		a.err = fmt.Errorf("%w: piece %d of an answer came where piece %d was due", realm.ErrFailed, at.Index, w.next)
	case at.Count > 1:
		if len(w.parts)+len(m.Data) > realm.MaxAnswer+1<<10 {
			a.err = fmt.Errorf("%w: the answer has more than %d bytes", realm.ErrTooLarge, realm.MaxAnswer)
			break
		}
		w.parts = append(w.parts, m.Data...)
		w.next++
		if at.Index < at.Count {
			return
		}
		a.data = w.parts
	}
	c.mu.Lock()
	// Close may have answered it.
	w = c.waiting[token]
	delete(c.waiting, token)
	c.mu.Unlock()
	if w != nil {
		w.answer <- a
	}
}

// Listen implements Commander.
func (c *NATS) Listen(f func(Event)) (func(), error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.listener != nil {
		return nil, errors.New("command: somebody listens already")
	}
	c.listener = f
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.listener = nil
	}, nil
}

// Audit implements Commander. The acknowledgement is the stream's.
func (c *NATS) Audit(ctx context.Context, a realm.Audit) error {
	data, err := json.Marshal(a.Bound())
	if err != nil {
		return fmt.Errorf("command: audit: %w", err)
	}
	m, err := c.nc.RequestWithContext(ctx, subjects.Audit(c.space, c.gateway), data)
	if err != nil {
		return fmt.Errorf("command: audit: %w", err)
	}
	var ack struct {
		Stream string          `json:"stream"`
		Error  json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(m.Data, &ack); err != nil || ack.Stream == "" || ack.Error != nil {
		return fmt.Errorf("command: audit: the stream did not take the record: %.200s", m.Data)
	}
	return nil
}

var _ Commander = (*NATS)(nil)
