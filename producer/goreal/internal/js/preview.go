package js

import (
	"math/big"
	"strconv"
	"strings"

	"github.com/dop251/goja"

	"github.com/natscope/natscope/producer/goreal/internal/mirror"
	"github.com/natscope/natscope/producer/goreal/internal/remote"
)

const (
	previewFields   = 5
	previewElements = 100
	previewText     = 100
)

// Table is the preview of the value for console.table: with a preview of each
// part, which is a row. It is nil for a value without parts.
func (v Value) Table() *remote.Preview {
	o, ok := v.v.(*goja.Object)
	if !ok || isFunction(o) {
		return nil
	}
	var p *remote.Preview
	quietly(func() { p = v.e.previewOf(o, mirror.TableRows, mirror.TableRows, v.e.row) })
	return p
}

// row is the preview of a value that is one row of a table.
func (e *Engine) row(v goja.Value) *remote.Preview {
	o, ok := v.(*goja.Object)
	if !ok {
		return nil
	}
	if x := valueOf(o); x != nil {
		return x.Row()
	}
	if isFunction(o) {
		return nil
	}
	return e.previewOf(o, mirror.TableColumns, mirror.TableColumns, nil)
}

// preview is what is shown of an object of JavaScript that is not expanded.
func (e *Engine) preview(o *goja.Object) *remote.Preview {
	return e.previewOf(o, previewFields, previewElements, nil)
}

// previewOf is a preview with so many properties, or elements of a list. row, which
// may be nil, adds to each what it returns; then entries of a Map are properties, too.
func (e *Engine) previewOf(o *goja.Object, fields, elements int, row func(goja.Value) *remote.Preview) *remote.Preview {
	c := e.classify(o)
	p := &remote.Preview{Type: "object", Subtype: c.subtype, Description: remote.Cut(c.text, previewText), Properties: []remote.PropertyPreview{}}
	switch c.subtype {
	case "map", "set":
		if row != nil {
			e.previewRows(o, c.subtype, p, fields, row)
			return p
		}
		e.previewEntries(o, c.subtype, p)
	case "promise":
		pr := inner(o).(*goja.Promise)
		p.Properties = append(p.Properties, remote.PropertyPreview{Name: "[[PromiseState]]", Type: "string", Value: promiseState(pr)})
		r := e.propertyPreview(pr.Result())
		r.Name = "[[PromiseResult]]"
		p.Properties = append(p.Properties, r)
		return p
	case "proxy":
		return p
	}
	list := c.subtype == "array" || c.subtype == "typedarray"
	limit := fields
	if list {
		limit = elements
	}
	quietly(func() { e.previewProperties(o, p, list, limit, row) })
	return p
}

func (e *Engine) previewProperties(o *goja.Object, p *remote.Preview, list bool, limit int, row func(goja.Value) *remote.Preview) {
	for _, k := range o.GetOwnPropertyNames() {
		if list && k == "length" {
			continue
		}
		if len(p.Properties) >= limit {
			p.Overflow = true
			return
		}
		d := e.descriptorOf(o, e.vm.ToValue(k))
		if d == nil || !d.Get("enumerable").ToBoolean() {
			continue
		}
		if isFunction(d.Get("get")) {
			p.Properties = append(p.Properties, remote.PropertyPreview{Name: k, Type: "accessor"})
			continue
		}
		pp := e.propertyPreview(d.Get("value"))
		pp.Name = k
		if row != nil {
			pp.ValuePreview = row(d.Get("value"))
		}
		if pp.Type != "function" || list {
			p.Properties = append(p.Properties, pp)
		}
	}
}

func isFunction(v goja.Value) bool {
	if v == nil {
		return false
	}
	_, ok := goja.AssertFunction(v)
	return ok
}

func (e *Engine) previewEntries(o *goja.Object, kind string, p *remote.Preview) {
	list := e.entries(o, kind)
	if list == nil {
		return
	}
	n := int(list.Get("length").ToInteger())
	for i := range min(n, previewFields) {
		x := list.Get(strconv.Itoa(i))
		if kind == "set" {
			p.Entries = append(p.Entries, remote.EntryPreview{Value: e.nested(x)})
			continue
		}
		kv := x.(*goja.Object)
		k := e.nested(kv.Get("0"))
		p.Entries = append(p.Entries, remote.EntryPreview{Key: &k, Value: e.nested(kv.Get("1"))})
	}
	p.Overflow = n > previewFields
}

// previewRows shows the entries of a Map or a Set as properties. The names of
// those of a Map are their keys.
func (e *Engine) previewRows(o *goja.Object, kind string, p *remote.Preview, limit int, row func(goja.Value) *remote.Preview) {
	list := e.entries(o, kind)
	if list == nil {
		return
	}
	n := int(list.Get("length").ToInteger())
	for i := range min(n, limit) {
		name, x := strconv.Itoa(i), list.Get(strconv.Itoa(i))
		if kind == "map" {
			kv := x.(*goja.Object)
			name, x = e.nested(kv.Get("0")).Description, kv.Get("1")
		}
		pp := e.propertyPreview(x)
		pp.Name, pp.ValuePreview = name, row(x)
		p.Properties = append(p.Properties, pp)
	}
	p.Overflow = n > limit
}

// entries copies what a Map or a Set holds; nil if that fails.
func (e *Engine) entries(o *goja.Object, kind string) *goja.Object {
	f := e.mapEntries
	if kind == "set" {
		f = e.setValues
	}
	a, err := f(goja.Undefined(), o)
	if err != nil {
		return nil
	}
	return a.(*goja.Object)
}

func promiseState(p *goja.Promise) string {
	switch p.State() {
	case goja.PromiseStateFulfilled:
		return "fulfilled"
	case goja.PromiseStateRejected:
		return "rejected"
	}
	return "pending"
}

// nested is the preview of a key or a value of an entry.
func (e *Engine) nested(v goja.Value) remote.Preview {
	pp := e.propertyPreview(v)
	return remote.Preview{Type: pp.Type, Subtype: pp.Subtype, Description: pp.Value, Properties: []remote.PropertyPreview{}}
}

// propertyPreview is the preview of a value inside of another one.
func (e *Engine) propertyPreview(v goja.Value) remote.PropertyPreview {
	switch {
	case v == nil || goja.IsUndefined(v):
		return remote.PropertyPreview{Type: "undefined", Value: "undefined"}
	case goja.IsNull(v):
		return remote.PropertyPreview{Type: "object", Subtype: "null", Value: "null"}
	}
	if s, ok := v.(*goja.Symbol); ok {
		return remote.PropertyPreview{Type: "symbol", Value: symbolText(s)}
	}
	if o, ok := v.(*goja.Object); ok {
		return e.objectPreview(o)
	}
	switch x := v.Export().(type) {
	case string:
		return remote.PropertyPreview{Type: "string", Value: remote.Cut(x, previewText)}
	case bool:
		return remote.PropertyPreview{Type: "boolean", Value: strconv.FormatBool(x)}
	case *big.Int:
		return remote.PropertyPreview{Type: "bigint", Value: remote.Cut(x.String(), previewText) + "n"}
	}
	return remote.PropertyPreview{Type: "number", Value: v.String()}
}

func (e *Engine) objectPreview(o *goja.Object) remote.PropertyPreview {
	if x := valueOf(o); x != nil {
		return x.Property()
	}
	if isFunction(o) {
		return remote.PropertyPreview{Type: "function"}
	}
	c := e.classify(o)
	text := c.text
	switch c.subtype {
	case "":
		text = c.name
	case "error":
		text, _, _ = strings.Cut(c.text, "\n")
	}
	return remote.PropertyPreview{Type: "object", Subtype: c.subtype, Value: remote.Cut(text, previewText)}
}
