package ingest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/natscope/natscope/subjects/realm"
)

const (
	// maxParts bounds the pieces of one answer, maxParted the bytes of all
	// answers of one page that are not whole yet.
	maxParts  = 1024
	maxParted = 128 << 20
)

// relay knows which commands a page has not answered yet. It is safe for
// concurrent use, and calls nobody while it holds its lock.
type relay struct {
	mu      sync.Mutex // guards all below; it is a leaf
	last    uint64
	waiting map[uint64]*question
	// parted is how many bytes of answers came that are not whole yet.
	parted int
}

// question is a command on its way.
type question struct {
	conn *conn
	done func(json.RawMessage, error)
	// stop ends the watch over the asker's context.
	stop  func() bool
	parts []string
	size  int
}

func newRelay() *relay { return &relay{waiting: make(map[uint64]*question)} }

// begin notes a command and returns its number. done is called once, never by begin itself.
func (r *relay) begin(ctx context.Context, c *conn, done func(json.RawMessage, error)) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	id := r.last
	q := &question{conn: c, done: done}
	r.waiting[id] = q
	q.stop = context.AfterFunc(ctx, func() { r.fail(id, fmt.Errorf("%w: the page did not answer in time", ctx.Err())) })
	return id
}

// take removes a command that is over; nil if it is already.
func (r *relay) take(id uint64) *question {
	r.mu.Lock()
	defer r.mu.Unlock()
	q := r.waiting[id]
	if q != nil {
		delete(r.waiting, id)
		r.parted -= q.size
	}
	return q
}

func (r *relay) fail(id uint64, err error) {
	if q := r.take(id); q != nil {
		q.stop()
		q.done(nil, err)
	}
}

// answered hands an answer to whoever waits for it. An answer that nobody waits for changes nothing.
func (r *relay) answered(id uint64, a realm.Answer) {
	q := r.take(id)
	if q == nil {
		return
	}
	q.stop()
	switch {
	case a.OK:
		q.done(a.Result, nil)
	case a.Error == nil:
		q.done(nil, fmt.Errorf("%w: the page did not say why", realm.ErrFailed))
	default:
		q.done(nil, a.Error)
	}
}

// part takes a piece of an answer; the last one makes it whole.
func (r *relay) part(p *AnswerPart) {
	r.mu.Lock()
	q := r.waiting[p.ID]
	if q == nil {
		r.mu.Unlock()
		return
	}
	inOrder := p.Part == len(q.parts)+1
	q.parts = append(q.parts, p.Text)
	q.size += len(p.Text)
	r.parted += len(p.Text)
	full := r.parted > maxParted
	r.mu.Unlock()
	switch {
	case !inOrder:
		r.fail(p.ID, fmt.Errorf("%w: a part of the page's answer is missing", realm.ErrFailed))
	case full:
		r.fail(p.ID, fmt.Errorf("%w: the page answers with more than %d bytes at once", realm.ErrTooLarge, maxParted))
	case p.Part == p.Of:
		var a realm.Answer
		if err := json.Unmarshal([]byte(strings.Join(q.parts, "")), &a); err != nil {
			r.fail(p.ID, fmt.Errorf("%w: the page's answer is not JSON: %w", realm.ErrFailed, err))
			return
		}
		r.answered(p.ID, a)
	}
}

// gone ends every command that a connection carried.
func (r *relay) gone(c *conn) {
	r.mu.Lock()
	var ids []uint64
	for id, q := range r.waiting {
		if q.conn == c {
			ids = append(ids, id)
		}
	}
	r.mu.Unlock()
	for _, id := range ids {
		r.fail(id, fmt.Errorf("%w: the page's connection ended before it answered", realm.ErrGone))
	}
}
