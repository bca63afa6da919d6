package repl

import (
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/parser"
	"github.com/dop251/goja/token"
)

// Source is console input that was made ready to run.
type Source struct {
	// Code is what to run. Lines, and where possible columns, are those of the input.
	Code string
	// Names are the names that the input declares with let, const and class.
	Names []string
	// Await says that Code gives a promise of an object whose v is the result.
	Await bool
}

// SyntaxError says why a source cannot be parsed. Line and Column count from 1.
type SyntaxError struct {
	Message      string
	Line, Column int
}

// Error returns the message as an engine's SyntaxError begins.
func (e *SyntaxError) Error() string { return "SyntaxError: " + e.Message }

// Parse parses a script. The error is a *SyntaxError.
func Parse(name, src string) (*ast.Program, error) {
	if err := CheckDepth(src); err != nil {
		return nil, &SyntaxError{Message: err.Error(), Line: 1, Column: 1}
	}
	// Source maps that a comment names would be loaded from the file system.
	p, err := parser.ParseFile(nil, name, src, 0, parser.WithDisableSourceMaps)
	if err != nil {
		return nil, syntaxError(src, err)
	}
	return p, nil
}

func syntaxError(src string, err error) *SyntaxError {
	e := &SyntaxError{Message: err.Error(), Line: 1, Column: 1}
	var list parser.ErrorList
	if errors.As(err, &list) && len(list) > 0 {
		e.Message, e.Line, e.Column = list[0].Message, list[0].Position.Line, list[0].Position.Column
	}
	// DevTools lets people write on behind two messages only.
	if e.Message == "Unexpected end of input" && strings.Count(src, "`")%2 == 1 {
		e.Message = "Unterminated template literal"
	}
	return e
}

// edit replaces del bytes at a place.
type edit struct {
	at, del int
	ins     string
}

// apply makes edits, which must not overlap; those at the same place keep their order.
func apply(src string, edits []edit) string {
	slices.SortStableFunc(edits, func(a, b edit) int { return a.at - b.at })
	var b strings.Builder
	at := 0
	for _, e := range edits {
		b.WriteString(src[at:e.at])
		b.WriteString(e.ins)
		at = e.at + e.del
	}
	b.WriteString(src[at:])
	return b.String()
}

// Rewrite makes console input ready to run. The error is a *SyntaxError.
func Rewrite(src string) (Source, error) {
	prog, err := Parse("repl", src)
	if strings.Contains(src, "await") && (err != nil || mentions(prog, "await")) {
		if s, ok := rewriteAwait(src); ok {
			return s, nil
		}
		// Where await is a keyword, what is left open may be something else.
		if _, err := Parse("repl", awaitHead+src); err != nil && isOpen(err) && prog == nil {
			return Source{}, err
		}
	}
	if err != nil {
		return Source{}, err
	}
	var s Source
	var edits []edit
	for _, st := range prog.Body {
		switch d := st.(type) {
		case *ast.LexicalDeclaration:
			// var instead of let or const, as long as it was, so that columns stay.
			word := keyword(d.Token)
			edits = append(edits, edit{int(d.Idx) - 1, len(word), "var" + strings.Repeat(" ", len(word)-3)})
			for _, b := range d.List {
				s.Names = append(s.Names, names(b.Target)...)
			}
		case *ast.ClassDeclaration:
			n := d.Class.Name.Name.String()
			s.Names = append(s.Names, n)
			edits = append(edits, edit{int(d.Class.Class) - 1, 0, "var " + n + "="}, edit{int(d.Class.RightBrace), 0, ";"})
		}
	}
	s.Code = src
	if len(edits) > 0 {
		s.Code = apply(src, edits)
		if _, err := Parse("repl", s.Code); err != nil {
			// What cannot be rewritten runs as it is, once.
			return Source{Code: src, Names: s.Names}, nil
		}
	}
	return s, nil
}

// isOpen reports whether an error is one behind which DevTools lets people write on.
func isOpen(err error) bool {
	m := err.(*SyntaxError).Message
	return m == "Unexpected end of input" || m == "Unterminated template literal"
}

// mentions reports whether a script uses a name.
func mentions(prog *ast.Program, name string) bool {
	return find(reflect.ValueOf(prog.Body), name)
}

func find(v reflect.Value, name string) bool {
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if v.IsNil() {
			return false
		}
		if id, ok := v.Interface().(*ast.Identifier); ok {
			return id.Name.String() == name
		}
		return find(v.Elem(), name)
	case reflect.Slice:
		for i := range v.Len() {
			if find(v.Index(i), name) {
				return true
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && find(v.Field(i), name) {
				return true
			}
		}
	}
	return false
}

func keyword(t token.Token) string {
	if t == token.CONST {
		return "const"
	}
	return "let"
}

// names lists what a pattern declares.
func names(t ast.Node) (out []string) {
	switch x := t.(type) {
	case *ast.Identifier:
		return []string{x.Name.String()}
	case *ast.ObjectPattern:
		for _, p := range x.Properties {
			switch q := p.(type) {
			case *ast.PropertyShort:
				out = append(out, q.Name.Name.String())
			case *ast.PropertyKeyed:
				out = append(out, names(q.Value)...)
			}
		}
		if x.Rest != nil {
			out = append(out, names(x.Rest)...)
		}
	case *ast.ArrayPattern:
		for _, e := range x.Elements {
			if e != nil {
				out = append(out, names(e)...)
			}
		}
		if x.Rest != nil {
			out = append(out, names(x.Rest)...)
		}
	case *ast.AssignExpression:
		return names(x.Left)
	case *ast.Binding:
		return names(x.Target)
	}
	return out
}
