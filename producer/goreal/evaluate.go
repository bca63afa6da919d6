package goreal

import (
	"errors"
	"time"

	"github.com/natscope/natscope/producer/goreal/internal/js"
	"github.com/natscope/natscope/producer/goreal/internal/mirror"
	"github.com/natscope/natscope/producer/goreal/internal/remote"
	"github.com/natscope/natscope/producer/goreal/internal/repl"
)

// sideEffect is by what DevTools knows a refusal of eager evaluation.
const sideEffect = "Possible side-effect in debug-evaluate"

func refusedSideEffect() *remote.Exception {
	o := remote.Thrown("EvalError", sideEffect)
	return &remote.Exception{ID: 1, Text: "Uncaught", Value: &o}
}

type evaluateParams struct {
	Expression        string  `json:"expression"`
	ObjectGroup       string  `json:"objectGroup"`
	Silent            bool    `json:"silent"`
	ReturnByValue     bool    `json:"returnByValue"`
	GeneratePreview   bool    `json:"generatePreview"`
	AwaitPromise      bool    `json:"awaitPromise"`
	ThrowOnSideEffect bool    `json:"throwOnSideEffect"`
	Timeout           float64 `json:"timeout"`
	ReplMode          bool    `json:"replMode"`
}

// shape is how a result is wanted.
type shape struct {
	group            string
	byValue, preview bool
	// console says that the result becomes $_.
	console bool
}

// milliseconds is a duration as CDP tells it; 0 for none.
func milliseconds(ms float64) time.Duration {
	if ms <= 0 || ms > float64(24*time.Hour/time.Millisecond) {
		return 0
	}
	return time.Duration(ms * float64(time.Millisecond))
}

// evaluate is runtime.evaluate.
func evaluate(c *command, p evaluateParams) {
	sh := shape{p.ObjectGroup, p.ReturnByValue, p.GeneratePreview, p.ObjectGroup == "console" && !p.ThrowOnSideEffect}
	if p.ThrowOnSideEffect {
		c.evaluate(milliseconds(p.Timeout), func(e engine) {
			o, err := e.Pure(p.Expression)
			c.finishPure(e, o, err, sh)
		})
		return
	}
	name := ""
	if !p.Silent {
		name = c.s.r.addScript(p.Expression)
	}
	c.evaluate(milliseconds(p.Timeout), func(e engine) {
		o, await, err := e.Run(name, p.Expression, p.ReplMode)
		switch {
		case err != nil:
			c.finish(e, nil, err, sh)
		case await:
			e.Await(o, func(o mirror.Object, err error) {
				if err == nil {
					o = e.Unbox(o)
				}
				c.finish(e, o, err, sh)
			})
		case p.AwaitPromise:
			e.Await(o, func(o mirror.Object, err error) { c.finish(e, o, err, sh) })
		default:
			c.finish(e, o, nil, sh)
		}
	})
}

// finishPure replies with the result of an evaluation that may change nothing.
func (c *command) finishPure(e engine, o mirror.Object, err error, sh shape) {
	if errors.Is(err, js.ErrSideEffect) {
		c.reply(threw(refusedSideEffect()), nil)
		return
	}
	c.finish(e, o, err, sh)
}

// finish replies with a result in the shape that is wanted.
func (c *command) finish(e engine, o mirror.Object, err error, sh shape) {
	if c.done.Load() || c.s.closed.Load() {
		return
	}
	l := c.s.lens(sh.group)
	if err != nil {
		c.reply(threw(e.Details(err, l)), nil)
		return
	}
	if sh.console {
		c.s.last = o
	}
	if !sh.byValue {
		out := o.Remote(l, sh.preview)
		c.reply(evaluated{Result: &out}, nil)
		return
	}
	out, err := e.ByValue(o)
	if err != nil {
		c.reply(threw(e.Details(err, l)), nil)
		return
	}
	c.reply(evaluated{Result: &out}, nil)
}

type compileParams struct {
	Expression    string `json:"expression"`
	SourceURL     string `json:"sourceURL"`
	PersistScript bool   `json:"persistScript"`
}

type compiled struct {
	ScriptID  string            `json:"scriptId,omitempty"`
	Exception *remote.Exception `json:"exceptionDetails,omitempty"`
}

// compileScript is runtime.compileScript. DevTools asks it with each key whether
// the input is complete, so it does not wait for the evaluator.
func compileScript(c *command, p compileParams) {
	c.read(func() {
		_, err := repl.Rewrite(p.Expression)
		if err == nil {
			out := compiled{}
			if p.PersistScript {
				out.ScriptID = c.s.r.scripts.id(c.s.r.addScript(p.Expression))
			}
			c.reply(out, nil)
			return
		}
		x := &remote.Exception{ID: 1, Text: "Uncaught"}
		o := remote.Thrown("SyntaxError", err.Error())
		var syntax *repl.SyntaxError
		if errors.As(err, &syntax) {
			o = remote.Thrown("SyntaxError", syntax.Message)
			x.Line, x.Column = max(syntax.Line-1, 0), max(syntax.Column-1, 0)
		}
		x.Value = &o
		c.reply(compiled{Exception: x}, nil)
	})
}

type promiseParams struct {
	PromiseObjectID string `json:"promiseObjectId"`
	ReturnByValue   bool   `json:"returnByValue"`
	GeneratePreview bool   `json:"generatePreview"`
}

// awaitPromise is runtime.awaitPromise.
func awaitPromise(c *command, p promiseParams) {
	o, group, ok := c.object(p.PromiseObjectID)
	if !ok {
		return
	}
	c.evaluate(0, func(e engine) {
		if c.owned(e, o) {
			e.Await(o, func(o mirror.Object, err error) {
				c.finish(e, o, err, shape{group: group, byValue: p.ReturnByValue, preview: p.GeneratePreview})
			})
		}
	})
}

// terminateExecution is runtime.terminateExecution. It waits for nothing.
func terminateExecution(c *command, _ nothing) {
	c.s.r.mu.Lock()
	w := c.s.r.world
	c.s.r.mu.Unlock()
	if w != nil {
		w.terminate("Execution was terminated")
	}
	c.ok()
}
