package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/natscope/natscope/subjects"
)

// AskCordis asks for the trees of all Cordis runtimes of the space.
const AskCordis = "cordis"

const (
	// maxAsking is how many questions of one page are under way at once.
	maxAsking = 8
	// maxReply bounds an answer, in bytes.
	maxReply = 16 << 20
)

// PageQuestion is what a page asks.
type PageQuestion struct {
	// ID numbers the questions of a page, from 1.
	ID uint64 `json:"id"`
	// What is AskCordis.
	What string `json:"what"`
}

// Reply answers a PageQuestion.
type Reply struct {
	Type string `json:"type"`
	// ID is the question's.
	ID uint64 `json:"id"`
	// Result is the answer, absent with an Error.
	Result json.RawMessage `json:"result,omitempty"`
	// Error is a sentence for people.
	Error string `json:"error,omitempty"`
}

func (q *PageQuestion) check() error {
	if q.ID == 0 {
		return errors.New("id is missing")
	}
	return nil
}

// question answers what a page asks, in a goroutine of its own.
func (x *session) question(c *conn, q *PageQuestion) {
	reply := func(result json.RawMessage, err error) {
		r := Reply{Type: MsgReply, ID: q.ID, Result: result}
		if err != nil {
			r.Result, r.Error = nil, err.Error()
		}
		c.send(r)
	}
	if q.What != AskCordis {
		reply(nil, fmt.Errorf("this server answers no questions of the kind %.40q", q.What))
		return
	}
	x.mu.Lock()
	busy := x.asking >= maxAsking || x.ended
	if !busy {
		x.asking++
	}
	x.mu.Unlock()
	if busy {
		reply(nil, fmt.Errorf("%d questions of this page are under way already", maxAsking))
		return
	}
	x.server.wg.Add(1)
	go func() {
		defer x.server.wg.Done()
		ctx, cancel := context.WithTimeout(context.Background(), x.server.o.Limits.Query)
		defer cancel()
		stop := context.AfterFunc(x.server.stopping, cancel)
		defer stop()
		reply(x.server.cordis(ctx))
		x.mu.Lock()
		x.asking--
		x.mu.Unlock()
	}()
}

// cordis asks the query service.
func (s *Server) cordis(ctx context.Context) (json.RawMessage, error) {
	inbox := s.o.Conn.NewInbox()
	sub, err := s.o.Conn.SubscribeSync(inbox)
	if err != nil {
		return nil, fmt.Errorf("the query service cannot be asked: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }() // It fails only when the connection is closed.
	if err := s.o.Conn.PublishRequest(subjects.QueryVerb(s.o.Space, AskCordis), inbox, []byte("{}")); err != nil {
		return nil, fmt.Errorf("the query service cannot be asked: %w", err)
	}
	var data []byte
	next := 1
	for {
		m, err := sub.NextMsgWithContext(ctx)
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			return nil, errors.New("no query service answered in time; natscope up has one")
		case errors.Is(err, nats.ErrNoResponders):
			return nil, errors.New("there is no query service in this space; natscope up has one")
		case err != nil:
			return nil, fmt.Errorf("the query service did not answer: %w", err)
		case m.Header.Get("Nats-Service-Error-Code") != "":
			return nil, fmt.Errorf("the query service refuses: %s", m.Header.Get("Nats-Service-Error"))
		}
		part, err := subjects.ParseChunk(subjects.Header(m.Header))
		if err != nil || part.Index != next || len(data)+len(m.Data) > maxReply {
			return nil, errors.New("the answer of the query service is larger than a page gets, or parts of it are missing")
		}
		data = append(data, m.Data...)
		if next++; part.Index == part.Count {
			return treeOf(data)
		}
	}
}

// treeOf takes the trees out of an answer.
func treeOf(data []byte) (json.RawMessage, error) {
	var a struct {
		Tree json.RawMessage `json:"tree"`
	}
	if err := json.Unmarshal(data, &a); err != nil || a.Tree == nil {
		return nil, errors.New("the answer of the query service cannot be read; it may be of another version")
	}
	return a.Tree, nil
}
