package js

import (
	"strings"

	"github.com/dop251/goja"
	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/token"
)

// program evaluates expressions one after the other.
func (w *walker) program(prog *ast.Program) goja.Value {
	v := goja.Undefined()
	for _, st := range prog.Body {
		switch s := st.(type) {
		case *ast.EmptyStatement:
		case *ast.ExpressionStatement:
			v = w.expression(s.Expression, nil)
		default:
			w.refuse()
		}
	}
	return v
}

// expression evaluates an expression.
func (w *walker) expression(x ast.Expression, s *scope) goja.Value {
	w.step()
	if w.depth++; w.depth > 500 {
		w.refuse()
	}
	defer func() { w.depth-- }()
	vm := w.e.vm
	switch x := x.(type) {
	case *ast.NullLiteral:
		return goja.Null()
	case *ast.BooleanLiteral:
		return vm.ToValue(x.Value)
	case *ast.NumberLiteral:
		return vm.ToValue(x.Value)
	case *ast.StringLiteral:
		if u := x.Value.AsUtf16(); u != nil {
			return goja.StringFromUTF16(u[1:])
		}
		return vm.ToValue(x.Value.String())
	case *ast.RegExpLiteral:
		return w.made(must(vm.RunString(x.Literal)))
	case *ast.TemplateLiteral:
		return w.template(x, s)
	case *ast.Identifier:
		return w.identifier(x.Name.String(), s, false)
	case *ast.ThisExpression:
		return w.this(s)
	case *ast.SequenceExpression:
		v := goja.Undefined()
		for _, p := range x.Sequence {
			v = w.expression(p, s)
		}
		return v
	case *ast.ConditionalExpression:
		if w.expression(x.Test, s).ToBoolean() {
			return w.expression(x.Consequent, s)
		}
		return w.expression(x.Alternate, s)
	case *ast.BinaryExpression:
		return w.binary(x, s)
	case *ast.UnaryExpression:
		return w.unary(x, s)
	case *ast.ArrayLiteral:
		return w.array(x, s)
	case *ast.ObjectLiteral:
		return w.object(x, s)
	case *ast.FunctionLiteral:
		if x.Async || x.Generator {
			w.refuse()
		}
		return w.function(&closure{params: x.ParameterList, body: x.Body, scope: s})
	case *ast.ArrowFunctionLiteral:
		if x.Async {
			w.refuse()
		}
		return w.function(&closure{params: x.ParameterList, body: x.Body, scope: s, arrow: true})
	case *ast.NewExpression:
		return w.construct(x, s)
	case *ast.DotExpression, *ast.BracketExpression, *ast.CallExpression, *ast.OptionalChain, *ast.Optional:
		v, _, _ := w.chain(x, s)
		return v
	}
	w.refuse()
	return nil
}

// made notes an object as new.
func (w *walker) made(v goja.Value) goja.Value {
	if o, ok := v.(*goja.Object); ok {
		w.fresh[o] = true
	}
	return v
}

// chain evaluates accesses and calls. this is what a call of the value is on;
// done says that an optional chain ended early.
func (w *walker) chain(x ast.Expression, s *scope) (v, this goja.Value, done bool) {
	switch x := x.(type) {
	case *ast.OptionalChain:
		v, this, _ = w.chain(x.Expression, s)
		return v, this, false
	case *ast.Optional:
		v, this, done = w.chain(x.Expression, s)
		if !done && (goja.IsUndefined(v) || goja.IsNull(v)) {
			return goja.Undefined(), goja.Undefined(), true
		}
		return v, this, done
	case *ast.DotExpression:
		base, _, done := w.chain(x.Left, s)
		if done {
			return goja.Undefined(), goja.Undefined(), true
		}
		return w.get(base, w.e.vm.ToValue(x.Identifier.Name.String())), base, false
	case *ast.BracketExpression:
		base, _, done := w.chain(x.Left, s)
		if done {
			return goja.Undefined(), goja.Undefined(), true
		}
		return w.get(base, w.key(w.expression(x.Member, s))), base, false
	case *ast.CallExpression:
		f, this, done := w.chain(x.Callee, s)
		if done {
			return goja.Undefined(), goja.Undefined(), true
		}
		return w.invoke(f, this, w.arguments(x.ArgumentList, s)), goja.Undefined(), false
	}
	return w.expression(x, s), goja.Undefined(), false
}

// key is a property's key of a value.
func (w *walker) key(v goja.Value) goja.Value {
	v = w.primitive(v, "string")
	if _, ok := v.(*goja.Symbol); ok {
		return v
	}
	return w.e.vm.ToValue(v.String())
}

// identifier reads a variable.
func (w *walker) identifier(name string, s *scope, maybe bool) goja.Value {
	if v, ok := s.lookup(name); ok {
		return v
	}
	if name == "undefined" {
		return goja.Undefined()
	}
	g := w.e.vm.GlobalObject()
	if v, ok := w.find(g, g, w.e.vm.ToValue(name)); ok {
		return v
	}
	if maybe {
		return goja.Undefined()
	}
	x, err := w.e.vm.New(w.e.referenceError, w.e.vm.ToValue(name+" is not defined"))
	if err != nil {
		panic(err)
	}
	panic(goja.Value(x))
}

func (w *walker) this(s *scope) goja.Value {
	for ; s != nil; s = s.outer {
		if s.this != nil {
			return s.this
		}
	}
	return w.e.vm.GlobalObject()
}

// get reads a property without running anything.
func (w *walker) get(base, key goja.Value) goja.Value {
	if goja.IsUndefined(base) || goja.IsNull(base) {
		panic(w.e.vm.NewTypeError("Cannot read properties of %s (reading '%s')", base, key))
	}
	v, ok := w.find(base.ToObject(w.e.vm), base, key)
	if !ok {
		return goja.Undefined()
	}
	return v
}

// find looks for a property along the prototypes.
func (w *walker) find(o *goja.Object, receiver, key goja.Value) (goja.Value, bool) {
	_, isSymbol := key.(*goja.Symbol)
	for n := 0; o != nil && n < 1000; o, n = o.Prototype(), n+1 {
		w.step()
		if x := valueOf(o); x != nil {
			if isSymbol {
				continue
			}
			// Reading a Go value runs nothing of the program.
			if v := o.Get(key.String()); v != nil && w.e.ownOfGo(o, key.String()) {
				return v, true
			}
			continue
		}
		if _, proxy := inner(o).(goja.Proxy); proxy {
			w.refuse()
		}
		d := w.e.descriptorOf(o, key)
		if d == nil {
			continue
		}
		if g, ok := d.Get("get").(*goja.Object); ok {
			if !w.e.pure[g] {
				w.refuse()
			}
			f, _ := goja.AssertFunction(g)
			v, err := f(receiver)
			if err != nil {
				panic(err)
			}
			return v, true
		}
		if v := d.Get("value"); v != nil {
			return v, true
		}
		return goja.Undefined(), true
	}
	return nil, false
}

// ownOfGo reports whether a property is the Go value's own, and not its prototype's.
func (e *Engine) ownOfGo(o *goja.Object, key string) bool {
	d := e.descriptorOf(o, e.vm.ToValue(key))
	return d != nil
}

func (w *walker) template(x *ast.TemplateLiteral, s *scope) goja.Value {
	if x.Tag != nil {
		w.refuse()
	}
	var b strings.Builder
	for i, el := range x.Elements {
		b.WriteString(el.Parsed.String())
		if i < len(x.Expressions) {
			v := w.primitive(w.expression(x.Expressions[i], s), "string")
			if _, ok := v.(*goja.Symbol); ok {
				panic(w.e.vm.NewTypeError("Cannot convert a Symbol value to a string"))
			}
			b.WriteString(v.String())
		}
		if b.Len() > 1<<24 {
			w.refuse()
		}
	}
	return w.e.vm.ToValue(b.String())
}

func (w *walker) binary(x *ast.BinaryExpression, s *scope) goja.Value {
	left := w.expression(x.Left, s)
	switch x.Operator {
	case token.LOGICAL_AND:
		if !left.ToBoolean() {
			return left
		}
		return w.expression(x.Right, s)
	case token.LOGICAL_OR:
		if left.ToBoolean() {
			return left
		}
		return w.expression(x.Right, s)
	case token.COALESCE:
		if !goja.IsUndefined(left) && !goja.IsNull(left) {
			return left
		}
		return w.expression(x.Right, s)
	}
	right := w.expression(x.Right, s)
	return w.operate(x.Operator.String(), left, right)
}

// operate computes with two values.
func (w *walker) operate(op string, left, right goja.Value) goja.Value {
	f := w.e.operators[op]
	if f == nil {
		w.refuse()
	}
	switch op {
	case "===", "!==":
	case "in":
		left = w.key(left)
		w.noProxy(right)
	case "instanceof":
		w.noProxy(left)
		w.noProxy(right)
		if o, ok := right.(*goja.Object); ok {
			if f, ok := w.find(o, right, goja.SymHasInstance); ok && f != w.e.hasInstance {
				w.refuse()
			}
			w.get(right, w.e.vm.ToValue("prototype"))
		}
	case "==", "!=":
		_, a := left.(*goja.Object)
		_, b := right.(*goja.Object)
		if a != b && !isNullish(left) && !isNullish(right) {
			left, right = w.primitive(left, "default"), w.primitive(right, "default")
		}
	default:
		hint := "number"
		if op == "+" {
			hint = "default"
		}
		left, right = w.primitive(left, hint), w.primitive(right, hint)
		w.bounded(op, left, right)
	}
	v, err := f(goja.Undefined(), left, right)
	if err != nil {
		panic(err)
	}
	return v
}

// noProxy refuses a value that is a proxy or inherits from one.
func (w *walker) noProxy(v goja.Value) {
	o, _ := v.(*goja.Object)
	for n := 0; o != nil && n < 1000; o, n = o.Prototype(), n+1 {
		if _, proxy := inner(o).(goja.Proxy); proxy && !w.e.constructors[o] {
			w.refuse()
		}
	}
}

// bounded refuses what would take too much: texts and big numbers that grow without end.
func (w *walker) bounded(op string, left, right goja.Value) {
	if goja.IsBigInt(left) && (op == "**" || op == "<<") {
		w.refuse()
	}
	if op == "+" && (goja.IsString(left) || goja.IsString(right)) && len(left.String())+len(right.String()) > 1<<24 {
		w.refuse()
	}
}

func isNullish(v goja.Value) bool { return goja.IsUndefined(v) || goja.IsNull(v) }

func (w *walker) unary(x *ast.UnaryExpression, s *scope) goja.Value {
	vm := w.e.vm
	switch x.Operator {
	case token.TYPEOF:
		if id, ok := x.Operand.(*ast.Identifier); ok {
			return vm.ToValue(w.typeOf(w.identifier(id.Name.String(), s, true)))
		}
		return vm.ToValue(w.typeOf(w.expression(x.Operand, s)))
	case token.NOT:
		return vm.ToValue(!w.expression(x.Operand, s).ToBoolean())
	case token.VOID:
		w.expression(x.Operand, s)
		return goja.Undefined()
	case token.MINUS, token.PLUS, token.BITWISE_NOT:
		v, err := w.e.operators["unary"+x.Operator.String()](goja.Undefined(), w.primitive(w.expression(x.Operand, s), "number"))
		if err != nil {
			panic(err)
		}
		return v
	}
	w.refuse()
	return nil
}

func (w *walker) typeOf(v goja.Value) string {
	switch {
	case goja.IsUndefined(v):
		return "undefined"
	case goja.IsNull(v):
		return "object"
	case isFunction(v):
		return "function"
	case goja.IsString(v):
		return "string"
	case goja.IsNumber(v):
		return "number"
	case goja.IsBigInt(v):
		return "bigint"
	}
	switch v.(type) {
	case *goja.Symbol:
		return "symbol"
	case *goja.Object:
		return "object"
	}
	return "boolean"
}

func (w *walker) array(x *ast.ArrayLiteral, s *scope) goja.Value {
	var out []any
	for _, el := range x.Value {
		switch el := el.(type) {
		case nil:
			out = append(out, goja.Undefined())
		case *ast.SpreadElement:
			for _, v := range w.list(w.expression(el.Expression, s)) {
				out = append(out, v)
			}
		default:
			out = append(out, w.expression(el, s))
		}
	}
	return w.made(w.e.vm.NewArray(out...))
}

func (w *walker) object(x *ast.ObjectLiteral, s *scope) goja.Value {
	o := w.e.vm.NewObject()
	put := func(k string, v goja.Value) {
		_ = o.DefineDataProperty(k, v, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE)
	}
	for _, p := range x.Value {
		switch p := p.(type) {
		case *ast.PropertyShort:
			put(p.Name.Name.String(), w.identifier(p.Name.Name.String(), s, false))
		case *ast.PropertyKeyed:
			if p.Kind != ast.PropertyKindValue {
				w.refuse()
			}
			key := w.key(w.expression(p.Key, s))
			if sym, ok := key.(*goja.Symbol); ok {
				_ = o.DefineDataPropertySymbol(sym, w.expression(p.Value, s), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE)
			} else if key.String() == "__proto__" && !p.Computed {
				w.refuse()
			} else {
				put(key.String(), w.expression(p.Value, s))
			}
		case *ast.SpreadElement:
			w.spreadInto(w.expression(p.Expression, s), put)
		default:
			w.refuse()
		}
	}
	return w.made(o)
}

// spreadInto copies the properties of an object.
func (w *walker) spreadInto(v goja.Value, put func(string, goja.Value)) {
	o, ok := v.(*goja.Object)
	if !ok {
		return
	}
	w.tame(o)
	for _, k := range o.Keys() {
		w.step()
		put(k, w.get(o, w.e.vm.ToValue(k)))
	}
}
