package cdpgw

import (
	"strconv"
	"unicode/utf8"

	"github.com/natscope/natscope/subjects/value"
)

// The bounds of a preview, as V8 has them.
const (
	previewProperties = 5
	previewItems      = 100
	previewText       = 100
	// previewError is how much of an error is shown: what went wrong is often said at its end.
	previewError = 300
)

// objectPreview is what the Console shows of an object on one line.
type objectPreview struct {
	Type        string            `json:"type"`
	Subtype     string            `json:"subtype,omitempty"`
	Description string            `json:"description,omitempty"`
	Overflow    bool              `json:"overflow"`
	Properties  []propertyPreview `json:"properties"`
	Entries     []entryPreview    `json:"entries,omitempty"`
}

type propertyPreview struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	Value   string `json:"value"`
	Subtype string `json:"subtype,omitempty"`
	// ValuePreview is the preview of the property itself, which the rows of a table have.
	ValuePreview *objectPreview `json:"valuePreview,omitempty"`
}

type entryPreview struct {
	Key   *objectPreview `json:"key,omitempty"`
	Value objectPreview  `json:"value"`
}

// previewOf returns the preview of a container, nil for what shows everything anyway.
func previewOf(v value.Value, o remoteObject) *objectPreview {
	switch v.Kind {
	case value.Date, value.RegExp, value.Error:
		return nil
	}
	p := &objectPreview{Type: o.Type, Subtype: o.Subtype, Description: o.Description, Overflow: v.Partial, Properties: []propertyPreview{}}
	if v.Kind == value.Array {
		for i, x := range first(v.Items, previewItems, p) {
			p.Properties = append(p.Properties, previewProperty(strconv.Itoa(i), x))
		}
		return p
	}
	if v.Kind == value.Set {
		for _, x := range first(v.Items, previewProperties, p) {
			p.Entries = append(p.Entries, entryPreview{Value: previewEntry(x)})
		}
	}
	for _, e := range first(v.Entries, previewProperties, p) {
		key := previewEntry(e.Key)
		p.Entries = append(p.Entries, entryPreview{Key: &key, Value: previewEntry(e.Value)})
	}
	for _, f := range first(v.Fields, previewProperties, p) {
		p.Properties = append(p.Properties, previewProperty(f.Name, f.Value))
	}
	return p
}

// first returns at most n elements and marks the preview when there are more.
func first[T any](list []T, n int, p *objectPreview) []T {
	if len(list) > n {
		p.Overflow = true
		return list[:n]
	}
	return list
}

func previewProperty(name string, v value.Value) propertyPreview {
	o := objectOf(v)
	return propertyPreview{Name: name, Type: o.Type, Subtype: o.Subtype, Value: previewValue(v, o)}
}

func previewEntry(v value.Value) objectPreview {
	o := objectOf(v)
	return objectPreview{Type: o.Type, Subtype: o.Subtype, Description: previewValue(v, o), Properties: []propertyPreview{}}
}

// previewValue is the short text of a value inside a preview.
func previewValue(v value.Value, o remoteObject) string {
	switch v.Kind {
	case value.String:
		return abbreviate(v.Text)
	case value.Null:
		return "null"
	case value.Undefined:
		return "undefined"
	case value.Function:
		return ""
	case value.Error:
		return beginning(errorHead(v), previewError)
	}
	return abbreviate(o.Description)
}

// beginning cuts a text at its end: the middle of an error names what failed.
func beginning(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

// abbreviate cuts a text in its middle, as V8 does.
func abbreviate(s string) string {
	if utf8.RuneCountInString(s) <= previewText {
		return s
	}
	r := []rune(s)
	return string(r[:previewText/2]) + "…" + string(r[len(r)-previewText/2+1:])
}
