package js

import (
	"errors"
	"reflect"

	"github.com/dop251/goja"
	"github.com/dop251/goja/ast"

	"github.com/natscope/natscope/producer/goreal/internal/mirror"
	"github.com/natscope/natscope/producer/goreal/internal/repl"
)

// ErrSideEffect says that a source was not evaluated, since it could change something.
var ErrSideEffect = errors.New("js: possible side effect")

// Evaluation without side effects does not run a source: it walks its tree, and
// knows a part of the language that cannot change anything. Of functions it calls
// those only that are known to change nothing, found by their identity, and its
// own closures; a property that a function would have to read, a proxy, or an
// object whose conversion is not the built-in one ends it.

// purity is what is known of built-in functions.
type purity struct {
	// pure change nothing; mutators change what they are called on only; makers
	// return something new; constructors make something new of their arguments.
	pure, mutators, makers, constructors map[*goja.Object]bool
	// pristine are the built-in prototypes with the properties by which objects
	// are converted and copied, as they were at first.
	pristine map[*goja.Object]map[string]goja.Value
	// callFn and applyFn are Function.prototype's.
	callFn, applyFn *goja.Object
	// operators compute with primitive values.
	operators map[string]goja.Callable
	// spread lists what a built-in iterator gives.
	spread         goja.Callable
	referenceError *goja.Object
	regexpProto    *goja.Object
	hasInstance    goja.Value
}

// pureList gives the lists of purity in one array.
const pureList = `(function(){
	const out={pure:[],mutators:[],makers:[],constructors:[],protos:[]};
	const add=(to,o,names)=>{for(const k of names||Object.getOwnPropertyNames(o)){const d=Object.getOwnPropertyDescriptor(o,k);if(!d)continue;if(typeof d.value==='function')to.push(d.value);if(typeof d.get==='function')to.push(d.get)}};
	const {pure,mutators,makers,constructors,protos}=out;
	add(pure,Object,['keys','values','entries','getOwnPropertyNames','getOwnPropertySymbols','getOwnPropertyDescriptor','getOwnPropertyDescriptors','getPrototypeOf','is','fromEntries','hasOwn','isFrozen','isSealed','isExtensible']);
	add(makers,Object,['keys','values','entries','getOwnPropertyNames','fromEntries']);
	add(pure,Reflect,['ownKeys','has','getPrototypeOf','getOwnPropertyDescriptor','isExtensible']);
	add(pure,Math);pure.splice(pure.indexOf(Math.random),1);
	add(pure,JSON,['stringify','parse']);
	add(pure,Number);add(pure,Array,['isArray','of','from']);add(makers,Array,['of','from']);add(pure,String,['fromCharCode','fromCodePoint','raw']);add(pure,Date,['now','parse','UTC']);
	add(pure,Object.prototype,['hasOwnProperty','isPrototypeOf','propertyIsEnumerable','toString','valueOf','toLocaleString']);
	const names=Object.getOwnPropertyNames(String.prototype).filter(k=>k!=='constructor');
	add(pure,String.prototype,names);add(makers,String.prototype,['split','match','matchAll']);
	for(const C of [Number,Boolean,Symbol,BigInt]) add(pure,C.prototype,Object.getOwnPropertyNames(C.prototype).filter(k=>k!=='constructor'));
	const list=['concat','filter','flat','flatMap','map','slice','toReversed','toSorted','toSpliced','with'];
	add(pure,Array.prototype,['at','entries','every','find','findIndex','findLast','findLastIndex','forEach','includes','indexOf','join','keys','lastIndexOf','reduce','reduceRight','some','toString','values','toLocaleString',...list]);
	add(makers,Array.prototype,list);
	add(mutators,Array.prototype,['sort','reverse','push','pop','shift','unshift','splice','fill','copyWithin']);
	const typed=Object.getPrototypeOf(Uint8Array.prototype);
	add(pure,typed,Object.getOwnPropertyNames(typed).filter(k=>!['constructor','set','fill','sort','reverse','copyWithin'].includes(k)));
	add(pure,ArrayBuffer.prototype,['byteLength']);
	add(pure,Map.prototype,['get','has','keys','values','entries','forEach','size']);add(mutators,Map.prototype,['set','delete','clear']);
	add(pure,Set.prototype,['has','keys','values','entries','forEach','size','union','intersection','difference','symmetricDifference','isSubsetOf','isSupersetOf','isDisjointFrom']);add(mutators,Set.prototype,['add','delete','clear']);
	add(pure,WeakMap.prototype,['get','has']);add(pure,WeakSet.prototype,['has']);
	add(pure,Date.prototype,Object.getOwnPropertyNames(Date.prototype).filter(k=>/^(get|to|valueOf)/.test(k)));add(mutators,Date.prototype,Object.getOwnPropertyNames(Date.prototype).filter(k=>/^set/.test(k)));
	add(pure,RegExp.prototype,['toString','flags','source','global','ignoreCase','multiline','sticky','unicode','dotAll']);add(mutators,RegExp.prototype,['test','exec']);
	add(pure,Function.prototype,['toString']);add(pure,Error.prototype,['toString']);
	for(const f of [String,Number,Boolean,BigInt,Symbol,Object,parseInt,parseFloat,isNaN,isFinite,encodeURIComponent,decodeURIComponent,encodeURI,decodeURI,keys,values]) pure.push(f);
	makers.push(keys,values);
	constructors.push(Date,Map,Set,Array,Object,RegExp,Error,TypeError,RangeError,SyntaxError,ReferenceError,EvalError,URIError,String,Number,Boolean);
	for(const s of [Symbol.toPrimitive]) pure.push(Date.prototype[s],Symbol.prototype[s]);
	for(const o of [Array,Map,Set,String]) pure.push(o.prototype[Symbol.iterator]);
	pure.push(Object.getOwnPropertyDescriptor(Array,Symbol.species).get);
	protos.push(Object.prototype,Array.prototype,String.prototype,Number.prototype,Boolean.prototype,Symbol.prototype,BigInt.prototype,Map.prototype,Set.prototype,WeakMap.prototype,WeakSet.prototype,Date.prototype,RegExp.prototype,Function.prototype,Error.prototype,TypeError.prototype,RangeError.prototype,SyntaxError.prototype,ReferenceError.prototype,EvalError.prototype,URIError.prototype,Promise.prototype,ArrayBuffer.prototype,typed);
	for(const n of ['Int8','Uint8','Uint8Clamped','Int16','Uint16','Int32','Uint32','Float32','Float64','BigInt64','BigUint64']) protos.push(globalThis[n+'Array'].prototype);
	return out})()`

// conversions are the properties by which objects are converted, copied and iterated.
var conversionNames = []string{"toString", "valueOf", "toJSON", "join", "constructor", "then", "exec", "flags"}

// operatorNames are the operators that compute with primitive values, or compare.
var operatorNames = []string{"+", "-", "*", "/", "%", "**", "<", ">", "<=", ">=", "==", "!=", "===", "!==", "&", "|", "^", "<<", ">>", ">>>", "in", "instanceof"}

// initPure remembers what is built in, before anybody could replace it.
func (e *Engine) initPure() {
	lists := must(e.vm.RunScript("natscope:pure", pureList)).(*goja.Object)
	set := func(name string, into map[*goja.Object]bool) map[*goja.Object]bool {
		a := lists.Get(name).(*goja.Object)
		for i := range int(a.Get("length").ToInteger()) {
			if o, ok := a.Get(itoa(i)).(*goja.Object); ok {
				into[o] = true
			}
		}
		return into
	}
	set("pure", e.pure)
	e.mutators, e.makers, e.constructors = set("mutators", map[*goja.Object]bool{}), set("makers", map[*goja.Object]bool{}), set("constructors", map[*goja.Object]bool{})
	e.pristine = make(map[*goja.Object]map[string]goja.Value)
	for p := range set("protos", map[*goja.Object]bool{}) {
		e.pristine[p] = e.conversionsOf(p)
	}
	object := func(src string) *goja.Object { return must(e.vm.RunString(src)).(*goja.Object) }
	e.callFn, e.applyFn = object("Function.prototype.call"), object("Function.prototype.apply")
	e.referenceError, e.regexpProto = object("ReferenceError"), object("RegExp.prototype")
	e.hasInstance = must(e.vm.RunString("Function.prototype[Symbol.hasInstance]"))
	e.operators = make(map[string]goja.Callable)
	for _, op := range operatorNames {
		e.operators[op] = e.function("(a,b)=>a " + op + " b")
	}
	for _, op := range []string{"-", "+", "~"} {
		e.operators["unary"+op] = e.function("a=>" + op + "a")
	}
	e.spread = e.function("x=>[...x]")
}

// conversionsOf reads the properties by which objects of a prototype are converted.
func (e *Engine) conversionsOf(p *goja.Object) map[string]goja.Value {
	out := make(map[string]goja.Value)
	for _, k := range conversionNames {
		out[k] = e.slotOf(p, e.vm.ToValue(k))
	}
	for _, s := range []*goja.Symbol{goja.SymIterator, goja.SymToPrimitive, goja.SymToStringTag, goja.SymSpecies} {
		out[s.String()] = e.slotOf(p, s)
	}
	return out
}

// slotOf is a property's value or getter; nil if there is none.
func (e *Engine) slotOf(p *goja.Object, key goja.Value) goja.Value {
	d := e.descriptorOf(p, key)
	if d == nil {
		return nil
	}
	if g := d.Get("get"); isFunction(g) {
		return g
	}
	return d.Get("value")
}

// Pure evaluates a source if that changes nothing; else the error is ErrSideEffect.
func (e *Engine) Pure(src string) (mirror.Object, error) {
	prog, err := repl.Parse("eager", src)
	if err != nil {
		return nil, err
	}
	if f, ok := soleFunction(prog); ok {
		// To make a function changes nothing.
		out, _, err := e.Run("", "("+f+")", false)
		return out, err
	}
	w := e.walker()
	var v goja.Value
	err = w.run(func() { v = w.program(prog) })
	return e.object(v), err
}

// CallPure calls a function given by its source if that changes nothing; else the error is ErrSideEffect.
func (e *Engine) CallPure(fn string, this mirror.Object, args []mirror.Object) (mirror.Object, error) {
	prog, err := repl.Parse("call", "("+fn+"\n)")
	if err != nil {
		return nil, err
	}
	w := e.walker()
	var v goja.Value
	err = w.run(func() {
		if len(prog.Body) != 1 {
			w.refuse()
		}
		es, ok := prog.Body[0].(*ast.ExpressionStatement)
		if !ok {
			w.refuse()
		}
		f := w.expression(es.Expression, nil)
		in := make([]goja.Value, len(args))
		for i, a := range args {
			in[i] = e.value(a)
		}
		v = w.invoke(f, e.value(this), in)
	})
	return e.object(v), err
}

// soleFunction returns the source of a script that only makes a function.
func soleFunction(prog *ast.Program) (string, bool) {
	if len(prog.Body) != 1 {
		return "", false
	}
	es, ok := prog.Body[0].(*ast.ExpressionStatement)
	if !ok {
		return "", false
	}
	switch f := es.Expression.(type) {
	case *ast.FunctionLiteral:
		return f.Source, true
	case *ast.ArrowFunctionLiteral:
		return f.Source, true
	}
	return "", false
}

// maxSteps bounds one evaluation without side effects.
const maxSteps = 2_000_000

// walker is one evaluation without side effects.
type walker struct {
	e     *Engine
	steps int
	// refused says that a side effect was met; over that the evaluation ended.
	refused, over bool
	// fresh is what was made in the evaluation: it may be changed.
	fresh map[*goja.Object]bool
	// closures are the functions that were made in it.
	closures map[*goja.Object]*closure
	// checked are prototypes that were found as they were.
	checked map[*goja.Object]bool
	depth   int
}

func (e *Engine) walker() *walker {
	return &walker{e: e, fresh: make(map[*goja.Object]bool), closures: make(map[*goja.Object]*closure), checked: make(map[*goja.Object]bool)}
}

// run runs f and tells how it ended.
func (w *walker) run(f func()) error {
	err := w.e.protect(func() error { f(); return nil })
	w.over = true
	if w.refused {
		return ErrSideEffect
	}
	return err
}

// refuse ends the evaluation. The exception goes through built-in functions,
// none of which catches it.
func (w *walker) refuse() {
	w.refused = true
	panic(w.e.vm.NewGoError(ErrSideEffect))
}

// step counts work, and ends what takes too much of it.
func (w *walker) step() {
	w.steps++
	if w.steps > maxSteps || w.over || w.refused || w.e.interrupted.Load() {
		w.refuse()
	}
}

// scope holds the variables of one function or block.
type scope struct {
	vars  map[string]goja.Value
	outer *scope
	this  goja.Value
}

func (s *scope) lookup(name string) (goja.Value, bool) {
	for ; s != nil; s = s.outer {
		if v, ok := s.vars[name]; ok {
			return v, true
		}
	}
	return nil, false
}

// closure is a function of the source that is evaluated.
type closure struct {
	params *ast.ParameterList
	body   ast.ConciseBody
	scope  *scope
	arrow  bool
}

// isNil reports whether an interface holds nothing, typed or not.
func isNil(n any) bool {
	if n == nil {
		return true
	}
	v := reflect.ValueOf(n)
	return v.Kind() == reflect.Pointer && v.IsNil()
}
