// Package remote holds the parts of the Runtime domain that a realm writes:
// remote objects, their previews and properties, exceptions and stacks, spelled
// as DevTools reads them.
//
// It must not know engines, reflection or sessions. It starts no goroutine; its
// types are plain data.
package remote

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxString is how many bytes of a text travel as a value; a longer one is cut
// and says so at its end.
const MaxString = 1 << 20

// Object is Runtime.RemoteObject.
type Object struct {
	Type                string          `json:"type"`
	Subtype             string          `json:"subtype,omitempty"`
	ClassName           string          `json:"className,omitempty"`
	Value               json.RawMessage `json:"value,omitempty"`
	UnserializableValue string          `json:"unserializableValue,omitempty"`
	Description         string          `json:"description,omitempty"`
	ObjectID            string          `json:"objectId,omitempty"`
	Preview             *Preview        `json:"preview,omitempty"`
}

// Preview is Runtime.ObjectPreview.
type Preview struct {
	Type        string            `json:"type"`
	Subtype     string            `json:"subtype,omitempty"`
	Description string            `json:"description,omitempty"`
	Overflow    bool              `json:"overflow"`
	Properties  []PropertyPreview `json:"properties"`
	Entries     []EntryPreview    `json:"entries,omitempty"`
}

// PropertyPreview is Runtime.PropertyPreview.
type PropertyPreview struct {
	Name         string   `json:"name"`
	Type         string   `json:"type"`
	Subtype      string   `json:"subtype,omitempty"`
	Value        string   `json:"value,omitempty"`
	ValuePreview *Preview `json:"valuePreview,omitempty"`
}

// EntryPreview is Runtime.EntryPreview.
type EntryPreview struct {
	Key   *Preview `json:"key,omitempty"`
	Value Preview  `json:"value"`
}

// Property is Runtime.PropertyDescriptor.
type Property struct {
	Name         string  `json:"name"`
	Value        *Object `json:"value,omitempty"`
	Writable     bool    `json:"writable,omitempty"`
	Get          *Object `json:"get,omitempty"`
	Set          *Object `json:"set,omitempty"`
	Configurable bool    `json:"configurable"`
	Enumerable   bool    `json:"enumerable"`
	IsOwn        bool    `json:"isOwn,omitempty"`
	Symbol       *Object `json:"symbol,omitempty"`
	WasThrown    bool    `json:"wasThrown,omitempty"`
}

// Internal is Runtime.InternalPropertyDescriptor.
type Internal struct {
	Name  string  `json:"name"`
	Value *Object `json:"value,omitempty"`
}

// Properties is the result of Runtime.getProperties.
type Properties struct {
	Result    []Property `json:"result"`
	Internal  []Internal `json:"internalProperties,omitempty"`
	Exception *Exception `json:"exceptionDetails,omitempty"`
}

// Exception is Runtime.ExceptionDetails.
type Exception struct {
	ID     int         `json:"exceptionId"`
	Text   string      `json:"text"`
	Line   int         `json:"lineNumber"`
	Column int         `json:"columnNumber"`
	Script string      `json:"scriptId,omitempty"`
	URL    string      `json:"url,omitempty"`
	Stack  *StackTrace `json:"stackTrace,omitempty"`
	Value  *Object     `json:"exception,omitempty"`
}

// StackTrace is Runtime.StackTrace.
type StackTrace struct {
	Frames []Frame `json:"callFrames"`
}

// Frame is Runtime.CallFrame. Line and Column count from 0.
type Frame struct {
	Function string `json:"functionName"`
	Script   string `json:"scriptId"`
	URL      string `json:"url"`
	Line     int    `json:"lineNumber"`
	Column   int    `json:"columnNumber"`
}

// Argument is Runtime.CallArgument.
type Argument struct {
	Value               json.RawMessage `json:"value"`
	UnserializableValue string          `json:"unserializableValue"`
	ObjectID            string          `json:"objectId"`
}

// Undefined is JavaScript's undefined.
func Undefined() Object { return Object{Type: "undefined"} }

// Null is null; what tells more than that, such as the type of a nil pointer.
func Null(what string) Object {
	return Object{Type: "object", Subtype: "null", Value: json.RawMessage("null"), Description: what}
}

// String is a text, cut at MaxString bytes.
func String(s string) Object {
	return Object{Type: "string", Value: quote(Cut(s, MaxString))}
}

// Bool is a boolean.
func Bool(b bool) Object {
	return Object{Type: "boolean", Value: json.RawMessage(strconv.FormatBool(b)), Description: strconv.FormatBool(b)}
}

// Int is a whole number. One that a JavaScript number cannot hold becomes a bigint.
func Int(i int64) Object {
	if i > MaxSafe || i < -MaxSafe {
		return Big(strconv.FormatInt(i, 10))
	}
	s := strconv.FormatInt(i, 10)
	return Object{Type: "number", Value: json.RawMessage(s), Description: s}
}

// Uint is Int for numbers without a sign.
func Uint(u uint64) Object {
	if u > MaxSafe {
		return Big(strconv.FormatUint(u, 10))
	}
	return Int(int64(u))
}

// MaxSafe is the largest whole number that a JavaScript number holds exactly.
const MaxSafe = 1<<53 - 1

// Big is a bigint, given by its digits.
func Big(digits string) Object {
	return Object{Type: "bigint", UnserializableValue: digits + "n", Description: digits + "n"}
}

// Float is a number, with the spellings that JSON does not have.
func Float(f float64) Object {
	if u := Unserializable(f); u != "" {
		return Object{Type: "number", UnserializableValue: u, Description: u}
	}
	b, _ := json.Marshal(f)
	return Object{Type: "number", Value: b, Description: FormatFloat(f)}
}

// Unserializable is how a number is spelled that JSON cannot carry; empty for one that it can.
func Unserializable(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	case f == 0 && math.Signbit(f):
		return "-0"
	}
	return ""
}

// FormatFloat writes a number as JavaScript does, near enough for people.
func FormatFloat(f float64) string {
	if u := Unserializable(f); u != "" {
		return u
	}
	if a := math.Abs(f); a != 0 && (a < 1e-6 || a >= 1e21) {
		s := strconv.FormatFloat(f, 'e', -1, 64)
		s = strings.Replace(s, "e-0", "e-", 1)
		return strings.Replace(s, "e+0", "e+", 1)
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// Cut shortens a text to about n bytes and marks what it cut.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	whole := len(s)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	if n < 1<<10 {
		return s[:n] + "…"
	}
	return s[:n] + "… (" + strconv.Itoa(whole) + " bytes in all)"
}

// quote is the JSON of a text; bytes that are no UTF-8 become U+FFFD.
func quote(s string) json.RawMessage {
	b, _ := json.Marshal(s)
	return b
}

// Thrown is an exception that has no object behind it, such as a refusal.
func Thrown(class, message string) Object {
	return Object{Type: "object", Subtype: "error", ClassName: class, Description: class + ": " + message}
}
