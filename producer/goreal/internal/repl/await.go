package repl

import (
	"strings"

	"github.com/dop251/goja/ast"
)

// The function around input that awaits. Its head stands in front of the first
// line, and the result is in an object, so that a promise is not taken for what it gives.
const (
	awaitHead = "(async()=>{"
	awaitTail = "\n})()"
)

// rewriteAwait puts input into an async function: what it declares is declared
// outside, and the value of its last expression is returned.
func rewriteAwait(src string) (Source, bool) {
	wrapped := awaitHead + src + awaitTail
	body, ok := awaitBody(wrapped)
	if !ok {
		return Source{}, false
	}
	r := awaitRewriter{src: wrapped, end: len(wrapped) - len(awaitTail)}
	for i, st := range body.List {
		r.statement(st, i == len(body.List)-1)
	}
	code := apply(wrapped, r.edits)
	if len(r.declared) > 0 {
		code = "var " + strings.Join(r.declared, ",") + ";" + code
	}
	if _, err := Parse("repl", code); err != nil {
		return Source{}, false
	}
	return Source{Code: code, Names: r.lexical, Await: true}, true
}

// awaitBody returns the body of the function that rewriteAwait made; false if
// the input closed it and opened something else.
func awaitBody(wrapped string) (*ast.BlockStatement, bool) {
	prog, err := Parse("repl", wrapped)
	if err != nil || len(prog.Body) != 1 {
		return nil, false
	}
	es, ok := prog.Body[0].(*ast.ExpressionStatement)
	if !ok {
		return nil, false
	}
	call, ok := es.Expression.(*ast.CallExpression)
	if !ok {
		return nil, false
	}
	fn, ok := call.Callee.(*ast.ArrowFunctionLiteral)
	if !ok {
		return nil, false
	}
	body, ok := fn.Body.(*ast.BlockStatement)
	return body, ok && int(body.RightBrace) == len(wrapped)-len("})()")+1
}

type awaitRewriter struct {
	src string
	// end is where the input ends.
	end   int
	edits []edit
	// declared is what is declared outside, lexical the part that let, const and class declared.
	declared, lexical []string
	// from is where the statement before ended.
	from int
}

func (r *awaitRewriter) insert(at int, text string) {
	r.edits = append(r.edits, edit{at: at, ins: text})
}

func (r *awaitRewriter) statement(st ast.Statement, last bool) {
	switch d := st.(type) {
	case *ast.LexicalDeclaration:
		r.declaration(int(d.Idx)-1, len(keyword(d.Token)), d.List, true)
	case *ast.VariableStatement:
		r.declaration(int(d.Var)-1, len("var"), d.List, false)
	case *ast.ClassDeclaration:
		n := d.Class.Name.Name.String()
		r.declared, r.lexical = append(r.declared, n), append(r.lexical, n)
		r.insert(int(d.Class.Class)-1, n+"=")
		r.insert(int(d.Class.RightBrace), ";")
	case *ast.FunctionDeclaration:
		// The function stays where it is, for what stands before it, and is kept outside.
		n := d.Function.Name.Name.String()
		r.declared = append(r.declared, n)
		r.insert(len(awaitHead), "globalThis."+n+"="+n+";")
	case *ast.ExpressionStatement:
		if last {
			r.result(d)
		}
	}
	r.from = int(st.Idx1()) - 1
}

// declaration makes "let a=1, {b}=c" an assignment to names that are declared outside.
func (r *awaitRewriter) declaration(at, word int, list []*ast.Binding, lexical bool) {
	r.edits = append(r.edits, edit{at, word, "void ("})
	for _, b := range list {
		if b.Initializer == nil {
			r.insert(int(b.Target.Idx1())-1, "=undefined")
		}
		ns := names(b.Target)
		r.declared = append(r.declared, ns...)
		if lexical {
			r.lexical = append(r.lexical, ns...)
		}
	}
	r.insert(r.closed(int(list[len(list)-1].Idx1())-1), ");")
}

// closed goes on to behind the parentheses around an expression, which do not count as part of it.
func (r *awaitRewriter) closed(at int) int {
	for next := at; next < r.end; next++ {
		switch r.src[next] {
		case ')':
			at = next + 1
		case ' ', '\t', '\n', '\r':
		default:
			return at
		}
	}
	return at
}

// result returns the value of the last expression.
func (r *awaitRewriter) result(d *ast.ExpressionStatement) {
	at := int(d.Idx0()) - 1
	for at > max(r.from, len(awaitHead)) && strings.IndexByte(" \t\r\n(", r.src[at-1]) >= 0 {
		at--
	}
	r.insert(at, "return {v:(")
	r.insert(r.closed(int(d.Idx1())-1), ")}")
}
