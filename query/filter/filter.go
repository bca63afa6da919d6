// Package filter is the language in which questions say which things they want:
// expressions of github.com/expr-lang/expr over the fields of an Item, without
// anything that loops, allocates much or has effects.
//
// It owns the fields, the functions that are allowed and the bounds of an
// expression. It must not know where things come from. It starts no goroutine; a
// Filter belongs to one goroutine.
package filter

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"
)

// ErrFilter says that an expression cannot be used. The text around it says where and why.
var ErrFilter = errors.New("filter: unusable")

// The bounds of an expression.
const (
	// MaxLength is the most bytes of an expression.
	MaxLength = 4 << 10
	// maxNodes is the most nodes of its syntax tree.
	maxNodes = 200
	// maxMemory is how many elements one evaluation may allocate.
	maxMemory = 10_000
)

// The kinds of things, which Item.What says.
const (
	WhatRequest = "request"
	WhatConsole = "console"
	WhatNode    = "node"
	WhatValue   = "value"
	WhatFault   = "fault"
	WhatCommit  = "commit"
)

// Item is one thing that a filter looks at. Fields that a thing of its kind does
// not have are empty, zero or false.
type Item struct {
	// What is one of the What constants.
	What string `expr:"what"`
	// Source and SourceName are id and name of the source.
	Source     string `expr:"source"`
	SourceName string `expr:"sourceName"`
	// Connected says that the source lives.
	Connected bool `expr:"connected"`
	// Generation is that of a request or console entry.
	Generation string `expr:"generation"`
	// Number counts the things of a source.
	Number int `expr:"number"`
	// Age is how long ago it was, in seconds.
	Age float64 `expr:"age"`
	// Text is the thing as text: the line of a log, the address of a request, the text of a fault.
	Text string `expr:"text"`
	// Name is that of a node or value.
	Name string `expr:"name"`
	// Kind is that of a node, value or fault.
	Kind string `expr:"kind"`

	// Method, URL, Host and Path are those of a request.
	Method string `expr:"method"`
	URL    string `expr:"url"`
	Host   string `expr:"host"`
	Path   string `expr:"path"`
	// Route is the pattern that a served request was matched with.
	Route string `expr:"route"`
	// Status is that of the response, 0 while there is none.
	Status int `expr:"status"`
	// State is running, finished, truncated, failed, canceled or gone.
	State string `expr:"state"`
	// Failed says that a request failed or has a status of 400 or more, or one of gRPC that is not 0.
	Failed bool `expr:"failed"`
	// Error says why a request failed.
	Error string `expr:"error"`
	// Type is what asked, or the console method.
	Type string `expr:"type"`
	// MIME is the media type of a response.
	MIME string `expr:"mime"`
	// Direction is in or out.
	Direction string `expr:"direction"`
	// Duration is that of a request in milliseconds.
	Duration float64 `expr:"duration"`
	// Bytes is the size of a response body.
	Bytes int `expr:"bytes"`
	// Trace is the traceparent of a request or console entry.
	Trace string `expr:"trace"`

	// Level is debug, info, warning or error.
	Level string `expr:"level"`
	// Logger is that of a console entry.
	Logger string `expr:"logger"`

	// Attrs holds the attributes of a node, Values its values: numbers, truth
	// values and texts as such, everything else as its preview.
	Attrs  map[string]string `expr:"attrs"`
	Values map[string]any    `expr:"values"`
	// Loc is where a node is defined, or a console entry was written.
	Loc string `expr:"loc"`
	// Children is how many children a node has.
	Children int `expr:"children"`
	// Value is that of a thing of the kind value, as in Values.
	Value any `expr:"value"`
}

// functions are those of the language that are allowed.
var functions = []string{"len", "abs", "int", "float", "string", "trim", "lower", "upper", "indexOf", "hasPrefix", "hasSuffix", "min", "max"}

// Fields returns the names of the fields in the order of Item.
func Fields() []string {
	t := reflect.TypeFor[Item]()
	var out []string
	for i := range t.NumField() {
		out = append(out, t.Field(i).Tag.Get("expr"))
	}
	return out
}

// Functions returns the names of the functions that an expression may call.
func Functions() []string { return functions }

// Filter is a compiled expression, or none, which everything matches.
type Filter struct {
	program *vm.Program
	vm      vm.VM
	uses    map[string]bool
	text    string
}

// New compiles an expression and a text that items must contain besides; both
// may be empty. The error wraps ErrFilter and names the column.
func New(expression, text string) (*Filter, error) {
	f := &Filter{text: strings.ToLower(text), vm: vm.VM{MemoryBudget: maxMemory}, uses: make(map[string]bool)}
	if strings.TrimSpace(expression) == "" {
		return f, nil
	}
	if len(expression) > MaxLength {
		return nil, fmt.Errorf("%w: it has %d bytes, the limit is %d", ErrFilter, len(expression), MaxLength)
	}
	opts := []expr.Option{expr.Env(Item{}), expr.AsBool(), expr.MaxNodes(maxNodes), expr.DisableAllBuiltins()}
	for _, name := range functions {
		opts = append(opts, expr.EnableBuiltin(name))
	}
	look := &looker{uses: f.uses}
	program, err := expr.Compile(expression, append(opts, func(c *conf.Config) { c.Visitors = append(c.Visitors, look) })...)
	if look.forbidden != "" {
		return nil, fmt.Errorf("%w: %s is not allowed", ErrFilter, look.forbidden)
	}
	if err != nil {
		return nil, explain(err)
	}
	f.program = program
	return f, nil
}

// looker notes which fields an expression uses, and what it must not.
type looker struct {
	uses      map[string]bool
	forbidden string
}

// Visit implements ast.Visitor.
func (l *looker) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		l.uses[n.Value] = true
	case *ast.PredicateNode:
		l.forbidden = "a loop over a list"
	case *ast.BinaryNode:
		if n.Operator == ".." {
			l.forbidden = "a range such as 1..9"
		}
	}
}

// explain turns an error of the library into one line with its place.
func explain(err error) error {
	var e *file.Error
	if !errors.As(err, &e) {
		return fmt.Errorf("%w: %s", ErrFilter, strings.Join(strings.Fields(err.Error()), " "))
	}
	hint := ""
	if strings.HasPrefix(e.Message, "unknown name") {
		hint = "; the fields are " + strings.Join(Fields(), ", ") + "; texts stand in quotes"
	}
	return fmt.Errorf("%w: column %d: %s%s", ErrFilter, e.Column+1, e.Message, hint)
}

// Empty reports whether everything matches.
func (f *Filter) Empty() bool { return f.program == nil && f.text == "" }

// Uses reports whether the outcome may depend on a field, so that it has to be filled in.
func (f *Filter) Uses(field string) bool { return f.uses[field] || field == "text" && f.text != "" }

// TextOnly reports whether there is no expression.
func (f *Filter) TextOnly() bool { return f.program == nil }

// Text is the text that items must contain, in lower case.
func (f *Filter) Text() string { return f.text }

// Match reports whether an item fulfils the expression and contains the text.
// What cannot be evaluated for an item, such as int(attrs.n) where n is no
// number, does not match.
func (f *Filter) Match(i *Item) bool {
	if f.text != "" && !f.contains(i) {
		return false
	}
	if f.program == nil {
		return true
	}
	out, err := f.vm.Run(f.program, i)
	return err == nil && out == true
}

// contains looks into everything of an item that people read.
func (f *Filter) contains(i *Item) bool {
	for _, s := range [...]string{i.Text, i.URL, i.Name, i.Kind, i.Error, i.Logger, i.Loc, i.Type, i.Route} {
		if Contains(s, f.text) {
			return true
		}
	}
	for k, v := range i.Attrs {
		if Contains(k, f.text) || Contains(v, f.text) {
			return true
		}
	}
	for k, v := range i.Values {
		if Contains(k, f.text) {
			return true
		}
		if s, ok := v.(string); ok && Contains(s, f.text) {
			return true
		}
	}
	return false
}

// Contains reports whether text contains lower, which is in lower case, without regard to case.
func Contains(text, lower string) bool {
	if len(text) < len(lower) {
		return false
	}
	for i := 0; i < len(text); i++ {
		if text[i] >= 0x80 || text[i] >= 'A' && text[i] <= 'Z' {
			return strings.Contains(strings.ToLower(text), lower)
		}
	}
	return strings.Contains(text, lower)
}
