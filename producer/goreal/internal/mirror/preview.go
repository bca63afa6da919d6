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

// The sizes of tables. V8 has the same number of rows.
const (
	TableRows    = 1000
	TableColumns = 50
)

// extent says how much of a value a preview has.
type extent struct {
	fields, elements int
	// rows wants a preview of each part, too, and entries of maps as parts.
	rows bool
}

var (
	glance = extent{fields: previewFields, elements: previewElements}
	// row is the extent of one row of a table, table that of the whole.
	row   = extent{fields: TableColumns, elements: TableColumns}
	table = extent{fields: TableRows, elements: TableRows, rows: true}
)

// Table is the preview of a value for console.table: with a preview of each
// part, which is a row. It is nil for a value without parts.
func (x Value) Table() *remote.Preview { return x.sized(table) }

// Row is the preview of a value that is one row of a table, nil for a value without parts.
func (x Value) Row() *remote.Preview { return x.sized(row) }

func (x Value) sized(n extent) *remote.Preview {
	if x.isNull() || x.IsScalar() || x.v.Kind() == reflect.Func {
		return nil
	}
	return x.parts(x.describe(), n)
}

// preview is what is shown of a value that is not expanded.
func (x Value) preview(d look) *remote.Preview { return x.parts(d, glance) }

// parts is the preview of a value, of a given extent.
func (x Value) parts(d look, n extent) *remote.Preview {
	p := &remote.Preview{Type: "object", Subtype: d.subtype, Description: remote.Cut(d.text, previewText), Properties: []remote.PropertyPreview{}}
	add := func(name string, part Value) {
		pp := part.Property()
		pp.Name = name
		if n.rows {
			pp.ValuePreview = part.Row()
		}
		p.Properties = append(p.Properties, pp)
	}
	v, t := x.v, x.v.Type()
	switch {
	case isAtomic(t):
		if l, ok := atomicLoad(v); ok {
			add("value", x.child(l, x.g))
		}
	case elem(t) == syncMapType && !n.rows:
		x.previewEntries(p)
	case isOpaque(t) && elem(t) != syncMapType:
	case v.Kind() == reflect.Map && !x.Readable():
		p.Properties = append(p.Properties, remote.PropertyPreview{Name: "⚠", Type: "string", Value: "unguarded map"})
	case v.Kind() == reflect.Map && (n.rows || plainKeys(t.Key())), elem(t) == syncMapType:
		// With the subtype of a map, DevTools would look for entries.
		p.Subtype = ""
		ps, total, err := x.pairs(n.fields)
		unread(p, err)
		for _, e := range ps {
			add(x.keyName(e), e.val.under(x.g))
		}
		p.Overflow = total > len(ps)
	case v.Kind() == reflect.Map:
		x.previewEntries(p)
	case v.Kind() == reflect.Chan:
		add("len", Value{v: reflect.ValueOf(v.Len()), size: -1})
		add("cap", Value{v: reflect.ValueOf(v.Cap()), size: -1})
	case isList(t):
		es, err := x.span(0, n.elements)
		unread(p, err)
		for i, e := range es {
			add(strconv.Itoa(i), e.under(x.g))
		}
		p.Overflow = x.Len() > len(es)
	case v.Kind() == reflect.Complex64 || v.Kind() == reflect.Complex128:
		add("real", Value{v: reflect.ValueOf(real(v.Complex())), size: -1})
		add("imag", Value{v: reflect.ValueOf(imag(v.Complex())), size: -1})
	default:
		x.previewFields(p, n.fields, add)
	}
	return p
}

// previewFields shows the first exported fields of a struct, or what a pointer leads to.
func (x Value) previewFields(p *remote.Preview, limit int, add func(string, Value)) {
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
			if len(slots) == limit {
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

// keyName is the key of an entry as the name of a property.
func (x Value) keyName(e pair) string {
	if e.key.v.IsValid() && plainKeys(e.key.v.Type()) {
		return keyText(e.key.v)
	}
	return e.key.under(x.g).nestedKey().Description
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
