package js

import (
	"strconv"

	"github.com/dop251/goja"

	"github.com/natscope/natscope/producer/goreal/internal/mirror"
	"github.com/natscope/natscope/producer/goreal/internal/remote"
)

// Properties lists what an object shows when it is expanded. A proxy of a page's
// own making can throw: the exception is part of the result.
func (x Value) Properties(l *mirror.Lens, q mirror.Query) remote.Properties {
	return x.e.Properties(x, l, q)
}

// Properties lists the properties of any value. Those of primitive values are
// inherited, such as the methods of texts.
func (e *Engine) Properties(v mirror.Object, l *mirror.Lens, q mirror.Query) remote.Properties {
	out := remote.Properties{Result: []remote.Property{}}
	p := &listing{e: e, l: l, q: q, out: &out, seen: make(map[string]bool)}
	err := e.protect(func() error {
		o, ok := e.value(v).(*goja.Object)
		if !ok {
			return nil
		}
		if x := valueOf(o); x != nil {
			// Its own properties are told by the mirror, with their types.
			own := x.Properties(l, mirror.Query{Accessors: q.Accessors, NonIndexed: q.NonIndexed, Preview: q.Preview})
			for _, r := range own.Result {
				p.seen[r.Name] = true
			}
			out = own
		} else {
			p.all(o)
		}
		if _, proxy := inner(o).(goja.Proxy); q.Inherited && !proxy {
			p.inherited(o.Prototype())
		}
		return nil
	})
	if err != nil {
		out.Exception = e.Details(err, l)
	}
	return out
}

// maxChain is how many prototypes are listed.
const maxChain = 100

// inherited lists what the prototypes of an object add.
func (p *listing) inherited(o *goja.Object) {
	p.proto = true
	for n := 0; o != nil && n < maxChain; o, n = o.Prototype(), n+1 {
		if _, proxy := inner(o).(goja.Proxy); proxy {
			return
		}
		p.properties(o)
	}
}

type listing struct {
	e   *Engine
	l   *mirror.Lens
	q   mirror.Query
	out *remote.Properties
	// proto says that a prototype of the object is listed, seen holds the names so far.
	proto bool
	seen  map[string]bool
}

func (p *listing) remote(v goja.Value) *remote.Object {
	o := p.e.object(v).Remote(p.l, p.q.Preview)
	return &o
}

func (p *listing) internal(name string, o remote.Object) {
	p.out.Internal = append(p.out.Internal, remote.Internal{Name: name, Value: &o})
}

func (p *listing) all(o *goja.Object) {
	proxy, isProxy := inner(o).(goja.Proxy)
	if isProxy {
		// Its traps are not run for display.
		if !p.q.Accessors {
			p.internal("[[Handler]]", *p.remote(objectOrNull(proxy.Handler())))
			p.internal("[[Target]]", *p.remote(objectOrNull(proxy.Target())))
		}
		return
	}
	p.properties(o)
	if !p.q.Accessors {
		p.internals(o)
	}
}

// properties lists the own properties of an object.
func (p *listing) properties(o *goja.Object) {
	keys, err := p.e.ownKeys(goja.Undefined(), o)
	if err != nil {
		panic(err)
	}
	list := keys.(*goja.Object)
	n := int(list.Get("length").ToInteger())
	for i := range n {
		if len(p.out.Result) >= mirror.MaxProperties {
			if !p.q.Accessors {
				p.internal("[[More]]", remote.String(strconv.Itoa(len(p.out.Result))+" of "+strconv.Itoa(n)+" are listed"))
			}
			break
		}
		p.property(o, list.Get(strconv.Itoa(i)))
	}
}

func objectOrNull(o *goja.Object) goja.Value {
	if o == nil {
		return goja.Null()
	}
	return o
}

// property lists one property if the query wants it.
func (p *listing) property(o *goja.Object, key goja.Value) {
	name := ""
	symbol, isSymbol := key.(*goja.Symbol)
	if isSymbol {
		if symbol == p.e.fnSym {
			return
		}
		name = symbolText(symbol)
	} else {
		name = key.String()
		if p.q.NonIndexed && isIndex(name) {
			return
		}
	}
	if p.seen[name] || p.proto && name == "__proto__" {
		return
	}
	d := p.e.descriptorOf(o, key)
	if d == nil {
		return
	}
	get, set := d.Get("get"), d.Get("set")
	accessor := isFunction(get) || isFunction(set)
	if p.q.Accessors && !accessor {
		return
	}
	p.seen[name] = true
	out := remote.Property{Name: name, IsOwn: !p.proto, Enumerable: d.Get("enumerable").ToBoolean(), Configurable: d.Get("configurable").ToBoolean()}
	if isSymbol {
		out.Symbol = p.remote(key)
	}
	if accessor {
		out.Get, out.Set = p.remote(get), p.remote(set)
	} else {
		out.Value = p.remote(d.Get("value"))
		out.Writable = d.Get("writable").ToBoolean()
	}
	p.out.Result = append(p.out.Result, out)
}

func isIndex(name string) bool { _, err := strconv.ParseUint(name, 10, 32); return err == nil }

// internals lists what an object has beside its properties.
func (p *listing) internals(o *goja.Object) {
	if isFunction(o) {
		if f := p.e.described(o); f != nil {
			p.out.Internal = append(p.out.Internal, f.info.Properties(p.l)...)
		}
	} else {
		switch c := p.e.classify(o); c.subtype {
		case "promise":
			pr := inner(o).(*goja.Promise)
			p.internal("[[PromiseState]]", remote.String(promiseState(pr)))
			p.internal("[[PromiseResult]]", *p.remote(pr.Result()))
		case "map", "set":
			if list := p.e.entries(o, c.subtype); list != nil {
				p.internal("[[Entries]]", *p.remote(list))
			}
		}
	}
	if proto := o.Prototype(); proto != nil {
		p.internal("[[Prototype]]", *p.remote(proto))
	}
}
