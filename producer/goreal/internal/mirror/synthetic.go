package mirror

import (
	"strconv"

	"github.com/natscope/natscope/producer/goreal/internal/remote"
)

// Entry is one entry of a map, as DevTools lists it below [[Entries]].
type Entry struct{ Key, Val Value }

// entries is the list below [[Entries]].
type entries []Entry

// Remote returns the list before it is expanded.
func (e entries) Remote(l *Lens, _ bool) remote.Object {
	return remote.Object{Type: "object", Subtype: "array", ClassName: "Array", Description: "Array(" + strconv.Itoa(len(e)) + ")", ObjectID: l.bind(e)}
}

// Properties lists the entries.
func (e entries) Properties(l *Lens, q Query) remote.Properties {
	p := remote.Properties{Result: []remote.Property{}}
	if q.Accessors || q.NonIndexed {
		return p
	}
	for i, x := range e {
		o := x.Remote(l, true)
		p.Result = append(p.Result, remote.Property{Name: strconv.Itoa(i), Value: &o, Enumerable: true, IsOwn: true})
	}
	return p
}

// Remote returns the entry before it is expanded.
func (e Entry) Remote(l *Lens, _ bool) remote.Object {
	k, v := e.Key.nestedKey(), e.Val.nested()
	text := "{" + quoted(k) + " => " + quoted(v) + "}"
	return remote.Object{Type: "object", Subtype: "internal#entry", ClassName: "Object", Description: text, ObjectID: l.bind(e),
		Preview: &remote.Preview{Type: "object", Subtype: "internal#entry", Description: text, Properties: []remote.PropertyPreview{}, Entries: []remote.EntryPreview{{Key: &k, Value: v}}}}
}

func quoted(p remote.Preview) string {
	if p.Type == "string" {
		return strconv.Quote(p.Description)
	}
	return p.Description
}

// Properties lists key and value.
func (e Entry) Properties(l *Lens, q Query) remote.Properties {
	p := remote.Properties{Result: []remote.Property{}}
	if q.Accessors {
		return p
	}
	k, v := e.Key.Remote(l, q.Preview), e.Val.Remote(l, q.Preview)
	p.Result = append(p.Result, remote.Property{Name: "key", Value: &k, Enumerable: true, IsOwn: true}, remote.Property{Name: "value", Value: &v, Enumerable: true, IsOwn: true})
	return p
}

// Fragment is a part of a long list: what DevTools shows of the elements From to
// To, both included.
type Fragment struct {
	List     Value
	From, To int
}

// Remote returns the fragment before it is expanded.
func (f Fragment) Remote(l *Lens, _ bool) remote.Object {
	return remote.Object{Type: "object", ClassName: "Object", Description: "Object", ObjectID: l.bind(f)}
}

// Properties lists the elements under their own numbers.
func (f Fragment) Properties(l *Lens, q Query) remote.Properties {
	p := &listing{l: l, q: q, out: remote.Properties{Result: []remote.Property{}}}
	if q.Accessors || q.NonIndexed {
		return p.out
	}
	es, err := f.List.span(max(f.From, 0), min(f.To, f.From+MaxProperties-1)+1)
	p.failed(err)
	for i, e := range es {
		p.property(strconv.Itoa(f.From+i), e.under(f.List.g), true)
	}
	return p.out
}

// Refusal is a function that throws: the getter of what cannot be read.
type Refusal struct{ Why string }

// Remote returns the function.
func (r Refusal) Remote(l *Lens, _ bool) remote.Object {
	return remote.Object{Type: "function", ClassName: "Function", Description: "function read() { [native code] }", ObjectID: l.bind(r)}
}

// Properties lists nothing.
func (Refusal) Properties(*Lens, Query) remote.Properties {
	return remote.Properties{Result: []remote.Property{}}
}

// All returns the entries.
func (e entries) All() []Entry { return e }
