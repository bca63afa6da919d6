package js

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dop251/goja"
	"github.com/dop251/goja/parser"

	"github.com/natscope/natscope/producer/goreal/internal/mirror"
	"github.com/natscope/natscope/producer/goreal/internal/remote"
	"github.com/natscope/natscope/producer/goreal/internal/repl"
)

// thrown is an exception without a place: a rejected promise, say.
type thrown struct {
	value   goja.Value
	promise bool
}

func (t *thrown) Error() string {
	s := "Uncaught"
	quietly(func() { s += " " + t.value.String() })
	return s
}

// Details describes an error of the engine as CDP does.
func (e *Engine) Details(err error, l *mirror.Lens) *remote.Exception {
	e.exceptions++
	d := &remote.Exception{ID: e.exceptions, Text: "Uncaught"}
	var x *goja.Exception
	var t *thrown
	var interrupted *goja.InterruptedError
	var syntax *repl.SyntaxError
	var compile *goja.CompilerSyntaxError
	var overflow *goja.StackOverflowError
	set := func(o remote.Object) { d.Value = &o }
	switch {
	case errors.As(err, &interrupted):
		set(remote.Thrown("Error", strings.TrimSpace(fmt.Sprint(interrupted.Value()))))
	case errors.As(err, &overflow):
		set(remote.Thrown("RangeError", "Maximum call stack size exceeded"))
	case errors.As(err, &t):
		if t.promise {
			d.Text = "Uncaught (in promise)"
		}
		set(e.object(t.value).Remote(l, true))
	case errors.As(err, &syntax):
		d.Line, d.Column = syntax.Line-1, syntax.Column-1
		set(remote.Thrown("SyntaxError", syntax.Message))
	case errors.As(err, &compile):
		set(remote.Thrown("SyntaxError", compile.Message))
	case errors.As(err, &x):
		if fs := e.frames(x.Stack()); len(fs) > 0 {
			d.Line, d.Column, d.Script, d.URL, d.Stack = fs[0].Line, fs[0].Column, fs[0].Script, fs[0].URL, &remote.StackTrace{Frames: fs}
		}
		set(e.object(x.Value()).Remote(l, true))
	default:
		var list parser.ErrorList
		if errors.As(err, &list) && len(list) > 0 {
			set(remote.Thrown("SyntaxError", list[0].Message))
			break
		}
		set(remote.Thrown("Error", err.Error()))
	}
	return d
}

// DetailsOf describes an error value that JavaScript holds.
func (e *Engine) DetailsOf(o mirror.Object, l *mirror.Lens) *remote.Exception {
	return e.Details(&thrown{value: e.value(o)}, l)
}

// maxFrames is how many frames of a stack are told.
const maxFrames = 50

// frames makes CDP's frames of the engine's, without the engine's own.
func (e *Engine) frames(fs []goja.StackFrame) []remote.Frame {
	out := []remote.Frame{}
	for _, f := range fs {
		pos := f.Position()
		if name := f.SrcName(); name == "<native>" || pos.Line == 0 || strings.HasPrefix(name, "natscope:") {
			continue
		}
		fn := f.FuncName()
		if fn == "<anonymous>" {
			fn = ""
		}
		id, url, ok := e.host.Script(f.SrcName())
		if !ok {
			id, url = "0", f.SrcName()
		}
		out = append(out, remote.Frame{Function: fn, Script: id, URL: url, Line: pos.Line - 1, Column: max(pos.Column-1, 0)})
		if len(out) == maxFrames {
			break
		}
	}
	return out
}
