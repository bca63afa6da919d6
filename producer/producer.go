package producer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/natscope/natscope/producer/redact"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/source"
)

// ErrClosed says that the producer was closed.
var ErrClosed = errors.New("producer: closed")

// ErrPayload says that Publish was given a payload that JSON cannot carry without loss. The text around it says what is wrong.
var ErrPayload = errors.New("producer: payload is not lossless JSON")

// identity is what the records of one generation are published under.
type identity struct {
	source     subjects.SourceID
	generation subjects.Generation
}

// Producer is one source. Its methods are safe for concurrent use; those that
// record return at once, whatever the network does.
type Producer struct {
	o      Options
	start  time.Time
	realm  source.RealmID
	ident  atomic.Pointer[identity]
	queues map[subjects.Plane]*queue
	life   *queue
	tree   *queue
	net    *queue
	log    *queue
	event  *queue
	bodies *bodyQueue
	// redactor is nil without rules.
	redactor *redact.Redactor
	// commands are carried out, and events sent to sessions, while the source is connected.
	commands *commands
	sessions *sessions
	events   sessionEvents

	// mu guards all below, which the loop reads.
	mu sync.Mutex
	// descriptor is what the source says of itself now.
	descriptor source.Descriptor
	// declared are the capabilities that the descriptor had before there were functions for commands.
	declared []string
	// update is what changed since the last life record, nil when nothing did.
	update *source.Update
	// snapshot tells the newest state of the tree plane.
	snapshot func() []subjects.Record
	waiters  []*waiter
	closing  bool
	// goodbye is the reason of the closing record.
	goodbye string
	lastErr error

	flags
	loop *loop
	// wakes holds at most one wish that the loop should look.
	wakes chan struct{}
	// cancel ends the loop without waiting for anything, done is closed when it has ended.
	cancel context.CancelFunc
	done   chan struct{}
}

// Start makes a source. It checks the options and returns: the connection is
// made in the background, and made again for ever when it breaks; what is
// recorded meanwhile waits. The error wraps ErrOptions.
func Start(o Options) (*Producer, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	redactor, err := o.Redact.Compile()
	if err != nil {
		return nil, fmt.Errorf("%w: Redact: %w", ErrOptions, err)
	}
	p := &Producer{o: o, redactor: redactor, start: time.Now(), wakes: make(chan struct{}, 1), done: make(chan struct{})}
	generation := generations.next(p.start)
	p.ident.Store(&identity{o.ID, generation})
	if p.descriptor, err = o.describe(p.start, source.RealmID(generation)); err != nil {
		return nil, err
	}
	p.realm, p.declared = p.descriptor.Realm, p.descriptor.Capabilities
	p.commands, p.sessions = newCommands(p), newSessions(p)
	p.life = newQueue(subjects.PlaneLife, refuse, o.Limits)
	p.tree = newQueue(subjects.PlaneTree, coalesce, o.Limits)
	p.net = newQueue(subjects.PlaneNet, dropOldest, o.Limits)
	p.log = newQueue(subjects.PlaneConsole, dropOldest, o.Limits)
	p.event = newQueue(subjects.PlaneEvent, dropOldest, o.Limits)
	p.bodies = newBodyQueue(o.Limits, p.wake)
	p.queues = map[subjects.Plane]*queue{
		subjects.PlaneLife: p.life, subjects.PlaneTree: p.tree, subjects.PlaneNet: p.net,
		subjects.PlaneConsole: p.log, subjects.PlaneEvent: p.event,
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	p.loop = newLoop(ctx, p)
	go p.loop.run()
	return p, nil
}

// ID is the id of the source. It changes when a store says that another living
// program has it: the source then opens again with a number appended.
func (p *Producer) ID() subjects.SourceID { return p.ident.Load().source }

// Generation is the generation that is published now. It changes when the
// source has to open again.
func (p *Producer) Generation() subjects.Generation { return p.ident.Load().generation }

// Space is the namespace of the source.
func (p *Producer) Space() subjects.Space { return p.o.Space }

// Realm names the world that owns the source's live objects, for as long as the producer lives.
func (p *Producer) Realm() source.RealmID { return p.realm }

// Limits are the limits in force, with all defaults filled in.
func (p *Producer) Limits() subjects.Limits { return p.o.Limits }

// Now is the time on the source's clock: milliseconds since Start, monotonic.
func (p *Producer) Now() float64 { return float64(time.Since(p.start)) / float64(time.Millisecond) }

// queue returns the queue of a plane; records of a plane that does not exist travel as events.
func (p *Producer) queue(plane subjects.Plane) *queue {
	switch plane {
	case subjects.PlaneConsole:
		return p.log
	case subjects.PlaneNet:
		return p.net
	case subjects.PlaneTree:
		return p.tree
	case subjects.PlaneLife:
		return p.life
	}
	return p.event
}

// Record enqueues one record at the present time. The payload is encoded as
// encoding/json does it; one that cannot be encoded, or whose methods panic,
// becomes a record that says what was wrong. It must not be changed while
// Record runs, and may be after it. A record that no frame can carry is cut to a
// shorter form that says so.
func (p *Producer) Record(plane subjects.Plane, topic string, payload any) {
	t := p.Now()
	if raw, ok := payload.(json.RawMessage); ok {
		p.RecordAt(plane, topic, t, raw)
		return
	}
	s := scratches.Get().(*scratch)
	data, err := s.encode(payload)
	if err != nil {
		p.record(plane, topic, t, invalid(err.Error(), 0))
		return
	}
	p.record(plane, topic, t, data)
	s.free()
}

// RecordAt enqueues one record with a time of its own, in milliseconds on the
// source's clock. data is copied; what is not one JSON value is replaced by a
// marker that says so, and bytes that are not UTF-8 by the replacement character.
func (p *Producer) RecordAt(plane subjects.Plane, topic string, t float64, data json.RawMessage) {
	if len(data) > 0 {
		data = clean(data)
	}
	p.record(plane, topic, t, data)
}

func (p *Producer) record(plane subjects.Plane, topic string, t float64, data []byte) {
	if topic == "" || len(topic) > maxTopic {
		topic = cleanTopic(topic)
	}
	q := p.queue(plane)
	if q == p.life && p.lifeRecord(topic, data) {
		return
	}
	if q.push(t, topic, data) {
		p.wake()
	}
}

// lifeRecord takes care of the topics of the life plane that the producer
// itself owns, and reports whether the record was one of them.
func (p *Producer) lifeRecord(topic string, data []byte) bool {
	switch topic {
	case source.TopicUpdate:
		var u source.Update
		if err := json.Unmarshal(data, &u); err != nil {
			p.trouble("update ignored", fmt.Errorf("producer: update: %w", err))
			return true
		}
		p.Update(u)
		return true
	case source.TopicOpen, source.TopicClose:
		p.trouble("life record ignored", fmt.Errorf("producer: %s records are written by Start and Close only", topic))
		return true
	}
	return false
}

// Publish enqueues one record on the event plane. Its subject has the levels of
// the topic, which may be any text, dots separating levels. The error wraps
// ErrPayload when the payload is not JSON without loss (NaN, a cycle, a channel,
// invalid UTF-8, too large for a frame), or ErrClosed.
func (p *Producer) Publish(topic string, payload any) error {
	if topic == "" || len(topic) > maxTopic {
		return fmt.Errorf("%w: the topic has %d bytes, it takes 1 to %d", ErrPayload, len(topic), maxTopic)
	}
	s := scratches.Get().(*scratch)
	data, err := s.encode(payload)
	if err != nil {
		return fmt.Errorf("%w: topic %.80q: %w", ErrPayload, topic, err)
	}
	defer s.free()
	if s.repaired {
		return fmt.Errorf("%w: topic %.80q: a part that was JSON already is not UTF-8", ErrPayload, topic)
	}
	if i := replaced(data); i >= 0 {
		return fmt.Errorf("%w: topic %.80q: a string near byte %d is not UTF-8", ErrPayload, topic, i)
	}
	if limit := p.o.Limits.FrameBytes - 6*len(topic) - lineOverhead; len(data) > limit {
		return fmt.Errorf("%w: topic %.80q: %d bytes, the limit is %d", ErrPayload, topic, len(data), limit)
	}
	if p.isClosing() {
		return fmt.Errorf("publish %.80q: %w", topic, ErrClosed)
	}
	p.record(subjects.PlaneEvent, topic, p.Now(), data)
	return nil
}

// replaced returns where encoding/json replaced bytes that are not UTF-8, which
// it does by an escape that it writes for nothing else; -1 if nowhere.
func replaced(data []byte) int {
	const mark = `\ufffd`
	for i := 0; i+len(mark) <= len(data); i++ {
		if data[i] != '\\' {
			continue
		}
		if string(data[i:i+len(mark)]) == mark {
			return i
		}
		i++ // the escaped character
	}
	return -1
}

// Update says what changed about the source: address, title, visibility, and
// capabilities besides those of OnCommand.
// Updates that come faster than they can be sent are merged; the newest values win.
func (p *Producer) Update(u source.Update) {
	cut := func(s *string) *string {
		if s == nil {
			return nil
		}
		c := cutText(*s, maxDescriptorText)
		return &c
	}
	u.URL, u.Title = cut(u.URL), cut(u.Title)
	p.mu.Lock()
	if p.update == nil {
		p.update = new(source.Update)
	}
	d, n := &p.descriptor, p.update
	if u.URL != nil {
		d.URL, n.URL = *u.URL, u.URL
	}
	if u.Title != nil {
		d.Title, n.Title = *u.Title, u.Title
	}
	if u.Visible != nil {
		v := *u.Visible
		d.Visible, n.Visible = &v, &v
	}
	if u.Capabilities != nil {
		p.declared = slices.Clone(*u.Capabilities)
		p.advertise()
	}
	p.mu.Unlock()
	p.wake()
}

// Lost counts n records of a plane that were lost before they reached the
// producer. The next frame of the plane says so.
func (p *Producer) Lost(plane subjects.Plane, n uint64) {
	if n > 0 {
		p.queue(plane).lose(n)
	}
}

// OnSnapshot says who tells the newest state of the tree plane. f runs on a
// goroutine of its own whenever that plane must be sent anew, because its queue
// overflowed, a store asks, or the source opens again. What waited on the plane
// is discarded before f runs, and what it returns goes out before everything
// that was recorded since. So f must return a state that contains all that was
// recorded before the call, and records that it contains must do no harm when
// they follow it: tree revisions see to both. The times of its records are
// theirs. The last function wins; nil removes it.
func (p *Producer) OnSnapshot(f func() []subjects.Record) {
	p.mu.Lock()
	p.snapshot = f
	p.mu.Unlock()
	p.tree.mu.Lock()
	p.tree.canCoalesce = f != nil
	p.tree.needSnapshot = p.tree.needSnapshot && f != nil
	p.tree.mu.Unlock()
	p.wake()
}

// Resnapshot asks for the tree plane to be sent anew. It returns at once.
func (p *Producer) Resnapshot() {
	p.tree.mu.Lock()
	p.tree.needSnapshot = p.tree.canCoalesce
	p.tree.mu.Unlock()
	p.wake()
}

// who describes the program for people.
func (p *Producer) who() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.descriptor.Who()
}

// notice records something about the source as a whole.
func (p *Producer) notice(text string) {
	data, _ := json.Marshal(source.Notice{Text: cutText(text, 2<<10)})
	if p.life.push(p.Now(), source.TopicNotice, data) {
		p.wake()
	}
}

// wake makes the loop look. It never blocks.
func (p *Producer) wake() {
	select {
	case p.wakes <- struct{}{}:
	default:
	}
}

func (p *Producer) isClosing() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closing
}

// trouble keeps an error for Stats and logs it.
func (p *Producer) trouble(what string, err error) {
	p.mu.Lock()
	known := p.lastErr != nil && p.lastErr.Error() == err.Error()
	p.lastErr = err
	p.mu.Unlock()
	if !known {
		p.o.Logger.Warn("natscope: "+what, "source", string(p.ID()), "error", err)
	}
}
