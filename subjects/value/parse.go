package value

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/natscope/natscope/subjects/internal/jsonwalk"
)

// maxDepth is how deep a parsed value may be nested. Encoders of this contract
// use four levels; what sends more is shown as far as this.
const maxDepth = 32

// Parse reads an encoded value. The error wraps ErrMalformed and says where.
// Unknown markers are read as objects, unknown fields of markers are ignored.
// Values that are nested more deeply than an encoder makes them are read too,
// up to 32 levels. Numbers are read as JavaScript would: one that is too large
// is infinite.
func Parse(data json.RawMessage) (Value, error) {
	if !json.Valid(data) {
		return Value{}, fmt.Errorf("%w: %.80q is not JSON", ErrMalformed, data)
	}
	return parse(data, 1)
}

// member is one member of a JSON object.
type member struct {
	name string
	raw  []byte
}

// marker gives access to the fields of a marker by name; where a name comes
// twice the last one counts, as in JavaScript.
type marker struct {
	kind    string
	members []member
}

// parse reads valid JSON.
func parse(raw []byte, level int) (Value, error) {
	if level > maxDepth {
		return Value{}, fmt.Errorf("%w: more than %d levels", ErrMalformed, maxDepth)
	}
	s := scan(raw)
	switch c := s.Peek(); {
	case c == '{':
		return parseObject(raw, level)
	case c == '[':
		items, err := parseItems(raw, level)
		return Value{Kind: Array, Items: items, Size: len(items)}, err
	case c == '"':
		return Value{Kind: String, Text: jsonwalk.Unquote(s.Raw())}, nil
	case isNumberStart(c):
		return s.number(false), nil
	}
	return literal(s.Raw()), nil
}

func membersOf(raw []byte) []member {
	s := scan(raw)
	var out []member
	s.Members(func(name string) { out = append(out, member{name, s.Raw()}) })
	return out
}

func parseObject(raw []byte, level int) (Value, error) {
	m := marker{members: membersOf(raw)}
	for _, x := range m.members {
		if x.name == Tag && x.raw[0] == '"' {
			m.kind = jsonwalk.Unquote(x.raw)
		}
	}
	if m.kind != "" {
		if v, known, err := m.value(level); known {
			if err != nil {
				return Value{}, fmt.Errorf("%s marker: %w", m.kind, err)
			}
			return v, nil
		}
	}
	fields, err := parseFields(m.members, level)
	return Value{Kind: Object, Fields: fields, Size: len(fields)}, err
}

func parseFields(members []member, level int) ([]Field, error) {
	var out []Field
	for _, x := range members {
		v, err := parse(x.raw, level+1)
		if err != nil {
			return nil, fmt.Errorf("in %.40q: %w", x.name, err)
		}
		out = append(out, Field{x.name, v})
	}
	return out, nil
}

func parseItems(raw []byte, level int) ([]Value, error) {
	var out []Value
	var failed error
	s := scan(raw)
	s.Elements(func() {
		item := s.Raw()
		if failed != nil {
			return
		}
		v, err := parse(item, level+1)
		if err != nil {
			failed = fmt.Errorf("in element %d: %w", len(out), err)
			return
		}
		out = append(out, v)
	})
	return out, failed
}

// parsePairs reads an array of pairs.
func parsePairs(raw []byte, level int) ([]Entry, error) {
	items, err := parseItems(raw, level)
	if err != nil {
		return nil, err
	}
	var out []Entry
	for i, p := range items {
		if p.Kind != Array || len(p.Items) != 2 {
			return nil, fmt.Errorf("%w: entry %d is not a pair", ErrMalformed, i)
		}
		out = append(out, Entry{p.Items[0], p.Items[1]})
	}
	return out, nil
}

// value reads the marker; known says whether this version knows its kind.
func (m marker) value(level int) (v Value, known bool, err error) {
	v.Kind = Kind(m.kind)
	switch m.kind {
	case "undefined":
	case "number":
		if err = m.text("value", &v.Text); err == nil && !isSpecial(v.Text) {
			err = fmt.Errorf("%w: value %.40q is none of NaN, Infinity, -Infinity, -0", ErrMalformed, v.Text)
		}
	case "bigint":
		err = m.digits(&v.Text)
	case "symbol":
		err = m.text("value", &v.Text)
	case "date":
		if string(m.get("iso")) != "null" {
			err = m.text("iso", &v.Text)
		}
	case "regexp":
		err = m.texts("source", &v.Text, "flags", &v.Name)
	case "error":
		if err = m.texts("name", &v.Name, "message", &v.Text); err == nil && m.get("stack") != nil {
			err = m.text("stack", &v.Stack)
		}
	case "string":
		v.Partial = true
		if err = m.text("head", &v.Text); err == nil {
			err = m.size("length", &v.Size)
		}
	case "function":
		err = m.text("name", &v.Name)
	case "threw":
		err = m.text("message", &v.Text)
	case "dehydrated":
		if err = m.texts("type", &v.Name, "preview", &v.Text); err == nil {
			err = m.size("size", &v.Size)
		}
		v.Opaque = string(m.get("opaque")) == "true"
	case "partial":
		v, err = m.partial(level)
	default:
		return m.container(level)
	}
	return v, true, err
}

// container reads the markers that hold other values.
func (m marker) container(level int) (v Value, known bool, err error) {
	v.Kind = Kind(m.kind)
	switch m.kind {
	case "map", "urlsearchparams":
		v.Entries, err = m.pairs(level)
		v.Size = len(v.Entries)
	case "set":
		var raw []byte
		if raw, err = m.array("values"); err == nil {
			v.Items, err = parseItems(raw, level)
			v.Size = len(v.Items)
		}
	case "instance":
		if err = m.text("name", &v.Name); err == nil {
			v.Fields, err = m.fields(level)
			v.Size = len(v.Fields)
		}
	case "object":
		var pairs []Entry
		pairs, err = m.pairs(level)
		for _, p := range pairs {
			if p.Key.Kind != String || p.Key.Partial {
				return v, true, fmt.Errorf("%w: a name is not a string", ErrMalformed)
			}
			v.Fields = append(v.Fields, Field{p.Key.Text, p.Value})
		}
		v.Size = len(v.Fields)
	default:
		return Value{}, false, nil
	}
	return v, true, err
}

func (m marker) partial(level int) (Value, error) {
	raw := m.get("value")
	if raw == nil {
		return Value{}, missing("value")
	}
	v, err := parse(raw, level+1)
	if err != nil {
		return Value{}, err
	}
	if !isContainer(v.Kind) || v.Partial {
		return Value{}, fmt.Errorf("%w: value is a %s, not a container", ErrMalformed, v.Kind)
	}
	n := v.Size
	if err := m.size("size", &v.Size); err != nil {
		return Value{}, err
	}
	v.Size, v.Partial = max(v.Size, n), true
	return v, nil
}

// get returns the text of a field, nil if there is none.
func (m marker) get(name string) []byte {
	for i := len(m.members) - 1; i >= 0; i-- {
		if m.members[i].name == name {
			return m.members[i].raw
		}
	}
	return nil
}

func missing(name string) error { return fmt.Errorf("%w: %s is missing", ErrMalformed, name) }

func (m marker) text(name string, to *string) error {
	raw := m.get(name)
	if raw == nil {
		return missing(name)
	}
	if raw[0] != '"' {
		return fmt.Errorf("%w: %s is not a string: %.40q", ErrMalformed, name, raw)
	}
	*to = jsonwalk.Unquote(raw)
	return nil
}

func (m marker) texts(name1 string, to1 *string, name2 string, to2 *string) error {
	if err := m.text(name1, to1); err != nil {
		return err
	}
	return m.text(name2, to2)
}

func (m marker) digits(to *string) error {
	if err := m.text("value", to); err != nil {
		return err
	}
	if text := *to; !isDigits("0"+text) && !(len(text) > 1 && text[0] == '-' && isDigits("0"+text[1:])) {
		return fmt.Errorf("%w: value %.40q is no integer", ErrMalformed, text)
	}
	return nil
}

func (m marker) size(name string, to *int) error {
	raw := m.get(name)
	if raw == nil {
		return missing(name)
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || n < 0 || n > safeInteger {
		return fmt.Errorf("%w: %s is no count: %.40q", ErrMalformed, name, raw)
	}
	*to = int(n)
	return nil
}

func (m marker) array(name string) ([]byte, error) {
	raw := m.get(name)
	if raw == nil {
		return nil, missing(name)
	}
	if raw[0] != '[' {
		return nil, fmt.Errorf("%w: %s is not an array", ErrMalformed, name)
	}
	return raw, nil
}

func (m marker) pairs(level int) ([]Entry, error) {
	raw, err := m.array("entries")
	if err != nil {
		return nil, err
	}
	return parsePairs(raw, level)
}

func (m marker) fields(level int) ([]Field, error) {
	raw := m.get("fields")
	if raw == nil {
		return nil, missing("fields")
	}
	if raw[0] != '{' {
		return nil, fmt.Errorf("%w: fields is not an object", ErrMalformed)
	}
	return parseFields(membersOf(raw), level)
}
