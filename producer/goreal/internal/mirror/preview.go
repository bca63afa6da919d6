package mirror

import (
	"reflect"
	"strconv"
	"strings"

	"github.com/natscope/natscope/producer/goreal/internal/remote"
)

// The sizes of previews, which are those of V8.
const (
	previewFields   = 5
	previewElements = 100
	previewText     = 100
)

// Preview is the short form of the value, for rows of console.table.
func (x Value) Preview() *remote.Preview {
	if x.isNull() || x.IsScalar() {
		return nil
	}
	return x.preview(x.describe())
}

// preview is what is shown of a value that is not expanded.
func (x Value) preview(d look) *remote.Preview {
	p := &remote.Preview{Type: "object", Subtype: d.subtype, Description: remote.Cut(d.text, previewText), Properties: []remote.PropertyPreview{}}
	add := func(name string, part Value) {
		pp := part.Property()
		pp.Name = name
		p.Properties = append(p.Properties, pp)
	}
	v, t := x.v, x.v.Type()
	switch {
	case isAtomic(t):
		if l, ok := atomicLoad(v); ok {
			add("value", x.child(l, x.g))
		}
	case elem(t) == syncMapType:
		x.previewEntries(p)
	case isOpaque(t):
	case v.Kind() == reflect.Map && !x.Readable():
		p.Properties = append(p.Properties, remote.PropertyPreview{Name: "⚠", Type: "string", Value: "unguarded map"})
	case v.Kind() == reflect.Map && plainKeys(t.Key()):
		// With the subtype of a map, DevTools would look for entries.
		p.Subtype = ""
		ps, total, err := x.pairs(previewFields)
		unread(p, err)
		for _, e := range ps {
			add(keyText(e.key.v), e.val.under(x.g))
		}
		p.Overflow = total > len(ps)
	case v.Kind() == reflect.Map:
		x.previewEntries(p)
	case v.Kind() == reflect.Chan:
		add("len", Value{v: reflect.ValueOf(v.Len()), size: -1})
		add("cap", Value{v: reflect.ValueOf(v.Cap()), size: -1})
	case isList(t):
		es, err := x.span(0, previewElements)
		unread(p, err)
		for i, e := range es {
			add(strconv.Itoa(i), e.under(x.g))
		}
		p.Overflow = x.Len() > len(es)
	case v.Kind() == reflect.Complex64 || v.Kind() == reflect.Complex128:
		add("real", Value{v: reflect.ValueOf(real(v.Complex())), size: -1})
		add("imag", Value{v: reflect.ValueOf(imag(v.Complex())), size: -1})
	default:
		x.previewFields(p, add)
	}
	return p
}

// previewFields shows the first exported fields of a struct, or what a pointer leads to.
func (x Value) previewFields(p *remote.Preview, add func(string, Value)) {
	s, ok := x.structOf()
	if !ok {
		if x.v.Kind() == reflect.Pointer {
			e, ok, err := x.Get("*")
			unread(p, err)
			if ok {
				add("*", e)
			}
		}
		return
	}
	var names []string
	var slots []slot
	g := guardOf(s, x.g, x.root)
	err := read(g, func() {
		for _, f := range infoOf(s.Type()).fields {
			if !f.exported {
				continue
			}
			if len(slots) == previewFields {
				p.Overflow = true
				return
			}
			names, slots = append(names, f.name), append(slots, take(s.Field(f.index)))
		}
	})
	unread(p, err)
	for i, e := range slots {
		add(names[i], e.under(g))
	}
}

func (x Value) previewEntries(p *remote.Preview) {
	ps, total, err := x.pairs(previewFields)
	unread(p, err)
	for _, e := range ps {
		k := e.key.under(x.g).nestedKey()
		p.Entries = append(p.Entries, remote.EntryPreview{Key: &k, Value: e.val.under(x.g).nested()})
	}
	p.Overflow = total > len(ps)
}

// nestedKey is the preview of the key of an entry, which was copied, so that it can be shown whole.
func (x Value) nestedKey() remote.Preview {
	p := x.nested()
	if x.v.IsValid() && p.Type == "object" && x.v.Kind() == reflect.Struct && p.Subtype == "" {
		p.Description = remote.Cut(x.brief(2), previewText)
	}
	return p
}

// nested is the preview of the value of an entry.
func (x Value) nested() remote.Preview {
	pp := x.Property()
	return remote.Preview{Type: pp.Type, Subtype: pp.Subtype, Description: pp.Value, Properties: []remote.PropertyPreview{}}
}

// Property is the preview of the value as a property of another one.
func (x Value) Property() remote.PropertyPreview {
	if x.isNull() {
		return remote.PropertyPreview{Type: "object", Subtype: "null", Value: "nil"}
	}
	v := x.v
	if o, ok := x.Scalar(); ok {
		pp := remote.PropertyPreview{Type: o.Type, Value: o.Description}
		if o.Type == "string" {
			pp.Value = remote.Cut(v.String(), previewText)
			if s, ok := secretText(v); ok {
				pp.Value = s
			}
		}
		return pp
	}
	if v.Kind() == reflect.Func {
		return remote.PropertyPreview{Type: "function"}
	}
	d := x.describe()
	pp := remote.PropertyPreview{Type: "object", Subtype: d.subtype, Value: d.text}
	switch t := v.Type(); {
	case d.subtype == "error":
		pp.Value, _, _ = strings.Cut(d.text, "\n")
	case d.subtype == "date":
	case isAtomic(t):
		if l, ok := atomicLoad(v); ok {
			pp.Value = x.child(l, x.g).brief(0)
		}
	case elem(t) == mutexType || elem(t) == rwMutexType:
		pp.Value = lockState(v)
	case v.Kind() == reflect.Chan:
		pp.Value = bareName(t) + " " + strconv.Itoa(v.Len()) + "/" + strconv.Itoa(v.Cap())
	case d.subtype == "map" && elem(t) == syncMapType:
	case elem(t).PkgPath() == "context":
	default:
		pp.Value = x.brief(0)
	}
	pp.Value = remote.Cut(pp.Value, previewText)
	return pp
}

// unread says in a preview that its value could not be read.
func unread(p *remote.Preview, err error) {
	if err != nil {
		p.Properties = append(p.Properties, remote.PropertyPreview{Name: "⚠", Type: "string", Value: remote.Cut(reason(err), previewText)})
	}
}
