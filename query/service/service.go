// Package service answers the questions of package query over NATS, as a micro
// service that the nats command line lists, too.
//
// It owns the subjects' endpoints, the bound on questions that run at once, and
// the cutting of answers that are larger than a message. It must not know how
// questions are answered.
//
// Goroutines: one for each question that is being answered, at most MaxRunning;
// each ends with its answer or its deadline, and Close waits for them.
package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/natscope/natscope/query"
	"github.com/natscope/natscope/subjects"
)

// Name is the name of the micro service.
const Name = "natscope-query"

// apiVersion is the version of the questions and answers, as micro services have one.
const apiVersion = "1.0.0"

// MaxRunning is how many questions are answered at once; watches that wait count.
const MaxRunning = 512

// ErrOptions says that Options cannot be used; the text names the field.
var ErrOptions = errors.New("service: invalid options")

// Options configure a Service.
type Options struct {
	// Conn is the connection to answer on. Required; it outlives the service.
	Conn *nats.Conn
	// Space is the space that API answers for; subjects.DefaultSpace if empty.
	Space subjects.Space
	// API answers the questions. Required.
	API query.API
	// ChangesFor answers those questions that can change a program, in the name of
	// whoever asks, as far as a message tells. Nil means that API answers them, too.
	ChangesFor func(a Asker) query.API
	// Limits bounds how long a question may take; zero fields mean the defaults.
	Limits subjects.Limits
	// Logger takes what an operator should know; nil means silence.
	Logger *slog.Logger
}

// Asker is what a message tells about who sent it.
type Asker struct {
	// Says is who the asker says that it is; nobody has checked it. It is empty or at most 200 bytes.
	Says string
	// Inbox is where the answer goes, without its random end. NATS lets the users
	// that natscope auth makes hear nothing but an inbox with their own name.
	Inbox string
}

// askerOf reads what a message tells about who sent it.
func askerOf(r micro.Request) Asker {
	says := r.Headers().Get(subjects.HeaderWho)
	if len(says) > 200 {
		says = says[:200]
	}
	inbox, _, _ := strings.Cut(r.Reply(), ".")
	return Asker{Says: strings.ToValidUTF8(says, "\ufffd"), Inbox: inbox}
}

// tally counts the answers to one verb. The figures that package micro keeps end
// when a question was taken, which is before it is answered.
type tally struct{ answered, refused atomic.Uint64 }

// Tally is what an endpoint says of itself when it is asked for its statistics, as
// by nats micro stats.
type Tally struct {
	// Answered is how many questions got what they asked for, Refused how many an error.
	Answered uint64 `json:"answered"`
	Refused  uint64 `json:"refused"`
}

// Service is a running service.
type Service struct {
	conn  *nats.Conn
	api   query.API
	as    func(Asker) query.API
	limit time.Duration
	log   *slog.Logger
	micro micro.Service
	slots chan struct{}
	// tallies has an entry for each verb and is not changed after Start.
	tallies map[string]*tally

	ctx     context.Context
	cancel  context.CancelFunc
	mu      sync.Mutex // guards closed
	closed  bool
	running sync.WaitGroup
}

// Start answers questions until Close. The error wraps ErrOptions, or is that of NATS.
func Start(o Options) (*Service, error) {
	switch {
	case o.Conn == nil:
		return nil, fmt.Errorf("%w: Conn is nil; pass the NATS connection to answer on", ErrOptions)
	case o.API == nil:
		return nil, fmt.Errorf("%w: API is nil; pass what answers", ErrOptions)
	}
	if o.Space == "" {
		o.Space = subjects.DefaultSpace
	}
	if !subjects.IsToken(string(o.Space)) {
		return nil, fmt.Errorf("%w: Space %.80q: %w", ErrOptions, o.Space, subjects.ErrToken)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Service{conn: o.Conn, api: o.API, as: o.ChangesFor, limit: o.Limits.WithDefaults().Query, log: o.Logger, slots: make(chan struct{}, MaxRunning), tallies: make(map[string]*tally)}
	for _, v := range query.Verbs() {
		s.tallies[v.Name] = new(tally)
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	var err error
	s.micro, err = micro.AddService(o.Conn, micro.Config{
		Name: Name, Version: apiVersion, Description: "What DevTools shows of the programs in a space, for programs",
		Metadata: map[string]string{"space": string(o.Space)},
		StatsHandler: func(e *micro.Endpoint) any {
			n := s.tallies[e.Name]
			return Tally{Answered: n.answered.Load(), Refused: n.refused.Load()}
		},
	})
	if err != nil {
		s.cancel()
		return nil, fmt.Errorf("service: %w", err)
	}
	for _, v := range query.Verbs() {
		err := s.micro.AddEndpoint(v.Name, micro.HandlerFunc(func(r micro.Request) { s.serve(v, r) }),
			micro.WithEndpointSubject(query.SubjectOf(o.Space, v.Name)), micro.WithEndpointMetadata(map[string]string{"description": v.Doc}))
		if err != nil {
			_ = s.Close(context.Background())
			return nil, fmt.Errorf("service: endpoint %s: %w", v.Name, err)
		}
	}
	return s, nil
}

// serve takes one question. It runs on the subscription's goroutine and does not wait.
func (s *Service) serve(v *query.Verb, r micro.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		s.refuse(v, r, query.Errorf(query.ErrUnavailable, "this gateway is stopping; ask again"))
		return
	}
	select {
	case s.slots <- struct{}{}:
	default:
		s.refuse(v, r, query.Errorf(query.ErrBusy, "%d questions are being answered; ask again in a moment", MaxRunning))
		return
	}
	s.running.Go(func() {
		defer func() { <-s.slots }()
		s.answer(v, r)
	})
}

// answer answers one question.
func (s *Service) answer(v *query.Verb, r micro.Request) {
	ctx, cancel := context.WithTimeout(s.ctx, s.limit+v.Wait)
	defer cancel()
	defer func() {
		if x := recover(); x != nil {
			s.log.Error("a question could not be answered", "verb", v.Name, "panic", x)
			s.refuse(v, r, query.Errorf(query.ErrFailed, "%s failed here; the gateway's log says why", v.Name))
		}
	}()
	api := s.api
	if v.Changes && s.as != nil {
		api = s.as(askerOf(r))
	}
	a, err := v.Call(ctx, api, r.Data())
	if err != nil {
		s.refuse(v, r, err)
		return
	}
	data, err := json.Marshal(a)
	if err != nil {
		s.refuse(v, r, fmt.Errorf("%s: %w", v.Name, err))
		return
	}
	s.send(v, r, data)
}

// headroom is how much of a message headers may take.
const headroom = 4 << 10

// send sends an answer, in parts where it is larger than a message.
func (s *Service) send(v *query.Verb, r micro.Request, data []byte) {
	size := max(int(s.conn.MaxPayload())-headroom, headroom)
	if len(data) > size && len(data) > query.MaxAnswer {
		s.refuse(v, r, query.Errorf(query.ErrFailed, "the answer has %d bytes, the limit is %d; ask for less", len(data), query.MaxAnswer))
		return
	}
	s.tallies[v.Name].answered.Add(1)
	if len(data) <= size {
		s.reply(r, nil, data)
		return
	}
	pieces := subjects.SplitAnswer(data, size)
	for i, piece := range pieces {
		c := subjects.Chunk{Index: i + 1, Count: len(pieces)}
		if !s.reply(r, nats.Header{subjects.HeaderChunk: {c.String()}}, piece) {
			return
		}
	}
}

// refuse answers an error, in the headers of micro services and as JSON.
func (s *Service) refuse(v *query.Verb, r micro.Request, err error) {
	s.tallies[v.Name].refused.Add(1)
	e := query.ErrorOf(err)
	data, _ := json.Marshal(e) // Two strings are always JSON.
	s.reply(r, nats.Header{
		micro.ErrorCodeHeader: {string(e.Code)},
		micro.ErrorHeader:     {strings.Join(strings.Fields(e.Message), " ")},
	}, data)
}

// reply sends one message to who asked, and reports whether it is on its way. It
// does not use the request's own methods: they note the outcome where package
// micro reads it as soon as the question was taken, while it is answered later.
func (s *Service) reply(r micro.Request, h nats.Header, data []byte) bool {
	if r.Reply() == "" {
		s.log.Debug("a question does not say where its answer goes", "subject", r.Subject())
		return false
	}
	err := s.conn.PublishMsg(&nats.Msg{Subject: r.Reply(), Header: h, Data: data})
	s.log.Debug("answered", "subject", r.Subject(), "bytes", len(data), "error", err)
	return err == nil
}

// Close stops answering: watches that wait end at once, other questions are
// waited for until ctx ends. It is idempotent.
func (s *Service) Close(ctx context.Context) error {
	s.mu.Lock()
	again := s.closed
	s.closed = true
	s.mu.Unlock()
	if !again {
		// It fails only when the connection is gone, and everything with it.
		_ = s.micro.Stop()
		s.cancel()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.running.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("service: close: questions are still being answered: %w", ctx.Err())
	}
}
