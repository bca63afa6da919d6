package goreal

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/natscope/natscope/producer/goreal/internal/mirror"
	"github.com/natscope/natscope/producer/goreal/internal/remote"
	"github.com/natscope/natscope/subjects/realm"
)

type callParams struct {
	FunctionDeclaration string            `json:"functionDeclaration"`
	ObjectID            string            `json:"objectId"`
	Arguments           []remote.Argument `json:"arguments"`
	Silent              bool              `json:"silent"`
	ReturnByValue       bool              `json:"returnByValue"`
	GeneratePreview     bool              `json:"generatePreview"`
	AwaitPromise        bool              `json:"awaitPromise"`
	ThrowOnSideEffect   bool              `json:"throwOnSideEffect"`
	ObjectGroup         string            `json:"objectGroup"`
}

// callFunctionOn is runtime.callFunctionOn. The two functions by which DevTools
// takes long lists apart are answered without the engine.
func callFunctionOn(c *command, p callParams) {
	var this mirror.Object
	sh := shape{group: p.ObjectGroup, byValue: p.ReturnByValue, preview: p.GeneratePreview}
	if p.ObjectID != "" {
		o, group, ok := c.object(p.ObjectID)
		if !ok {
			return
		}
		this = o
		if sh.group == "" {
			sh.group = group
		}
	}
	bound := make([]mirror.Object, len(p.Arguments))
	for i, a := range p.Arguments {
		if a.ObjectID == "" {
			continue
		}
		o, _, ok := c.object(a.ObjectID)
		if !ok {
			return
		}
		bound[i] = o
	}
	if list, ok := this.(mirror.Value); ok && list.Kind() == mirror.KindList {
		if c.bucket(list, p) || c.fragment(list, p, sh) {
			return
		}
	}
	c.evaluate(0, func(e engine) {
		args, err := c.arguments(e, p.Arguments, bound)
		if err != nil {
			c.reply(nil, err)
			return
		}
		if !c.owned(e, append([]mirror.Object{this}, args...)...) {
			return
		}
		if p.ThrowOnSideEffect {
			o, err := e.CallPure(p.FunctionDeclaration, this, args)
			c.finishPure(e, o, err, sh)
			return
		}
		o, err := e.Call(p.FunctionDeclaration, this, args)
		if err == nil && p.AwaitPromise {
			e.Await(o, func(o mirror.Object, err error) { c.finish(e, o, err, sh) })
			return
		}
		c.finish(e, o, err, sh)
	})
}

// arguments makes values of the arguments that are no handles.
func (c *command) arguments(e engine, args []remote.Argument, out []mirror.Object) (_ []mirror.Object, err error) {
	for i, a := range args {
		switch {
		case a.ObjectID != "":
		case a.UnserializableValue != "":
			out[i], err = e.FromUnserializable(a.UnserializableValue)
		case len(a.Value) > 0:
			out[i], err = e.FromJSON(a.Value)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: argument %d: %w", realm.ErrMalformed, i+1, err)
		}
	}
	return out, nil
}

// numbers reads arguments that are whole numbers.
func numbers(args []remote.Argument) (out []int, ok bool) {
	for _, a := range args {
		var f float64
		if json.Unmarshal(a.Value, &f) != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
			return nil, false
		}
		out = append(out, int(f))
	}
	return out, true
}

// bucket answers the function with which DevTools asks into which ranges a long
// list is to be taken apart; false for any other function.
func (c *command) bucket(list mirror.Value, p callParams) bool {
	f := p.FunctionDeclaration
	if !p.ReturnByValue || len(p.Arguments) < 3 || !strings.Contains(f, "ranges") || !strings.Contains(f, "isView") {
		return false
	}
	n, ok := numbers(p.Arguments[:3])
	if !ok || n[2] < 2 {
		return false
	}
	raw, _ := json.Marshal(map[string]any{"ranges": ranges(n[0], n[1], n[2])})
	c.reply(evaluated{Result: &remote.Object{Type: "object", Value: raw}}, nil)
	return true
}

// ranges takes from..to apart into at most threshold ranges of a power of threshold: [first, last, how many].
func ranges(from, to, threshold int) [][3]int {
	count := to - from + 1
	size := count
	if count > threshold {
		size = int(math.Pow(float64(threshold), math.Ceil(math.Log(float64(count))/math.Log(float64(threshold)))-1))
	}
	out := [][3]int{}
	for i := from; i <= to && size > 0 && len(out) < 10_000; i += size {
		last := min(i+size-1, to)
		out = append(out, [3]int{i, last, last - i + 1})
	}
	return out
}

// fragment answers the function with which DevTools asks for some elements of a
// long list; false for any other function.
func (c *command) fragment(list mirror.Value, p callParams, sh shape) bool {
	f := p.FunctionDeclaration
	if p.ReturnByValue || len(p.Arguments) != 3 || !strings.Contains(f, "Object.create(null)") && !strings.Contains(f, "__proto__") || !strings.Contains(f, "hasOwnProperty") && !strings.Contains(f, "in this") {
		return false
	}
	n, ok := numbers(p.Arguments)
	if !ok || n[0] < 0 || n[1] < n[0] {
		return false
	}
	o := mirror.Fragment{List: list, From: n[0], To: n[1]}.Remote(c.s.lens(sh.group), false)
	c.reply(evaluated{Result: &o}, nil)
	return true
}
