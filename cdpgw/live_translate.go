package cdpgw

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// translator writes what a realm said with the ids of this connection in the
// place of the realm's. It scans the JSON once and copies all else byte by byte:
// results are long, and most of them have few ids.
type translator struct {
	// prefix goes before object ids.
	prefix string
	// context stands for every context id; 0 leaves them.
	context ContextID
	// script translates script ids; nil leaves them.
	script func(id string) ScriptID
}

// shape is what an object of the JSON is, as far as it matters.
type shape int

const (
	// other is any object of the protocol; a member named value in it is the user's data.
	other shape = iota
	// descriptor is a property: its value is an object of the protocol.
	descriptor
	// data is the user's, without any id.
	data
	// location is the value of an object of the subtype internal#location.
	location
)

// lists are the members whose elements are descriptors.
var lists = map[string]bool{"result": true, "internalProperties": true, "privateProperties": true}

// translate returns the translated JSON. What is not JSON comes back as it is.
func (t translator) translate(raw json.RawMessage) json.RawMessage {
	w := walker{t: t, in: raw, out: make([]byte, 0, len(raw)+len(raw)/4+64)}
	ok := w.value(other, "", 0)
	if w.space(); !ok || w.at != len(raw) {
		return raw
	}
	return w.out
}

// maxTranslated is how deep the JSON of a realm may nest; V8's deepest are previews.
const maxTranslated = 200

type walker struct {
	t   translator
	in  []byte
	at  int
	out []byte
}

func (w *walker) space() {
	for w.at < len(w.in) && (w.in[w.at] == ' ' || w.in[w.at] == '\n' || w.in[w.at] == '\t' || w.in[w.at] == '\r') {
		w.at++
	}
}

// copyTo copies up to a place in the input.
func (w *walker) copyTo(end int, from int) { w.out = append(w.out, w.in[from:end]...) }

// text skips a string and returns where it begins and ends, with its quotes.
func (w *walker) text() (from, to int, ok bool) {
	if w.at >= len(w.in) || w.in[w.at] != '"' {
		return 0, 0, false
	}
	from = w.at
	for w.at++; ; w.at++ {
		i := bytes.IndexAny(w.in[w.at:], `"\`)
		if i < 0 {
			return 0, 0, false
		}
		w.at += i
		if w.in[w.at] == '"' {
			w.at++
			return from, w.at, true
		}
		w.at++
		if w.at >= len(w.in) {
			return 0, 0, false
		}
	}
}

// value translates one value; name is the member that holds it, or whose list does.
func (w *walker) value(s shape, name string, depth int) bool {
	w.space()
	if w.at >= len(w.in) || depth > maxTranslated {
		return false
	}
	switch w.in[w.at] {
	case '{':
		return w.object(s, depth)
	case '[':
		return w.list(s, name, depth)
	case '"':
		from, to, ok := w.text()
		if ok {
			w.copyTo(to, from)
		}
		return ok
	}
	from := w.at
	for w.at < len(w.in) && !bytes.ContainsRune([]byte(",]} \n\t\r"), rune(w.in[w.at])) {
		w.at++
	}
	w.copyTo(w.at, from)
	return w.at > from
}

func (w *walker) list(s shape, name string, depth int) bool {
	if s == other && lists[name] {
		s = descriptor
	}
	return w.members(']', func() bool { return w.value(s, "", depth+1) })
}

// members copies the brackets and commas of a list or an object around its parts.
func (w *walker) members(end byte, part func() bool) bool {
	w.out = append(w.out, w.in[w.at])
	w.at++
	for first := true; ; first = false {
		w.space()
		if w.at >= len(w.in) {
			return false
		}
		if w.in[w.at] == end {
			w.at++
			w.out = append(w.out, end)
			return true
		}
		if !first {
			if w.in[w.at] != ',' {
				return false
			}
			w.at++
			w.out = append(w.out, ',')
			w.space()
		}
		if !part() {
			return false
		}
	}
}

func (w *walker) object(s shape, depth int) bool {
	subtype := ""
	return w.members('}', func() bool {
		from, to, ok := w.text()
		if !ok {
			return false
		}
		w.copyTo(to, from)
		name := string(w.in[from+1 : to-1])
		if w.space(); w.at >= len(w.in) || w.in[w.at] != ':' {
			return false
		}
		w.at++
		w.out = append(w.out, ':')
		w.space()
		switch {
		case s == data:
			return w.value(data, name, depth+1)
		case name == "objectId" && s == other:
			return w.objectID()
		case name == "scriptId" && w.t.script != nil:
			return w.scriptID()
		case name == "executionContextId" && w.t.context != 0 && s == other:
			return w.contextID(depth)
		case name == "subtype" && s == other:
			from, to, ok := w.text()
			if ok {
				subtype = string(w.in[from+1 : to-1])
				w.copyTo(to, from)
			}
			return ok
		case name == "value" && s == other && subtype == "internal#location":
			return w.value(location, name, depth+1)
		case name == "value" && s == other, name == "preview", name == "exceptionMetaData":
			return w.value(data, name, depth+1)
		case s == descriptor:
			return w.value(other, "", depth+1)
		}
		return w.value(s, name, depth+1)
	})
}

// objectID puts the prefix into an object id.
func (w *walker) objectID() bool {
	from, to, ok := w.text()
	if ok {
		w.out = append(append(w.out, '"'), w.t.prefix...)
		w.copyTo(to, from+1)
	}
	return ok
}

func (w *walker) scriptID() bool {
	from, to, ok := w.text()
	if !ok {
		return false
	}
	var id string
	if json.Unmarshal(w.in[from:to], &id) != nil {
		return false
	}
	w.out = append(w.out, encode(w.t.script(id))...)
	return true
}

func (w *walker) contextID(depth int) bool {
	n := len(w.out)
	if !w.value(data, "", depth+1) {
		return false
	}
	w.out = strconv.AppendInt(w.out[:n], int64(w.t.context), 10)
	return true
}
