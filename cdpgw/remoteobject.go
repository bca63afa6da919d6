package cdpgw

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/console"
	"github.com/natscope/natscope/subjects/value"
)

// ObjectID names a value that a client can open. Values of records are named by
// where they are recorded, so that no table of handles has to be kept: the id
// works as long as the record is kept, on every connection that may see it.
type ObjectID string

// objectPath is where a recorded value is.
type objectPath struct {
	source subjects.SourceID
	// order is the number of the console entry, arg the argument in it.
	order uint64
	arg   int
	// entries names the list of a container's entries; entry, from 0, one of them, -1 the list.
	entries bool
	entry   int
}

// exceptionArg stands for the value of an exception in an objectPath.
const exceptionArg = -1

// recordPrefix begins the ids of recorded values.
const recordPrefix = "record"

func (p objectPath) id() ObjectID {
	parts := []string{recordPrefix, string(p.source), strconv.FormatUint(p.order, 10), strconv.Itoa(p.arg)}
	if p.entries {
		parts = append(parts, strconv.Itoa(p.entry))
	}
	return ObjectID(strings.Join(parts, ":"))
}

// parseObject reads an ObjectID that id made.
func parseObject(id ObjectID) (objectPath, bool) {
	parts := strings.Split(string(id), ":")
	if len(parts) != 4 && len(parts) != 5 || parts[0] != recordPrefix || !subjects.IsToken(parts[1]) {
		return objectPath{}, false
	}
	p := objectPath{source: subjects.SourceID(parts[1])}
	var err error
	if p.order, err = strconv.ParseUint(parts[2], 10, 64); err != nil {
		return objectPath{}, false
	}
	if p.arg, err = strconv.Atoi(parts[3]); err != nil || p.arg < exceptionArg {
		return objectPath{}, false
	}
	if len(parts) == 5 {
		p.entries = true
		if p.entry, err = strconv.Atoi(parts[4]); err != nil || p.entry < -1 {
			return objectPath{}, false
		}
	}
	return p, true
}

// remoteObject is a value as the protocol describes it.
type remoteObject struct {
	Type                string          `json:"type"`
	Subtype             string          `json:"subtype,omitempty"`
	ClassName           string          `json:"className,omitempty"`
	Value               json.RawMessage `json:"value,omitempty"`
	UnserializableValue string          `json:"unserializableValue,omitempty"`
	Description         string          `json:"description,omitempty"`
	ObjectID            ObjectID        `json:"objectId,omitempty"`
	Preview             *objectPreview  `json:"preview,omitempty"`
}

// recorded returns a recorded value as an object; path makes it openable.
func recorded(raw json.RawMessage, path objectPath) remoteObject {
	v, err := value.Parse(raw)
	if err != nil {
		return textObject("natscope could not read this value: " + err.Error())
	}
	o := objectOf(v)
	if len(v.Items)+len(v.Fields)+len(v.Entries) > 0 || container(v.Kind) {
		o.ObjectID = path.id()
		o.Preview = previewOf(v, o)
	}
	return o
}

// recordedArg returns a recorded argument as an object. One whose live object the
// realm may still have can be opened also where nothing in it was recorded.
func recordedArg(raw json.RawMessage, path objectPath, ref console.Ref) remoteObject {
	o := recorded(raw, path)
	if ref != 0 && o.ObjectID == "" && (o.Type == "function" || o.Type == "symbol" || o.Type == "object" && o.Subtype != "null") {
		o.ObjectID = path.id()
	}
	return o
}

func textObject(text string) remoteObject {
	return remoteObject{Type: "string", Value: encode(text)}
}

// container reports whether values of a kind can be opened even when they are empty.
func container(k value.Kind) bool {
	switch k {
	case value.Array, value.Object, value.Instance, value.Map, value.Set, value.URLSearchParams, value.Error, value.Date, value.RegExp:
		return true
	}
	return false
}

// objectOf describes a value without making it openable.
func objectOf(v value.Value) remoteObject {
	switch v.Kind {
	case value.Undefined:
		return remoteObject{Type: "undefined"}
	case value.Null:
		return remoteObject{Type: "object", Subtype: "null", Value: json.RawMessage("null")}
	case value.Bool:
		return remoteObject{Type: "boolean", Value: literal(v.Text), Description: v.Text}
	case value.Number:
		return numberObject(v.Text)
	case value.BigInt:
		return remoteObject{Type: "bigint", UnserializableValue: v.Text + "n", Description: v.Text + "n"}
	case value.String:
		text := v.Text
		if v.Partial {
			text += "… (" + strconv.Itoa(v.Size) + " characters, the rest was not recorded)"
		}
		return textObject(text)
	case value.Symbol:
		return remoteObject{Type: "symbol", Description: v.Text}
	case value.Function:
		return remoteObject{Type: "function", ClassName: "Function", Description: "function " + v.Name + "() { [recorded] }"}
	}
	return structured(v)
}

// numberObject describes a number, which JSON may not be able to hold.
func numberObject(text string) remoteObject {
	switch text {
	case "NaN", "Infinity", "-Infinity", "-0":
		return remoteObject{Type: "number", UnserializableValue: text, Description: text}
	}
	return remoteObject{Type: "number", Value: literal(text), Description: text}
}

// literal returns text as JSON if it is a JSON literal, and as a string if not.
func literal(text string) json.RawMessage {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return encode(text)
}

// structured describes the values that are objects in JavaScript.
func structured(v value.Value) remoteObject {
	o := remoteObject{Type: "object"}
	size := "(" + strconv.Itoa(v.Size) + ")"
	switch v.Kind {
	case value.Date:
		o.Subtype, o.ClassName, o.Description = "date", "Date", v.Text
		if v.Text == "" {
			o.Description = "Invalid Date"
		}
	case value.RegExp:
		o.Subtype, o.ClassName, o.Description = "regexp", "RegExp", "/"+v.Text+"/"+v.Name
	case value.Error:
		o.Subtype, o.ClassName, o.Description = "error", or(v.Name, "Error"), errorText(v)
	case value.Array:
		o.Subtype, o.ClassName, o.Description = "array", "Array", "Array"+size
	case value.Map:
		o.Subtype, o.ClassName, o.Description = "map", "Map", "Map"+size
	case value.Set:
		o.Subtype, o.ClassName, o.Description = "set", "Set", "Set"+size
	case value.URLSearchParams:
		o.ClassName, o.Description = "URLSearchParams", "URLSearchParams"+size
	case value.Instance:
		o.ClassName, o.Description = or(v.Name, "Object"), or(v.Name, "Object")
	case value.Threw:
		o.Subtype, o.ClassName, o.Description = "error", "Error", "could not be read: "+v.Text
	case value.Dehydrated:
		o.ClassName, o.Description = className(v.Name), or(v.Text, className(v.Name))
	default:
		o.ClassName, o.Description = "Object", "Object"
	}
	return o
}

// errorText is what V8 shows of an error: the stack begins with name and message.
func errorText(v value.Value) string {
	head := errorHead(v)
	switch {
	case v.Stack == "":
		return head
	case strings.Contains(v.Stack, v.Text) && v.Text != "":
		return v.Stack
	}
	return head + "\n" + v.Stack
}

// errorHead is an error's name and message.
func errorHead(v value.Value) string {
	head := or(v.Name, "Error")
	if v.Text != "" {
		head += ": " + v.Text
	}
	return head
}

// className is the JavaScript class of a dehydrated container.
func className(kind string) string {
	switch kind {
	case "array":
		return "Array"
	case "map":
		return "Map"
	case "set":
		return "Set"
	case "urlsearchparams":
		return "URLSearchParams"
	case "arraybuffer":
		return "ArrayBuffer"
	case "typedarray":
		return "TypedArray"
	}
	return "Object"
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
