package fxtree

import (
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"go.uber.org/fx"
	"go.uber.org/fx/fxevent"

	"github.com/natscope/natscope/producer/treecap"
)

// Option shows the application to which it is given, as a child of parent. It
// takes the place of fx.WithLogger: next gets the events; nil means what fx does
// without a logger, which is to print them. For a logger that fx constructs, give
// New to fx.WithLogger.
func Option(parent *treecap.Node, next fxevent.Logger) fx.Option {
	return fx.WithLogger(func() fxevent.Logger { return New(parent, next) })
}

// Logger shows one application. It is safe for concurrent use.
type Logger struct {
	next fxevent.Logger
	app  *treecap.Node

	mu      sync.Mutex // guards all below
	modules map[string]*treecap.Node
	// parts holds what was announced and has not run, in order.
	parts map[partKey][]*treecap.Node
	// hooks holds the hooks that run, in order.
	hooks map[hookKey][]*treecap.Node
}

// partKey is how events name a constructor, decorator, value or invocation.
type partKey struct{ module, kind, name string }

// hookKey is how events name a hook.
type hookKey struct{ when, caller, function string }

// New makes the logger of one application, which is shown as a child of parent.
// Events go on to next; nil means what fx does without a logger, which is to print
// them, and fxevent.NopLogger drops them.
func New(parent *treecap.Node, next fxevent.Logger) *Logger {
	if next == nil {
		next = &fxevent.ConsoleLogger{W: os.Stderr}
	}
	return &Logger{
		next: next, app: parent.Add("fx", treecap.Attr("state", "new")),
		modules: make(map[string]*treecap.Node), parts: make(map[partKey][]*treecap.Node), hooks: make(map[hookKey][]*treecap.Node),
	}
}

// Node returns the node that shows the application.
func (l *Logger) Node() *treecap.Node { return l.app }

// LogEvent implements fxevent.Logger.
func (l *Logger) LogEvent(event fxevent.Event) {
	l.observe(event)
	l.next.LogEvent(event)
}

func (l *Logger) observe(event fxevent.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch e := event.(type) {
	case *fxevent.Provided:
		var private []treecap.Option
		if e.Private {
			private = append(private, treecap.Attr("private", true))
		}
		l.provided(partKey{e.ModuleName, "provide", e.ConstructorName}, e.OutputTypeNames, e.StackTrace, e.Err, private...)
	case *fxevent.Decorated:
		l.provided(partKey{e.ModuleName, "decorate", e.DecoratorName}, e.OutputTypeNames, e.StackTrace, e.Err)
	case *fxevent.Supplied:
		l.provided(partKey{e.ModuleName, "supply", stub(e.TypeName)}, []string{e.TypeName}, e.StackTrace, e.Err)
	case *fxevent.Replaced:
		l.replaced(e)
	case *fxevent.BeforeRun:
		l.running(partKey{e.ModuleName, e.Kind, e.Name})
	case *fxevent.Run:
		l.ran(partKey{e.ModuleName, e.Kind, e.Name}, e.Runtime, e.Err)
	case *fxevent.Invoking:
		k := partKey{e.ModuleName, "invoke", e.FunctionName}
		n := l.module(k.module).Add("invoke", treecap.Attr("function", short(k.name)), treecap.Attr("state", "running"))
		l.parts[k] = append(l.parts[k], n)
	case *fxevent.Invoked:
		l.ran(partKey{e.ModuleName, "invoke", e.FunctionName}, 0, e.Err)
	default:
		l.lifecycle(event)
	}
}

// module returns the node of a module; the application itself has no name.
func (l *Logger) module(name string) *treecap.Node {
	if name == "" {
		return l.app
	}
	n := l.modules[name]
	if n == nil {
		n = l.app.Add("module", treecap.Attr("name", name))
		l.modules[name] = n
	}
	return n
}

// elements names the nodes of the kinds that fx tells.
var elements = map[string]string{"provide": "constructor", "decorate": "decorator", "supply": "value", "replace": "replacement"}

// stub is how fx names what makes a supplied or replaced value.
func stub(typeName string) string { return "stub(" + typeName + ")" }

// provided shows a part that may run later.
func (l *Logger) provided(k partKey, types, stack []string, err error, more ...treecap.Option) *treecap.Node {
	if strings.HasPrefix(k.name, "go.uber.org/fx.") {
		return nil // what every application has
	}
	options := append(more, treecap.Loc(fileOf(stack)))
	if k.kind == "provide" || k.kind == "decorate" {
		options = append(options, treecap.Attr("function", short(k.name)))
	}
	if len(types) > 0 {
		options = append(options, treecap.Attr("types", short(strings.Join(types, ", "))))
	}
	n := l.module(k.module).Add(or(elements[k.kind], "part"), append(options, treecap.Attr("state", "unused"))...)
	if err != nil {
		n.Set("state", "failed")
		n.Set("error", err)
		return n
	}
	l.parts[k] = append(l.parts[k], n)
	return n
}

// folders are those of the import paths in names.
var folders = regexp.MustCompile(`([\w.~-]+/)+`)

// short is a name as people write it: with its package's name, without the path
// and without what is annotated.
func short(name string) string {
	if in, ok := strings.CutPrefix(name, "fx.Annotate("); ok {
		name, _, _ = strings.Cut(in, "()")
	}
	return folders.ReplaceAllString(strings.TrimSuffix(name, "()"), "")
}

// replaced shows values that take the place of others: one node for each.
func (l *Logger) replaced(e *fxevent.Replaced) {
	for _, t := range e.OutputTypeNames {
		l.provided(partKey{e.ModuleName, "replace", stub(t)}, []string{t}, e.StackTrace, e.Err)
	}
	if len(e.OutputTypeNames) == 0 {
		l.provided(partKey{e.ModuleName, "replace", ""}, nil, e.StackTrace, e.Err)
	}
}

// fileOf takes file:line out of the first line of a trace, "function (file:line)".
func fileOf(stack []string) string {
	if len(stack) == 0 {
		return ""
	}
	_, rest, ok := strings.Cut(stack[0], " (")
	if !ok {
		return ""
	}
	return strings.TrimSuffix(rest, ")")
}

func (l *Logger) running(k partKey) {
	if len(l.parts[k]) == 0 {
		l.provided(k, nil, nil, nil) // nobody announced it
	}
	if all := l.parts[k]; len(all) > 0 {
		all[0].Set("state", "running")
	}
}

// ran shows how a part ended.
func (l *Logger) ran(k partKey, took time.Duration, err error) {
	l.running(k)
	if n := take(l.parts, k); n != nil {
		ended(n, took, err)
	}
}

// take removes the first node of a key.
func take[K comparable](from map[K][]*treecap.Node, k K) *treecap.Node {
	all := from[k]
	if len(all) == 0 {
		return nil
	}
	if from[k] = all[1:]; len(all) == 1 {
		delete(from, k)
	}
	return all[0]
}

// ended shows how something that ran ended.
func ended(n *treecap.Node, took time.Duration, err error) {
	if took > 0 {
		n.Set("took", took)
	}
	if err != nil {
		n.Set("state", "failed")
		n.Set("error", err)
		return
	}
	n.Set("state", "done")
}

func or(a, b string) string {
	if a == "" {
		return b
	}
	return a
}
