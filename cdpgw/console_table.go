package cdpgw

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/natscope/natscope/subjects/value"
)

// DevTools draws console.table from the preview of its first argument: each
// property is a row, and the properties of the row's own preview are the columns.

const (
	// tableRows is how many rows a table has, as in V8.
	tableRows = 1000
	// tableColumns is how many columns one row has.
	tableColumns = 50
)

// tabulate gives the first argument of console.table the preview of a table. The
// second argument may name the columns that are wanted, in their order.
func tabulate(args []remoteObject, raw []json.RawMessage) {
	if len(args) == 0 || args[0].Preview == nil {
		return
	}
	v, err := value.Parse(raw[0])
	if err != nil {
		return
	}
	var columns []string
	if len(raw) > 1 {
		if c, err := value.Parse(raw[1]); err == nil {
			columns = columnNames(c)
		}
	}
	args[0].Preview = tableOf(v, args[0], columns)
}

// columnNames reads the names of columns: a text, or a list of texts.
func columnNames(v value.Value) (names []string) {
	if v.Kind == value.String {
		return []string{v.Text}
	}
	for _, x := range v.Items {
		if x.Kind == value.String || x.Kind == value.Number {
			names = append(names, x.Text)
		}
	}
	return names
}

// tableOf returns the preview of a table. DevTools does not tell that there are
// more rows than it was given, so the last row says it.
func tableOf(v value.Value, o remoteObject, columns []string) *objectPreview {
	p := &objectPreview{Type: o.Type, Subtype: o.Subtype, Description: o.Description, Overflow: v.Partial, Properties: []propertyPreview{}}
	add := func(name string, x value.Value) {
		r := previewProperty(name, x)
		r.ValuePreview = tableRow(x, columns)
		p.Properties = append(p.Properties, r)
	}
	for i, x := range first(v.Items, tableRows, p) {
		add(strconv.Itoa(i), x)
	}
	for _, e := range first(v.Entries, tableRows, p) {
		add(previewValue(e.Key, objectOf(e.Key)), e.Value)
	}
	for _, f := range first(v.Fields, tableRows, p) {
		add(f.Name, f.Value)
	}
	if p.Overflow {
		text := fmt.Sprintf("the first %d of %d rows", len(p.Properties), max(v.Size, len(p.Properties)+1))
		p.Properties = append(p.Properties, propertyPreview{Name: "…", Type: "string", Value: text})
	}
	return p
}

// tableRow returns the preview that has the columns of one row, nil for a row that is one plain value.
func tableRow(v value.Value, columns []string) *objectPreview {
	if len(v.Items)+len(v.Fields)+len(v.Entries) == 0 {
		return nil
	}
	o := objectOf(v)
	p := &objectPreview{Type: o.Type, Subtype: o.Subtype, Description: o.Description, Overflow: v.Partial, Properties: []propertyPreview{}}
	for i, x := range v.Items {
		p.Properties = append(p.Properties, previewProperty(strconv.Itoa(i), x))
	}
	for _, e := range v.Entries {
		p.Properties = append(p.Properties, previewProperty(previewValue(e.Key, objectOf(e.Key)), e.Value))
	}
	for _, f := range v.Fields {
		p.Properties = append(p.Properties, previewProperty(f.Name, f.Value))
	}
	if len(columns) > 0 {
		at := func(p propertyPreview) int { return slices.Index(columns, p.Name) }
		p.Properties = slices.DeleteFunc(p.Properties, func(p propertyPreview) bool { return at(p) < 0 })
		slices.SortStableFunc(p.Properties, func(a, b propertyPreview) int { return at(a) - at(b) })
	}
	p.Properties = first(p.Properties, tableColumns, p)
	return p
}
