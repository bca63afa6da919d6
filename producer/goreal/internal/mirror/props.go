package mirror

import (
	"encoding/hex"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/natscope/natscope/producer/goreal/internal/remote"
)

// reason is an error for people: without the name of the package in front.
func reason(err error) string { return strings.TrimPrefix(err.Error(), "goreal: ") }

// listing gathers the properties of a value.
type listing struct {
	l   *Lens
	q   Query
	out remote.Properties
}

func (p *listing) property(name string, v Value, enumerable bool) {
	o := v.Remote(p.l, p.q.Preview)
	p.out.Result = append(p.out.Result, remote.Property{Name: name, Value: &o, Enumerable: enumerable, IsOwn: true, Writable: p.l != nil && p.l.Writable && enumerable})
}

func (p *listing) internal(name string, o remote.Object) {
	p.out.Internal = append(p.out.Internal, remote.Internal{Name: name, Value: &o})
}

func (p *listing) text(name, text string) { p.internal(name, remote.String(text)) }

// failed says why something could not be read.
func (p *listing) failed(err error) {
	if err != nil {
		p.text("[[Unreadable]]", reason(err))
	}
}

// more says that not everything is listed.
func (p *listing) more(shown, total int) {
	if total > shown {
		p.text("[[More]]", fmt.Sprintf("%d of %d are listed; evaluate an expression to see others", shown, total))
	}
}

// Properties lists what the value shows when it is expanded.
func (x Value) Properties(l *Lens, q Query) remote.Properties {
	p := &listing{l: l, q: q, out: remote.Properties{Result: []remote.Property{}}}
	if x.isNull() || x.IsScalar() {
		return p.out
	}
	if q.Accessors {
		if x.v.Kind() == reflect.Map && !x.Readable() {
			p.out.Result = append(p.out.Result, x.unreadableMap(l))
		}
		return p.out
	}
	x.list1(p)
	x.identity(p)
	return p.out
}

// list1 lists the parts of a value by its kind.
func (x Value) list1(p *listing) {
	v, t := x.v, x.v.Type()
	switch {
	case elem(t) == timeType:
		x.timeParts(p)
	case isAtomic(t):
		if l, ok := atomicLoad(v); ok {
			p.property("value", x.child(l, x.g), true)
		}
	case elem(t) == mutexType || elem(t) == rwMutexType:
		p.text("[[State]]", lockState(v))
	case elem(t) == syncMapType || v.Kind() == reflect.Map:
		x.mapParts(p)
	case isOpaque(t):
	case v.Kind() == reflect.Chan:
		p.internal("[[Len]]", remote.Int(int64(v.Len())))
		p.internal("[[Cap]]", remote.Int(int64(v.Cap())))
		p.text("[[Dir]]", t.ChanDir().String())
		p.text("[[Elem]]", typeName(t.Elem()))
	case v.Kind() == reflect.Func:
		FuncOf(v).internals(p)
	case isList(t):
		x.elements(p)
	case v.Kind() == reflect.Complex64 || v.Kind() == reflect.Complex128:
		p.property("real", Value{v: reflect.ValueOf(real(v.Complex())), size: -1}, true)
		p.property("imag", Value{v: reflect.ValueOf(imag(v.Complex())), size: -1}, true)
	default:
		x.fields(p)
	}
}

// fields lists the fields of a struct, those that are not exported dimmed, and
// before them what errors and contexts have of their own.
func (x Value) fields(p *listing) {
	for _, name := range []string{"message", "cause", "errors"} {
		if e, ok := x.errorPart(name); ok {
			p.property(name, e, name != "message")
		}
	}
	x.contextParts(p)
	s, ok := x.structOf()
	if !ok {
		if x.v.Kind() == reflect.Pointer {
			e, ok, err := x.Get("*")
			p.failed(err)
			if ok {
				p.property("*", e, true)
			}
		}
		return
	}
	fs := infoOf(s.Type()).fields
	slots := make([]slot, 0, len(fs))
	g := guardOf(s, x.g, x.root)
	p.failed(read(g, func() {
		for _, f := range fs {
			slots = append(slots, take(s.Field(f.index)))
		}
	}))
	for i, e := range slots {
		p.property(fs[i].name, e.under(g), fs[i].exported)
	}
}

// elements lists the elements of a list.
func (x Value) elements(p *listing) {
	if !p.q.NonIndexed {
		es, err := x.span(0, MaxProperties)
		p.failed(err)
		for i, e := range es {
			p.property(strconv.Itoa(i), e.under(x.g), true)
		}
		p.more(len(es), x.Len())
	}
	p.property("length", Value{v: reflect.ValueOf(x.Len()), size: -1}, false)
	l := x.list()
	if l.Kind() == reflect.Slice {
		_ = read(x.g, func() { p.internal("[[Cap]]", remote.Int(int64(l.Cap()))) })
	}
	if l.Type().Elem().Kind() == reflect.Uint8 {
		x.bytes(p)
	}
}

// maxBytes is how much of a []byte is shown as text.
const maxBytes = 4 << 10

func (x Value) bytes(p *listing) {
	var b []byte
	whole := 0
	p.failed(read(x.g, func() {
		l := x.list()
		whole = l.Len()
		n := min(whole, maxBytes)
		if l.Kind() == reflect.Slice {
			b = append(b, l.Slice(0, n).Bytes()...)
			return
		}
		for i := range n {
			b = append(b, byte(l.Index(i).Uint()))
		}
	}))
	if cut := strings.ToValidUTF8(string(b), ""); len(b) > 0 && len(cut) > len(b)-utf8.UTFMax {
		p.text("[[Text]]", cut)
	}
	p.text("[[Hex]]", hex.EncodeToString(b[:min(len(b), 256)]))
	p.more(len(b), whole)
}

// mapParts lists the entries of a map: as properties where the keys read well
// as names, else as entries.
func (x Value) mapParts(p *listing) {
	if !x.Readable() {
		p.internal("[[Len]]", remote.Int(int64(x.Len())))
		p.text("[[Unreadable]]", reason(x.unguarded()))
		return
	}
	ps, total, err := x.pairs(MaxProperties)
	p.failed(err)
	if elem(x.v.Type()) != syncMapType && plainKeys(x.v.Type().Key()) {
		for _, e := range ps {
			p.property(keyText(e.key.v), e.val.under(x.g), true)
		}
	} else {
		es := make(entries, len(ps))
		for i, e := range ps {
			es[i] = Entry{e.key.under(x.g), e.val.under(x.g)}
		}
		p.internal("[[Entries]]", es.Remote(p.l, true))
	}
	p.internal("[[Len]]", remote.Int(int64(total)))
	p.more(len(ps), total)
}

func (x Value) timeParts(p *listing) {
	t, ok := asTime(x.v)
	if !ok {
		return
	}
	p.internal("[[UnixNano]]", remote.Big(strconv.FormatInt(t.UnixNano(), 10)))
	p.text("[[Location]]", t.Location().String())
	p.text("[[Since]]", time.Since(t).Round(time.Millisecond).String())
	p.internal("[[Monotonic]]", remote.Bool(strings.Contains(t.String(), " m=")))
}

// contextParts lists what a context carries.
func (x Value) contextParts(p *listing) {
	c, ok := asContext(x.v)
	if !ok {
		return
	}
	state := "active"
	if err := c.Err(); err != nil {
		state = err.Error()
	}
	p.text("[[State]]", state)
	if d, ok := c.Deadline(); ok {
		p.text("[[Deadline]]", timeText(d)+" (in "+time.Until(d).Round(time.Millisecond).String()+")")
	}
	for i, l := range contextLayers(c) {
		if l.key.IsValid() {
			o := x.child(l.val, nil).Remote(p.l, p.q.Preview)
			p.internal("[[value "+keyText(l.key)+"]]", o)
		} else if i > 0 {
			p.text("[[Parent]]", l.kind)
		}
	}
}

// identity lists the type of a value and where it is.
func (x Value) identity(p *listing) {
	t := x.v.Type()
	p.text("[[Type]]", fullName(t))
	switch x.v.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Chan:
		p.text("[[Pointer]]", fmt.Sprintf("0x%x", x.v.Pointer()))
	}
	if f, ok := iface(x.v).(Located); ok && strings.HasSuffix(elem(t).PkgPath(), "/goreal") {
		file, line := f.Location()
		p.location("[[Location]]", file, line)
	}
}

// Located is a value of package goreal that stands for a place in a Go file. A
// method of that name elsewhere is the program's, and not called.
type Located interface {
	Location() (file string, line int)
}

// location lists a place in a file, which DevTools shows as a link.
func (p *listing) location(name, file string, line int) {
	if p.l == nil || p.l.Script == nil {
		return
	}
	id, _, ok := p.l.Script(file)
	if !ok {
		return
	}
	p.internal(name, remote.Object{Type: "object", Subtype: "internal#location", Description: "Object", Value: []byte(fmt.Sprintf(`{"scriptId":%q,"lineNumber":%d,"columnNumber":0}`, id, max(line-1, 0)))})
}

// unreadableMap is what stands in a map that nothing guards: a property that
// says why when it is asked for.
func (x Value) unreadableMap(l *Lens) remote.Property {
	get := Refusal{reason(x.unguarded())}.Remote(l, false)
	return remote.Property{Name: "⚠ unguarded map, click to see why", Get: &get, Enumerable: true, IsOwn: true}
}
