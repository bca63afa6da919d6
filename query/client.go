package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/natscope/natscope/subjects"
)

// MaxAnswer is the largest answer in bytes.
const MaxAnswer = 64 << 20

// Client asks the query service of a space over NATS. It implements API.
type Client struct {
	conn     *nats.Conn
	space    subjects.Space
	deadline time.Duration
	who      string
}

var _ API = (*Client)(nil)

// NewClient returns a client on a connection, which stays the caller's.
func NewClient(conn *nats.Conn, space subjects.Space) *Client {
	if space == "" {
		space = subjects.DefaultSpace
	}
	return &Client{conn: conn, space: space, deadline: subjects.DefaultLimits().Query + 2*time.Second}
}

// As returns a client that tells the audit who asks, such as "alice@laptop
// (natscope eval)". It is taken for what the asker says of itself, and grants nothing.
func (c *Client) As(who string) *Client {
	named := *c
	named.who = who
	return &named
}

// Space returns the space that the client asks about.
func (c *Client) Space() subjects.Space { return c.space }

// ask asks one question. Without a deadline in ctx, the usual one applies.
func ask[A any](ctx context.Context, c *Client, verb string, wait time.Duration, q any) (A, error) {
	var a A
	data, err := json.Marshal(q)
	if err != nil {
		return a, Errorf(ErrMalformed, "%s: %v", verb, err)
	}
	ctx, cancel := context.WithTimeout(ctx, c.deadline+wait)
	defer cancel()
	answer, err := c.Ask(ctx, verb, data)
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		return a, Errorf(ErrFailed, "the answer to %s cannot be read: %v; is the gateway of another version?", verb, err)
	}
	return a, nil
}

// Ask asks a question as JSON and returns the answer as JSON, for verbs that
// this version may not know. The error wraps a sentinel.
func (c *Client) Ask(ctx context.Context, verb string, question []byte) ([]byte, error) {
	if !subjects.IsToken(verb) {
		return nil, Errorf(ErrMalformed, "%.80q is no verb", verb)
	}
	inbox := c.conn.NewInbox()
	sub, err := c.conn.SubscribeSync(inbox)
	if err != nil {
		return nil, c.trouble(verb, err)
	}
	defer func() { _ = sub.Unsubscribe() }() // It fails only when the connection is closed.
	m := &nats.Msg{Subject: SubjectOf(c.space, verb), Reply: inbox, Data: question}
	if c.who != "" && changes(verb) && c.conn.HeadersSupported() {
		m.Header = nats.Header{subjects.HeaderWho: {c.who}}
	}
	former := c.conn.LastError()
	if err := c.conn.PublishMsg(m); err != nil {
		return nil, c.trouble(verb, err)
	}
	if changes(verb) {
		// A server says aside that a user may not ask; who is not told waits in vain.
		if err := c.conn.FlushWithContext(ctx); err != nil {
			return nil, c.trouble(verb, err)
		}
		if err := c.conn.LastError(); err != former && errors.Is(err, nats.ErrPermissionViolation) && strings.Contains(err.Error(), m.Subject) {
			return nil, Errorf(ErrRefused, "this NATS user may not publish to %s; changes need one of the kind debugger, which natscope auth makes", m.Subject)
		}
	}
	var parts join
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return nil, c.trouble(verb, err)
		}
		if len(m.Data) == 0 && m.Header.Get("Status") == "503" {
			return nil, c.trouble(verb, nats.ErrNoResponders)
		}
		if code := m.Header.Get("Nats-Service-Error-Code"); code != "" {
			return nil, answeredError(m)
		}
		done, err := parts.add(m)
		if err != nil {
			return nil, Errorf(ErrFailed, "the answer to %s: %v", verb, err)
		}
		if done {
			return parts.data, nil
		}
	}
}

// SubjectOf returns the subject that a verb is asked on. Verbs that can change a
// program have one of another kind, so that users may be allowed to look only.
func SubjectOf(space subjects.Space, verb string) string {
	if changes(verb) {
		return subjects.ChangeVerb(space, verb)
	}
	return subjects.QueryVerb(space, verb)
}

// changes reports whether a verb can change a program.
func changes(verb string) bool {
	return slices.ContainsFunc(verbs, func(v *Verb) bool { return v.Name == verb && v.Changes })
}

// answeredError is the error that a service answered.
func answeredError(m *nats.Msg) error {
	var e Error
	if json.Unmarshal(m.Data, &e) == nil && e.Code != "" {
		return &e
	}
	return &Error{Code: CodeFailed, Message: m.Header.Get("Nats-Service-Error")}
}

// trouble says in words why no answer came.
func (c *Client) trouble(verb string, err error) error {
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return Errorf(ErrUnavailable, "nobody answers queries in space %s; is a natscope gateway, or natscope up, running there?", c.space)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		return Errorf(ErrTimeout, "%s was not answered in time", verb)
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("query %s: %w", verb, err)
	}
	return Errorf(ErrUnavailable, "%s could not be asked: %v", verb, err)
}

// join puts the parts of an answer together.
type join struct {
	next int
	data []byte
}

// add takes the next part and reports whether it was the last one.
func (j *join) add(m *nats.Msg) (bool, error) {
	if m.Header.Get(subjects.HeaderChunk) == "" {
		j.data = m.Data
		return true, nil
	}
	c, err := subjects.ParseChunk(subjects.Header(m.Header))
	if err != nil {
		return false, err
	}
	if c.Index != j.next+1 {
		return false, fmt.Errorf("part %d is missing, part %d came", j.next+1, c.Index)
	}
	if len(j.data)+len(m.Data) > MaxAnswer {
		return false, fmt.Errorf("it is larger than %d bytes; ask for less", MaxAnswer)
	}
	j.next = c.Index
	j.data = append(j.data, m.Data...)
	return c.Index == c.Count, nil
}

// Sources implements API.
func (c *Client) Sources(ctx context.Context, q SourcesRequest) (SourcesAnswer, error) {
	return ask[SourcesAnswer](ctx, c, "sources", 0, q)
}

// Tree implements API.
func (c *Client) Tree(ctx context.Context, q TreeRequest) (TreeAnswer, error) {
	return ask[TreeAnswer](ctx, c, "tree", 0, q)
}

// FindNodes implements API.
func (c *Client) FindNodes(ctx context.Context, q FindRequest) (FindAnswer, error) {
	return ask[FindAnswer](ctx, c, "find", 0, q)
}

// Node implements API.
func (c *Client) Node(ctx context.Context, q NodeRequest) (NodeAnswer, error) {
	return ask[NodeAnswer](ctx, c, "node", 0, q)
}

// Values implements API.
func (c *Client) Values(ctx context.Context, q ValuesRequest) (ValuesAnswer, error) {
	return ask[ValuesAnswer](ctx, c, "values", 0, q)
}

// Requests implements API.
func (c *Client) Requests(ctx context.Context, q RequestsRequest) (RequestsAnswer, error) {
	return ask[RequestsAnswer](ctx, c, "requests", 0, q)
}

// Request implements API.
func (c *Client) Request(ctx context.Context, q RequestRequest) (RequestAnswer, error) {
	return ask[RequestAnswer](ctx, c, "request", 0, q)
}

// Body implements API.
func (c *Client) Body(ctx context.Context, q BodyRequest) (BodyAnswer, error) {
	return ask[BodyAnswer](ctx, c, "body", 0, q)
}

// Console implements API.
func (c *Client) Console(ctx context.Context, q ConsoleRequest) (ConsoleAnswer, error) {
	return ask[ConsoleAnswer](ctx, c, "console", 0, q)
}

// History implements API.
func (c *Client) History(ctx context.Context, q HistoryRequest) (HistoryAnswer, error) {
	return ask[HistoryAnswer](ctx, c, "history", 0, q)
}

// Faults implements API.
func (c *Client) Faults(ctx context.Context, q FaultsRequest) (FaultsAnswer, error) {
	return ask[FaultsAnswer](ctx, c, "faults", 0, q)
}

// Search implements API.
func (c *Client) Search(ctx context.Context, q SearchRequest) (SearchAnswer, error) {
	return ask[SearchAnswer](ctx, c, "search", 0, q)
}

// Cordis implements API.
func (c *Client) Cordis(ctx context.Context, q CordisRequest) (CordisAnswer, error) {
	return ask[CordisAnswer](ctx, c, "cordis", 0, q)
}

// Watch implements API.
func (c *Client) Watch(ctx context.Context, q WatchRequest) (WatchAnswer, error) {
	return ask[WatchAnswer](ctx, c, "watch", MaxWait, q)
}

// Evaluate implements API.
func (c *Client) Evaluate(ctx context.Context, q EvaluateRequest) (EvaluateAnswer, error) {
	return ask[EvaluateAnswer](ctx, c, "evaluate", MaxEvaluateMS*time.Millisecond, q)
}

// Edit implements API.
func (c *Client) Edit(ctx context.Context, q EditRequest) (EditAnswer, error) {
	return ask[EditAnswer](ctx, c, "edit", 0, q)
}

// Highlight implements API.
func (c *Client) Highlight(ctx context.Context, q HighlightRequest) (HighlightAnswer, error) {
	return ask[HighlightAnswer](ctx, c, "highlight", 0, q)
}
