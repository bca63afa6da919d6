package js

import (
	"github.com/dop251/goja"
	"github.com/dop251/goja/ast"
)

// arguments evaluates the arguments of a call.
func (w *walker) arguments(list []ast.Expression, s *scope) (out []goja.Value) {
	for _, a := range list {
		if sp, ok := a.(*ast.SpreadElement); ok {
			out = append(out, w.list(w.expression(sp.Expression, s))...)
			continue
		}
		out = append(out, w.expression(a, s))
	}
	return out
}

// invoke calls a function that is known to change nothing.
func (w *walker) invoke(f, this goja.Value, args []goja.Value) goja.Value {
	w.step()
	o, ok := f.(*goja.Object)
	if !ok || !isFunction(f) {
		panic(w.e.vm.NewTypeError("%s is not a function", f))
	}
	if c := w.closures[o]; c != nil {
		return w.apply(c, this, args)
	}
	target, _ := this.(*goja.Object)
	switch {
	case o == w.e.callFn && target != nil:
		self := goja.Undefined()
		if len(args) > 0 {
			self, args = args[0], args[1:]
		}
		return w.invoke(target, self, args)
	case o == w.e.applyFn && target != nil:
		self := goja.Undefined()
		var list []goja.Value
		if len(args) > 0 {
			self = args[0]
		}
		if len(args) > 1 && !isNullish(args[1]) {
			list = w.list(args[1])
		}
		return w.invoke(target, self, list)
	case w.e.mutators[o]:
		if target == nil || !w.fresh[target] {
			w.refuse()
		}
	case !w.e.pure[o]:
		w.refuse()
	}
	w.tame(this)
	for _, a := range args {
		w.tame(a)
	}
	call, _ := goja.AssertFunction(f)
	v, err := call(this, args...)
	if err != nil {
		panic(err)
	}
	if w.e.makers[o] {
		w.made(v)
	}
	return v
}

// construct evaluates new for built-in classes that only make something.
func (w *walker) construct(x *ast.NewExpression, s *scope) goja.Value {
	c, ok := w.expression(x.Callee, s).(*goja.Object)
	if !ok || !w.e.constructors[c] {
		w.refuse()
	}
	args := w.arguments(x.ArgumentList, s)
	for _, a := range args {
		w.tame(a)
	}
	o, err := w.e.vm.New(c, args...)
	if err != nil {
		panic(err)
	}
	return w.made(o)
}

// function makes a function that built-in functions can call.
func (w *walker) function(c *closure) goja.Value {
	f := w.e.vm.ToValue(func(call goja.FunctionCall) goja.Value { return w.apply(c, call.This, call.Arguments) }).(*goja.Object)
	w.closures[f] = c
	return f
}

// maxClosures is how deep closures call one another.
const maxClosures = 200

// apply runs a closure.
func (w *walker) apply(c *closure, this goja.Value, args []goja.Value) goja.Value {
	w.step()
	if w.depth += 2; w.depth > 2*maxClosures {
		w.refuse()
	}
	defer func() { w.depth -= 2 }()
	s := &scope{vars: make(map[string]goja.Value), outer: c.scope}
	if !c.arrow {
		if s.this = this; isNullish(this) {
			s.this = w.e.vm.GlobalObject()
		}
	}
	for i, p := range c.params.List {
		v := goja.Undefined()
		if i < len(args) {
			v = args[i]
		}
		if goja.IsUndefined(v) && !isNil(p.Initializer) {
			v = w.expression(p.Initializer, s)
		}
		w.bind(p.Target, v, s)
	}
	if !isNil(c.params.Rest) {
		var rest []any
		for i := len(c.params.List); i < len(args); i++ {
			rest = append(rest, args[i])
		}
		w.bind(c.params.Rest, w.made(w.e.vm.NewArray(rest...)), s)
	}
	switch b := c.body.(type) {
	case *ast.ExpressionBody:
		return w.expression(b.Expression, s)
	case *ast.BlockStatement:
		if v, returned := w.block(b.List, s); returned {
			return v
		}
		return goja.Undefined()
	}
	w.refuse()
	return nil
}

// bind gives names the parts of a value.
func (w *walker) bind(t ast.Node, v goja.Value, s *scope) {
	w.step()
	switch t := t.(type) {
	case *ast.Identifier:
		s.vars[t.Name.String()] = v
	case *ast.AssignExpression:
		if goja.IsUndefined(v) {
			v = w.expression(t.Right, s)
		}
		w.bind(t.Left, v, s)
	case *ast.ArrayPattern:
		list := w.list(v)
		for i, el := range t.Elements {
			if isNil(el) {
				continue
			}
			x := goja.Undefined()
			if i < len(list) {
				x = list[i]
			}
			w.bind(el, x, s)
		}
		if !isNil(t.Rest) {
			var rest []any
			for i := len(t.Elements); i < len(list); i++ {
				rest = append(rest, list[i])
			}
			w.bind(t.Rest, w.made(w.e.vm.NewArray(rest...)), s)
		}
	case *ast.ObjectPattern:
		w.bindObject(t, v, s)
	default:
		w.refuse()
	}
}

func (w *walker) bindObject(t *ast.ObjectPattern, v goja.Value, s *scope) {
	if !isNil(t.Rest) {
		w.refuse()
	}
	for _, p := range t.Properties {
		switch p := p.(type) {
		case *ast.PropertyShort:
			x := w.get(v, w.e.vm.ToValue(p.Name.Name.String()))
			if goja.IsUndefined(x) && !isNil(p.Initializer) {
				x = w.expression(p.Initializer, s)
			}
			s.vars[p.Name.Name.String()] = x
		case *ast.PropertyKeyed:
			w.bind(p.Value, w.get(v, w.key(w.expression(p.Key, s))), s)
		default:
			w.refuse()
		}
	}
}

// block runs statements that declare names and return.
func (w *walker) block(list []ast.Statement, s *scope) (v goja.Value, returned bool) {
	for _, st := range list {
		if v, returned = w.statement(st, s); returned {
			return v, true
		}
	}
	return nil, false
}

func (w *walker) statement(st ast.Statement, s *scope) (v goja.Value, returned bool) {
	w.step()
	switch st := st.(type) {
	case nil, *ast.EmptyStatement:
	case *ast.ReturnStatement:
		if isNil(st.Argument) {
			return goja.Undefined(), true
		}
		return w.expression(st.Argument, s), true
	case *ast.ExpressionStatement:
		w.expression(st.Expression, s)
	case *ast.BlockStatement:
		return w.block(st.List, &scope{vars: make(map[string]goja.Value), outer: s})
	case *ast.IfStatement:
		if w.expression(st.Test, s).ToBoolean() {
			return w.statement(st.Consequent, s)
		}
		if !isNil(st.Alternate) {
			return w.statement(st.Alternate, s)
		}
	case *ast.LexicalDeclaration:
		w.declare(st.List, s)
	case *ast.VariableStatement:
		w.declare(st.List, s)
	default:
		w.refuse()
	}
	return nil, false
}

func (w *walker) declare(list []*ast.Binding, s *scope) {
	for _, b := range list {
		v := goja.Undefined()
		if !isNil(b.Initializer) {
			v = w.expression(b.Initializer, s)
		}
		w.bind(b.Target, v, s)
	}
}

// maxListed is how many elements are taken out of something that is spread.
const maxListed = 100_000

// list takes the elements out of what can be iterated by built-in means only.
func (w *walker) list(v goja.Value) (out []goja.Value) {
	o, ok := v.(*goja.Object)
	if !ok && !goja.IsString(v) {
		panic(w.e.vm.NewTypeError("%s is not iterable", v))
	}
	w.tame(v)
	it, found := w.find(v.ToObject(w.e.vm), v, goja.SymIterator)
	f, _ := it.(*goja.Object)
	if !found || f == nil || !w.e.pure[f] {
		w.refuse()
	}
	var list *goja.Object
	switch {
	case o != nil && w.e.isList(o):
		list = o
	case o != nil && w.e.classify(o).subtype == "map":
		list = w.e.entries(o, "map")
	case o != nil && w.e.classify(o).subtype == "set":
		list = w.e.entries(o, "set")
	default:
		a, err := w.e.spread(goja.Undefined(), v)
		if err != nil {
			panic(err)
		}
		list = a.(*goja.Object)
	}
	n := int(list.Get("length").ToInteger())
	if n > maxListed {
		w.refuse()
	}
	for i := range n {
		w.step()
		out = append(out, w.get(list, w.e.vm.ToValue(itoa(i))))
	}
	return out
}

// isList reports whether elements can be taken by their numbers.
func (e *Engine) isList(o *goja.Object) bool {
	return o.ClassName() == "Array" || o.ExportType() == listType
}
