package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/natscope/natscope/subjects/realm"
)

// Command asks a page for something. The page answers with the same id.
type Command struct {
	Type string `json:"type"`
	// ID numbers the commands of a session, from 1.
	ID uint64 `json:"id"`
	// Method and Params are those of package realm.
	Method realm.Method    `json:"method"`
	Params json.RawMessage `json:"params,omitempty"`
	// Session names the session that asks, absent for nobody.
	Session string `json:"session,omitempty"`
}

// CommandAnswer is a page's answer to a Command.
type CommandAnswer struct {
	ID uint64 `json:"id"`
	realm.Answer
}

// AnswerPart is a piece of an answer that is too long for one message.
type AnswerPart struct {
	// ID is the command's.
	ID uint64 `json:"id"`
	// Part counts from 1 up to Of.
	Part int `json:"part"`
	Of   int `json:"of"`
	// Text is the piece; all together they are the JSON of a realm.Answer.
	Text string `json:"text"`
}

// PageEvent is something that happened to a pick, or that a session is told of.
type PageEvent struct {
	// Session names the session that it is for; without one it is about a pick.
	Session string `json:"session,omitempty"`
	// Event is one of the events of package realm.
	Event string `json:"event"`
	// Data is its payload.
	Data json.RawMessage `json:"data"`
}

func (a *CommandAnswer) check() error {
	if a.ID == 0 {
		return errors.New("id is missing")
	}
	return nil
}

func (p *AnswerPart) check() error {
	if p.ID == 0 || p.Part < 1 || p.Part > p.Of || p.Of > maxParts {
		return fmt.Errorf("part %d of %d of the answer %d makes no sense", p.Part, p.Of, p.ID)
	}
	return nil
}

func (e *PageEvent) check() error {
	if e.Session != "" {
		if e.Event == "" || len(e.Event) > 128 {
			return errors.New("the event of a session has no name, or a long one")
		}
		return nil
	}
	if e.Event != realm.EventPicked && e.Event != realm.EventHighlighted {
		return fmt.Errorf("event %.40q is none that a page may tell of", e.Event)
	}
	_, err := realm.ParseParams[realm.Picked](e.Data)
	return err
}

// methodRunespect passes a message of a runespect panel to the agent of a page.
const methodRunespect realm.Method = "runespect.send"

// serveCommands makes the source answer what its page can do, and nothing else.
func (x *session) serveCommands(h *Hello) {
	for _, m := range append(realm.Methods(), methodRunespect) {
		if !realm.Supports(h.Capabilities, m) {
			x.prod.OnCommand(string(m), nil)
			continue
		}
		run := func(ctx context.Context, params json.RawMessage) (any, error) { return x.command(ctx, m, params) }
		if m == realm.MethodPick {
			run = x.pick
		}
		x.prod.OnCommand(string(m), run)
	}
}

// command asks the page and waits for its answer. It runs on a goroutine of the producer.
func (x *session) command(ctx context.Context, m realm.Method, params json.RawMessage) (any, error) {
	type answer struct {
		result json.RawMessage
		err    error
	}
	c := make(chan answer, 1)
	x.ask(ctx, Command{Method: m, Params: params}, func(result json.RawMessage, err error) { c <- answer{result, err} })
	a := <-c
	return a.result, a.err
}

// notify sends a command whose answer nobody waits for.
func (x *session) notify(cmd Command) {
	ctx, cancel := context.WithTimeout(context.Background(), aliveWait)
	x.ask(ctx, cmd, func(json.RawMessage, error) { cancel() })
}

// ask sends a command to the page. done is called once, with the answer or with
// the error that there will be none: when ctx ends, or the page's connection does.
func (x *session) ask(ctx context.Context, cmd Command, done func(json.RawMessage, error)) {
	x.mu.Lock()
	c := x.conn
	x.mu.Unlock()
	if c == nil {
		done(nil, fmt.Errorf("%w: the page has no connection at the moment", realm.ErrGone))
		return
	}
	cmd.Type, cmd.ID = MsgCommand, x.relay.begin(ctx, c, done)
	c.send(cmd)
}
