package v8

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/natscope/natscope/subjects/value"
)

// remoteObject is an engine's description of a value.
type remoteObject struct {
	Type                string          `json:"type"`
	Subtype             string          `json:"subtype"`
	ClassName           string          `json:"className"`
	Value               json.RawMessage `json:"value"`
	UnserializableValue string          `json:"unserializableValue"`
	Description         string          `json:"description"`
	ObjectID            string          `json:"objectId"`
	Preview             *objectPreview  `json:"preview"`
}

// objectPreview is the beginning of an object's contents, as texts.
type objectPreview struct {
	Type        string            `json:"type"`
	Subtype     string            `json:"subtype"`
	Description string            `json:"description"`
	Overflow    bool              `json:"overflow"`
	Properties  []propertyPreview `json:"properties"`
	Entries     []entryPreview    `json:"entries"`
}

type propertyPreview struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	Subtype string `json:"subtype"`
	Value   string `json:"value"`
}

type entryPreview struct {
	Key   *objectPreview `json:"key"`
	Value *objectPreview `json:"value"`
}

// propertyDescriptor is one property of an object.
type propertyDescriptor struct {
	Name       string        `json:"name"`
	Value      *remoteObject `json:"value"`
	Get        *remoteObject `json:"get"`
	Enumerable bool          `json:"enumerable"`
	IsOwn      bool          `json:"isOwn"`
	Symbol     *remoteObject `json:"symbol"`
}

// properties is the answer of Runtime.getProperties.
type properties struct {
	Result   []propertyDescriptor `json:"result"`
	Internal []propertyDescriptor `json:"internalProperties"`
}

// isObject reports whether a value has contents that can be read.
func (o *remoteObject) isObject() bool { return o.Type == "object" && o.Subtype != "null" }

// shallow is the value as its description and preview tell it, without asking the program.
func (o *remoteObject) shallow() value.Value {
	if !o.isObject() {
		return primitive(o.Type, o.Subtype, o.text(), o.Description)
	}
	if v, ok := known(o.Subtype, o.ClassName, o.Description); ok {
		return v
	}
	if o.Preview == nil {
		return named(o.Subtype, o.ClassName, o.Description)
	}
	return o.Preview.open(o.ClassName, o.Description)
}

// nested is the value inside a container: containers are closed, with a preview.
func (o *remoteObject) nested() value.Value {
	v := o.shallow()
	switch v.Kind {
	case value.Array, value.Object, value.Instance, value.Map, value.Set, value.URLSearchParams:
		kind := string(v.Kind)
		if v.Kind == value.Instance {
			kind = string(value.Object)
		}
		return value.Value{Kind: value.Dehydrated, Name: kind, Text: value.Preview(v), Size: v.Size}
	}
	return v
}

// text is a primitive's text: a string as it is, a number's literal.
func (o *remoteObject) text() string {
	if o.UnserializableValue != "" {
		return o.UnserializableValue
	}
	if len(o.Value) > 0 && o.Value[0] == '"' {
		var s string
		_ = json.Unmarshal(o.Value, &s)
		return s
	}
	if len(o.Value) == 0 {
		return o.Description
	}
	return string(o.Value)
}

// primitive makes a value that is no object of its type and text.
func primitive(kind, subtype, text, description string) value.Value {
	switch kind {
	case "undefined":
		return value.Value{Kind: value.Undefined}
	case "string":
		return stringValue(text)
	case "number":
		return value.Value{Kind: value.Number, Text: text}
	case "boolean":
		return value.Value{Kind: value.Bool, Text: text}
	case "bigint":
		return value.Value{Kind: value.BigInt, Text: strings.TrimSuffix(text, "n")}
	case "symbol":
		return value.Value{Kind: value.Symbol, Text: cut(or(description, text), value.MaxString)}
	case "function":
		return value.Value{Kind: value.Function, Name: functionName(or(description, text))}
	case "accessor":
		return value.Value{Kind: value.Function, Name: "get"}
	case "object":
		if subtype == "null" {
			return value.Value{Kind: value.Null}
		}
	}
	return stringValue(or(text, description))
}

func stringValue(s string) value.Value {
	if head := cut(s, value.MaxString); len(head) < len(s) {
		return value.Value{Kind: value.String, Text: head, Size: utf8.RuneCountInString(s), Partial: true}
	}
	return value.Value{Kind: value.String, Text: s}
}

// known makes objects whose description says all there is to say.
func known(subtype, class, description string) (value.Value, bool) {
	switch subtype {
	case "regexp":
		if i := strings.LastIndexByte(description, '/'); i > 0 {
			return value.Value{Kind: value.RegExp, Text: cut(strings.TrimPrefix(description[:i], "/"), value.MaxString), Name: description[i+1:]}, true
		}
	case "date":
		return value.Value{Kind: value.Date, Text: isoDate(description)}, true
	case "error":
		return errorValue(class, description), true
	case "typedarray", "dataview":
		return opaque("typedarray", class, description), true
	case "arraybuffer":
		return opaque("arraybuffer", class, description), true
	}
	return value.Value{}, false
}

func opaque(kind, class, description string) value.Value {
	return value.Value{Kind: value.Dehydrated, Name: kind, Text: or(description, class), Size: max(sizeOf(description), 0), Opaque: true}
}

// named makes an object of which only the name is known.
func named(subtype, class, description string) value.Value {
	size := max(sizeOf(description), 0)
	kind := "object"
	switch subtype {
	case "array", "map", "set":
		kind = subtype
	default:
		size = 0
	}
	text := or(description, class)
	if text == "Object" {
		text = "{…}"
	}
	return value.Value{Kind: value.Dehydrated, Name: kind, Text: cut(text, value.MaxPreview), Size: size}
}

// open makes a value of a preview. What the preview left out is marked as missing.
func (p *objectPreview) open(class, description string) value.Value {
	v := container(p.Subtype, or(class, p.Description), description)
	for _, q := range p.Properties {
		x := q.value()
		switch v.Kind {
		case value.Array:
			// A hole has no property, so that the place counts, not the order.
			if i, err := strconv.Atoi(q.Name); err == nil && i >= len(v.Items) && i < value.MaxEntries {
				for len(v.Items) < i {
					v.Items = append(v.Items, value.Value{Kind: value.Undefined})
				}
				v.Items = append(v.Items, x)
			}
		case value.Map, value.Set:
		default:
			v.Fields = append(v.Fields, value.Field{Name: cut(q.Name, value.MaxString), Value: x})
		}
	}
	for _, e := range p.Entries {
		switch v.Kind {
		case value.Map:
			v.Entries = append(v.Entries, value.Entry{Key: e.Key.value(), Value: e.Value.value()})
		case value.Set:
			v.Items = append(v.Items, e.Value.value())
		}
	}
	return bounded(v, p.Overflow, sizeOf(or(description, p.Description)))
}

// value is what a preview says about an entry of a map or set.
func (p *objectPreview) value() value.Value {
	if p == nil {
		return value.Value{Kind: value.Undefined}
	}
	if p.Type != "object" {
		return primitive(p.Type, p.Subtype, p.Description, p.Description)
	}
	o := remoteObject{Type: p.Type, Subtype: p.Subtype, ClassName: p.Description, Description: p.Description, Preview: p}
	return o.nested()
}

// value is what a preview says about a property.
func (q *propertyPreview) value() value.Value {
	if q.Type != "object" || q.Subtype == "null" {
		return primitive(q.Type, q.Subtype, q.Value, q.Value)
	}
	if v, ok := known(q.Subtype, q.Value, q.Value); ok {
		return v
	}
	return named(q.Subtype, q.Value, q.Value)
}

// complete reports whether a preview holds everything that a record can.
func (p *objectPreview) complete() bool {
	if p.Overflow {
		return false
	}
	for _, q := range p.Properties {
		switch {
		case q.Type == "object" && q.Subtype != "null", q.Type == "string" && utf8.RuneCountInString(q.Value) >= 100:
			return false
		}
	}
	return p.Subtype != "map" && p.Subtype != "set" || len(p.Entries) == 0 || sizeOf(p.Description) == len(p.Entries)
}

// opened makes a value of an object's properties. entries are those of a map or set.
func (o *remoteObject) opened(props, entries []propertyDescriptor) value.Value {
	v := container(o.Subtype, o.ClassName, o.Description)
	cutShort := false
	for i := range props {
		p := &props[i]
		if p.Symbol != nil || !p.Enumerable && v.Kind != value.Instance || p.Name == "__proto__" {
			continue
		}
		x := value.Value{Kind: value.Undefined}
		switch {
		case p.Value != nil:
			x = p.Value.nested()
		case p.Get != nil:
			x = primitive("function", "", p.Get.Description, p.Get.Description)
		}
		switch v.Kind {
		case value.Array:
			n, err := strconv.Atoi(p.Name)
			if err != nil || n < len(v.Items) {
				continue
			}
			if n >= value.MaxEntries {
				cutShort = true
				continue
			}
			for len(v.Items) < n {
				v.Items = append(v.Items, value.Value{Kind: value.Undefined})
			}
			v.Items = append(v.Items, x)
		case value.Map, value.Set:
		default:
			if len(v.Fields) == value.MaxEntries {
				cutShort = true
				continue
			}
			v.Fields = append(v.Fields, value.Field{Name: cut(p.Name, value.MaxString), Value: x})
		}
	}
	for i := range entries {
		e := &entries[i]
		if e.Value == nil || e.Value.Preview == nil || len(e.Value.Preview.Entries) != 1 {
			continue
		}
		if len(v.Items) == value.MaxEntries || len(v.Entries) == value.MaxEntries {
			cutShort = true
			break
		}
		x := e.Value.Preview.Entries[0]
		if v.Kind == value.Map {
			v.Entries = append(v.Entries, value.Entry{Key: x.Key.value(), Value: x.Value.value()})
		} else if v.Kind == value.Set {
			v.Items = append(v.Items, x.Value.value())
		}
	}
	size := sizeOf(o.Description)
	if cutShort && v.Kind != value.Array && v.Kind != value.Map && v.Kind != value.Set {
		size = len(props)
	}
	return bounded(v, cutShort, size)
}

// container is an empty value of the kind that an object is.
func container(subtype, class, description string) value.Value {
	switch subtype {
	case "array":
		return value.Value{Kind: value.Array}
	case "map":
		return value.Value{Kind: value.Map}
	case "set":
		return value.Value{Kind: value.Set}
	}
	if subtype == "proxy" {
		class = description
	}
	if class == "Object" || class == "" {
		return value.Value{Kind: value.Object}
	}
	return value.Value{Kind: value.Instance, Name: cut(class, 256)}
}

// bounded brings the number of entries into the limits of an encoded value. size is how many there are, -1 if nobody knows.
func bounded(v value.Value, more bool, size int) value.Value {
	if v.Kind != value.Array && v.Kind != value.Map && v.Kind != value.Set && !more {
		size = len(v.Fields)
	}
	v.Items = v.Items[:min(len(v.Items), value.MaxEntries)]
	v.Entries = v.Entries[:min(len(v.Entries), value.MaxEntries)]
	v.Fields = v.Fields[:min(len(v.Fields), value.MaxEntries)]
	have := len(v.Items) + len(v.Entries) + len(v.Fields)
	if more && size <= have && v.Kind != value.Array {
		size = have + 1
	}
	v.Size = max(size, have)
	v.Partial = v.Size > have
	if v.Kind == value.Array && v.Partial && v.Size <= value.MaxEntries {
		// The rest are holes at the end, which have no property.
		for len(v.Items) < v.Size && !more {
			v.Items = append(v.Items, value.Value{Kind: value.Undefined})
		}
		v.Partial = v.Size > len(v.Items)
	}
	return v
}

var (
	sizePattern     = regexp.MustCompile(`^[\p{L}\p{N}_$ ]*\((\d+)\)`)
	functionPattern = regexp.MustCompile(`^(?:async\s+)?(?:function\s*\*?|class|get|set|\*)?\s*([\p{L}_$#][\p{L}\p{N}_$]*)`)
)

// sizeOf is the number in a description such as Array(3); -1 without one.
func sizeOf(description string) int {
	m := sizePattern.FindStringSubmatch(description)
	if m == nil {
		return -1
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		return -1
	}
	return n
}

// functionName finds the name in a function's source; empty if it has none.
func functionName(source string) string {
	head, _, _ := strings.Cut(source, "(")
	if strings.Contains(head, "=>") {
		return ""
	}
	m := functionPattern.FindStringSubmatch(cut(source, 256))
	if m == nil {
		return ""
	}
	switch m[1] {
	case "function", "class", "async", "extends":
		return ""
	}
	return m[1]
}

// isoDate turns what Date.prototype.toString gives into ISO form; empty for an invalid date.
func isoDate(text string) string {
	text, _, _ = strings.Cut(text, " (")
	t, err := time.Parse("Mon Jan 02 2006 15:04:05 GMT-0700", text)
	if err != nil {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

// errorValue takes an error's description apart, which is its stack.
func errorValue(class, stack string) value.Value {
	head := stack
	if i := strings.Index(stack, "\n    at "); i >= 0 {
		head = stack[:i]
	}
	name, message, ok := strings.Cut(head, ": ")
	if !ok || strings.ContainsAny(name, " \n") {
		name, message = or(class, "Error"), head
		if ok || head == name {
			message = strings.TrimPrefix(head, name)
		}
	}
	v := value.Value{Kind: value.Error, Name: cut(name, 256), Text: cut(message, value.MaxString)}
	if head != stack {
		v.Stack = cut(stack, value.MaxString)
	}
	return v
}

// cut returns the first limit characters of a text as valid UTF-8.
func cut(s string, limit int) string {
	if len(s) > limit {
		n := 0
		for i := range s {
			if n == limit {
				s = s[:i]
				break
			}
			n++
		}
	}
	return strings.ToValidUTF8(s, "\ufffd")
}

func or(s, other string) string {
	if s != "" {
		return s
	}
	return other
}
