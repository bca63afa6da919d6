package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/natscope/natscope/query"
	"github.com/natscope/natscope/store/command"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/realm"
	"github.com/natscope/natscope/subjects/tree"
	"github.com/natscope/natscope/subjects/value"
)

// auditWithin is how long the audit may take before a command is given up.
const auditWithin = 3 * time.Second

// programs brings questions to programs where their recorded state is not enough for an answer.
type programs struct {
	c        command.Commander
	gateway  subjects.GatewayID
	sessions *command.Sessions
	// last numbers the sessions, of which each command has one of its own: what
	// it left behind in the program goes with it.
	last atomic.Uint64
}

func newPrograms(c command.Commander, gateway subjects.GatewayID) *programs {
	return &programs{c: c, gateway: gateway, sessions: command.NewSessions(c, gateway, nil)}
}

// errOnlyLook is what somebody hears who may not change programs.
var errOnlyLook = query.Errorf(query.ErrRefused, "this asker may only look; changes need a token with the role debug, or a NATS user of the kind debugger")

// reach returns the program of a source, or why a method cannot reach it.
func (e *Engine) reach(src *fold.Source, m realm.Method, changes bool) (command.At, error) {
	name := clean(src.Name(), 200)
	switch {
	case e.live == nil:
		return command.At{}, query.Errorf(query.ErrUnsupported, "this gateway only shows what programs recorded: it was started without a connection to them")
	case changes && e.who == "":
		return command.At{}, errOnlyLook
	case !src.Connected || !src.Life.Opened || src.Life.Closed:
		return command.At{}, query.Errorf(query.ErrGone, "%s is not connected, so nothing can be asked of it; what was recorded can still be read", name)
	case !realm.Supports(src.Life.Descriptor.Capabilities, m):
		return command.At{}, query.Errorf(query.ErrUnsupported, "%s does not answer %s; it answers: %s", name, m, capabilities(src))
	}
	return command.At{Source: src.ID, Generation: src.Generation}, nil
}

func capabilities(src *fold.Source) string {
	if list := src.Life.Descriptor.Capabilities; len(list) > 0 {
		return clean(strings.Join(list, ", "), 500)
	}
	return "nothing"
}

// command asks a program, and writes to the audit before what can change it.
func (e *Engine) command(ctx context.Context, at command.At, m realm.Method, params any, result any) error {
	data, err := json.Marshal(params)
	if err != nil {
		return query.Errorf(query.ErrMalformed, "%s: %v", m, err)
	}
	id := subjects.SessionID("q" + strconv.FormatUint(e.live.last.Add(1), 10))
	if m.ChangesWith(data) {
		if err := e.audit(ctx, at, id, m, data); err != nil {
			return err
		}
	}
	r := realm.Request{Method: m, Params: data}
	var raw json.RawMessage
	if m.InSession() {
		raw, err = e.live.sessions.Do(ctx, at, id, r)
		e.live.sessions.CloseSource(at, id)
	} else {
		raw, err = e.live.c.Do(ctx, at.Source, at.Generation, r)
	}
	if err != nil {
		return fromRealm(err)
	}
	if result == nil || len(raw) == 0 {
		return nil
	}
	if err := json.Unmarshal(raw, result); err != nil {
		return query.Errorf(query.ErrFailed, "%s answered %s in a way that cannot be read: %v", at.Source, m, err)
	}
	return nil
}

func (e *Engine) audit(ctx context.Context, at command.At, id subjects.SessionID, m realm.Method, params json.RawMessage) error {
	ctx, cancel := context.WithTimeout(ctx, auditWithin)
	defer cancel()
	err := e.live.c.Audit(ctx, realm.Audit{
		Time: float64(time.Now().UnixMicro()) / 1000, Gateway: string(e.live.gateway), Session: string(id), Who: clean(e.who, 200),
		Source: string(at.Source), Generation: string(at.Generation), Method: m, Params: params,
	})
	if err != nil {
		return query.Errorf(query.ErrRefused, "not done, because it could not be written to the audit (%v); is a natscope store running?", err)
	}
	return nil
}

// fromRealm turns the error of a program into one of questions.
func fromRealm(err error) error {
	kind := query.ErrFailed
	for _, x := range []struct{ from, to error }{
		{realm.ErrUnsupported, query.ErrUnsupported}, {realm.ErrMalformed, query.ErrMalformed}, {realm.ErrRefused, query.ErrRefused},
		{realm.ErrNotFound, query.ErrGone}, {realm.ErrGone, query.ErrGone}, {realm.ErrNoSession, query.ErrGone}, {realm.ErrTimeout, query.ErrTimeout},
		{realm.ErrBusy, query.ErrBusy}, {context.DeadlineExceeded, query.ErrTimeout},
	} {
		if errors.Is(err, x.from) {
			kind = x.to
			break
		}
	}
	return query.Errorf(kind, "%s", realm.ErrorOf(err).Message)
}

// liveNode finds a node and the program that it belongs to.
func (e *Engine) liveNode(id query.NodeID, m realm.Method) (at command.At, node tree.NodeID, full query.NodeID, err error) {
	e.view(func(v view) {
		var src *fold.Source
		var x *tree.Entry
		if src, x, err = v.node(id); err != nil {
			return
		}
		if at, err = e.reach(src, m, m.Changes()); err != nil {
			return
		}
		if src.Tree.Detached {
			err = query.Errorf(query.ErrGone, "the tree of %s is that of a former run; wait for its new one", src.ID)
			return
		}
		node, full = x.ID, v.nodeID(src, x)
	})
	return at, node, full, err
}

// path turns steps as they travel into those of realms.
func path(steps []any) ([]realm.Step, error) {
	data, err := json.Marshal(steps)
	if err != nil {
		return nil, query.Errorf(query.ErrMalformed, "path: %v", err)
	}
	var out []realm.Step
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, query.Errorf(query.ErrMalformed, "path: %v", err)
	}
	return out, nil
}

// Edit implements query.API.
func (e *Engine) Edit(ctx context.Context, q query.EditRequest) (query.EditAnswer, error) {
	if q.Name == "" || len(q.Value) == 0 {
		return query.EditAnswer{}, query.Errorf(query.ErrMalformed, "give name, the name of a value, and value, the JSON that comes in its place")
	}
	steps, err := path(q.Path)
	if err != nil {
		return query.EditAnswer{}, err
	}
	at, node, id, err := e.liveNode(q.ID, realm.MethodEdit)
	if err != nil {
		return query.EditAnswer{}, err
	}
	err = e.command(ctx, at, realm.MethodEdit, realm.EditParams{ID: node, Symbol: q.Name, Path: steps, Value: q.Value}, nil)
	return query.EditAnswer{ID: id, Done: err == nil}, err
}

// Highlight implements query.API.
func (e *Engine) Highlight(ctx context.Context, q query.HighlightRequest) (query.HighlightAnswer, error) {
	var at command.At
	var node tree.NodeID
	var err error
	if q.ID != "" {
		at, node, _, err = e.liveNode(q.ID, realm.MethodHighlight)
	} else {
		e.view(func(v view) {
			var src *fold.Source
			if src, err = v.one(q.Source); err == nil {
				at, err = e.reach(src, realm.MethodHighlight, false)
			}
		})
	}
	if err != nil {
		return query.HighlightAnswer{}, err
	}
	err = e.command(ctx, at, realm.MethodHighlight, realm.HighlightParams{ID: node}, nil)
	return query.HighlightAnswer{Done: err == nil}, err
}

// inspect reads what is inside of a value from the live program.
func (e *Engine) inspect(ctx context.Context, q query.ValuesRequest) (query.ValuesAnswer, error) {
	steps, err := path(q.Path)
	if err != nil {
		return query.ValuesAnswer{}, err
	}
	at, node, id, err := e.liveNode(q.ID, realm.MethodInspect)
	if err != nil {
		return query.ValuesAnswer{}, err
	}
	var r realm.InspectResult
	if err := e.command(ctx, at, realm.MethodInspect, realm.InspectParams{ID: node, Path: steps}, &r); err != nil {
		return query.ValuesAnswer{}, err
	}
	if len(r.Value) == 0 {
		return query.ValuesAnswer{}, query.Errorf(query.ErrGone, "nothing is at this path any more; read the values of the node again")
	}
	x := query.Value{Name: fmt.Sprint(q.Path[len(q.Path)-1]), Value: r.Value}
	if v, err := value.Parse(r.Value); err == nil {
		x.Preview = value.Preview(v)
	}
	return query.ValuesAnswer{ID: id, Live: true, Values: []query.Value{x}}, nil
}
