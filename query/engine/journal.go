package engine

import (
	"crypto/rand"
	"encoding/json"
	"sync"
	"time"

	"github.com/natscope/natscope/query"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/console"
	"github.com/natscope/natscope/subjects/network"
	"github.com/natscope/natscope/subjects/tree"
)

// The bounds of the journal.
const (
	// maxJournal is how many events are kept, maxJournalBytes about how many bytes they pin.
	maxJournal      = 16 << 10
	maxJournalBytes = 32 << 20
	// journalIdle is how long the state is followed after the last watch.
	journalIdle = 2 * time.Minute
)

// happening is one event as the journal keeps it: what can change was copied.
type happening struct {
	kind string
	// seq is the stream sequence that the state covered when it happened.
	seq       subjects.StreamSeq
	id        subjects.SourceID
	name      string
	connected bool
	removed   bool
	source    *query.Source
	request   *query.RequestSummary
	console   *console.Entry
	fault     *fold.Fault
	commit    *tree.HistoryCommit
	published *query.Published
	size      int
}

// journal is the recent events of a space, numbered from 1, for any number of
// readers of any speed: it holds no queue for any of them.
type journal struct {
	state State

	// starting serialises the beginning and ending of the watch. It is taken before all other locks.
	starting sync.Mutex
	cancel   func()
	timer    *time.Timer
	closed   bool

	mu sync.Mutex // guards everything below; taken under the state's lock
	// id names this run of the journal.
	id     string
	space  *fold.Space
	events []happening
	// first is the number of events[0], bytes what the events pin.
	first uint64
	bytes int
	// began is what the state covered when this run began, or when its oldest event was dropped.
	began subjects.StreamSeq
	// commits says which commit of a source was told last.
	commits map[subjects.SourceID]uint64
	// changed is closed, and replaced, when events are appended.
	changed chan struct{}
	readers int
	used    time.Time
}

// enter begins the use of the journal, and its following of the state if need be.
func (j *journal) enter() {
	j.starting.Lock()
	defer j.starting.Unlock()
	j.mu.Lock()
	j.readers++
	j.mu.Unlock()
	if j.cancel != nil {
		return
	}
	j.cancel = j.state.Watch(func(s *fold.Space) {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.restart(s)
	}, j)
	j.timer = time.AfterFunc(journalIdle, j.idle)
}

func (j *journal) leave() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.readers--
	j.used = time.Now()
}

// idle ends the following when nobody has read for a while.
func (j *journal) idle() {
	j.starting.Lock()
	defer j.starting.Unlock()
	j.mu.Lock()
	rest := journalIdle - time.Since(j.used)
	if j.readers > 0 {
		rest = journalIdle
	}
	j.mu.Unlock()
	if rest > 0 && !j.closed {
		j.timer.Reset(rest)
		return
	}
	j.end()
}

// end stops following. The lock starting is held.
func (j *journal) end() {
	if j.cancel == nil {
		return
	}
	j.cancel()
	j.cancel = nil
	j.timer.Stop()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.id, j.space, j.events, j.bytes, j.commits = "", nil, nil, 0, nil
	j.wake()
}

func (j *journal) close() {
	j.starting.Lock()
	defer j.starting.Unlock()
	j.closed = true
	j.end()
}

// restart begins a new run. The lock is held.
func (j *journal) restart(s *fold.Space) {
	j.id, j.space, j.events, j.first, j.bytes, j.began = rand.Text()[:8], s, nil, 1, 0, s.Covered
	j.commits = make(map[subjects.SourceID]uint64)
	for _, src := range s.Sources() {
		j.commits[src.ID] = src.Tree.History.Count
	}
}

// wake tells the readers. The lock is held.
func (j *journal) wake() {
	close(j.changed)
	j.changed = make(chan struct{})
}

// Changed implements replica.Watcher. It runs under the state's write lock and only copies.
func (j *journal) Changed(s *fold.Space, changes []fold.Change) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.space != s {
		j.restart(s)
	}
	before := j.first + uint64(len(j.events))
	for i := range changes {
		if !superseded(changes, i) {
			j.change(s, &changes[i])
		}
	}
	for len(j.events) > maxJournal || j.bytes > maxJournalBytes && len(j.events) > 1 {
		j.bytes -= j.events[0].size
		j.began = j.events[0].seq
		j.events[0] = happening{}
		j.events = j.events[1:]
		j.first++
	}
	if j.first+uint64(len(j.events)) != before {
		j.wake()
	}
}

// superseded reports whether a later change of the same message is about the
// same request: changes of one message all see what it led to in the end.
func superseded(changes []fold.Change, i int) bool {
	if changes[i].Kind != fold.RequestChanged {
		return false
	}
	for _, c := range changes[i+1:] {
		if c.Kind == fold.RequestChanged && c.Request.Request == changes[i].Request.Request && tells(c.Request.Topic) {
			return true
		}
	}
	return false
}

// tells reports whether watches are told of a request when a record of a topic came.
func tells(topic string) bool {
	switch topic {
	case network.TopicStart, network.TopicResponse, network.TopicEnd, network.TopicError:
		return true
	}
	return false
}

// change appends what one change means to watches.
func (j *journal) change(s *fold.Space, c *fold.Change) {
	src := c.Source
	h := happening{seq: s.Covered, id: src.ID, name: src.Name(), connected: src.Connected, size: 200}
	switch c.Kind {
	case fold.SourceOpened, fold.SourceUpdated, fold.SourceClosed, fold.PresenceChanged:
		d := describe(src)
		h.kind, h.source, h.size = query.EventSource, &d, 1000
	case fold.SourceRemoved:
		delete(j.commits, src.ID)
		h.kind, h.removed = query.EventSource, true
	case fold.RequestChanged:
		if !tells(c.Request.Topic) {
			return
		}
		a := summary(src.ID, c.Request.Request)
		h.kind, h.request, h.size = query.EventRequest, &a, 500+len(a.URL)
	case fold.ConsoleAdded:
		h.kind, h.console, h.size = query.EventConsole, c.Console, 500+entrySize(c.Console)
	case fold.FaultAdded:
		f := *c.Fault
		h.kind, h.fault, h.size = query.EventFault, &f, 300+len(f.Text)
	case fold.EventPublished:
		p := publishedOf(src, c.Event)
		h.kind, h.published, h.size = query.EventPublished, &p, 300+len(c.Event.Data)
	case fold.TreeChanged:
		j.committed(src, h)
		return
	default:
		return
	}
	j.append(h)
}

// committed appends the commits of a source that are new.
func (j *journal) committed(src *fold.Source, h happening) {
	history := &src.Tree.History
	fresh, _ := history.Since(j.commits[src.ID])
	j.commits[src.ID] = history.Count
	for i := range fresh {
		h.kind, h.commit, h.size = query.EventCommit, &fresh[i], 300
		for k := range fresh[i].Changes {
			c := &fresh[i].Changes[k]
			h.size += 200 + len(c.From) + len(c.To)
		}
		j.append(h)
	}
}

func (j *journal) append(h happening) {
	j.events = append(j.events, h)
	j.bytes += h.size
}

func entrySize(e *console.Entry) int {
	if e.Message == nil {
		return len(e.Exception.Value) + 200*len(e.Exception.Stack)
	}
	n := 200 * len(e.Message.Stack)
	for _, a := range e.Message.Args {
		n += len(a)
	}
	return n
}

func publishedOf(src *fold.Source, r *subjects.Record) query.Published {
	p := query.Published{Topic: clean(r.Topic, maxPath), Data: json.RawMessage(r.Data)}
	if src.Life.Opened {
		p.Time = millis(src.Life.Wall(r.T))
	}
	return p
}

// end of the journal: the number behind its newest event. The lock is held.
func (j *journal) next() uint64 { return j.first + uint64(len(j.events)) }

// place returns the mark of the present. It may be called under the state's lock.
func (j *journal) place(v view) mark {
	j.mu.Lock()
	defer j.mu.Unlock()
	return mark{journal: j.id, next: j.next(), epoch: v.epoch, seq: v.space.Covered}
}

// find turns a mark into one of this run. exact says that the mark is of this
// run already; otherwise what no message told, such as the presence of sources,
// may have been told differently. ok is false when events between are gone.
func (j *journal) find(m mark, epoch query.Epoch) (found mark, exact, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if m.journal == j.id {
		return m, true, m.next >= j.first && m.next <= j.next()
	}
	// The mark is that of another gateway, or of an earlier run: the stream is what both know.
	if m.epoch != epoch || m.seq < j.began {
		return mark{}, false, false
	}
	i := 0
	for i < len(j.events) && j.events[i].seq <= m.seq {
		i++
	}
	m.journal, m.next = j.id, j.first+uint64(i)
	return m, false, true
}

// batch is how many events are copied under the lock at once.
const batch = 256

// read returns events from a number on, and what tells of more. ok is false when the number is gone.
func (j *journal) read(next uint64) (events []happening, changed <-chan struct{}, id string, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if next < j.first || next > j.next() {
		return nil, nil, j.id, false
	}
	from := next - j.first
	to := min(from+batch, uint64(len(j.events)))
	return append([]happening(nil), j.events[from:to]...), j.changed, j.id, true
}
