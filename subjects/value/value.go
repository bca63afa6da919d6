// Package value is the encoding of one program value for people to look at: one
// level deep, with markers for everything that JSON cannot hold.
//
// It owns the markers, the encoder for Go values and the parser that readers
// use. It must not know who shows the values. Its golden vectors, in
// subjects/testdata/wire, bind it to the JavaScript encoder. It starts no
// goroutine; every function is safe for concurrent use.
//
// A value is JSON. null, true, false, finite numbers and strings stand for
// themselves, as do arrays and plain objects, whose elements are encoded the
// same way but with containers (arrays, objects, instances, maps, sets and
// urlsearchparams) replaced by a dehydrated marker. Everything else is an
// object whose key Tag names its kind:
//
//	undefined        {}
//	number           {"value": "NaN" | "Infinity" | "-Infinity" | "-0"}
//	bigint           {"value": digits}
//	symbol           {"value": "Symbol(name)"}
//	date             {"iso": text, or null for an invalid date}
//	regexp           {"source", "flags"}
//	error            {"name", "message", "stack"?}: an error held as a value
//	map              {"entries": [[key, value], …]}
//	set              {"values": […]}
//	urlsearchparams  {"entries": [[name, value], …]}
//	string           {"head", "length"}: the first MaxString characters of a longer string
//	instance         {"name", "fields": {…}}: an object with a type of its own, such as a Go struct
//	function         {"name"}
//	threw            {"message"}: a value that could not be read
//	dehydrated       {"type", "preview", "size", "opaque"?}: a container below the first level
//	partial          {"value", "size"}: the first MaxEntries entries of a wider container
//	object           {"entries": [[name, value], …]}: a plain object with a name that is itself Tag, or that it has twice
//
// Binary data (typed arrays, array buffers, []byte) are dehydrated and opaque on
// every level. An array's hole is undefined. A getter is never called: its
// property is encoded as the getter function. Text inside markers (messages,
// stacks, names, sources, symbols) that is longer than MaxString, and names of
// types and functions that are much shorter already, are cut and end in "…". A
// bigint of more digits is dehydrated and opaque.
// Lone surrogates and invalid UTF-8 become U+FFFD, and a character is never cut
// in half. Preview documents the texts of dehydrated markers.
package value

import "errors"

// Tag is the key that marks an object as a marker.
const Tag = "__natscope"

// The limits of one encoded value.
const (
	// MaxString is how many characters (UTF-16 units in JavaScript, runes in Go) of a string are kept.
	MaxString = 10000
	// MaxEntries is how many entries of a container are kept.
	MaxEntries = 100
	// MaxPreview is how many characters the preview of a dehydrated container has.
	MaxPreview = 100
)

// ErrMalformed says that data are not an encoded value. The text around it says where and why.
var ErrMalformed = errors.New("value: malformed")

// Kind says what a Value is.
type Kind string

// The kinds of values.
const (
	Undefined       Kind = "undefined"
	Null            Kind = "null"
	Bool            Kind = "bool"
	Number          Kind = "number"
	BigInt          Kind = "bigint"
	String          Kind = "string"
	Symbol          Kind = "symbol"
	Date            Kind = "date"
	RegExp          Kind = "regexp"
	Error           Kind = "error"
	Array           Kind = "array"
	Object          Kind = "object"
	Instance        Kind = "instance"
	Map             Kind = "map"
	Set             Kind = "set"
	URLSearchParams Kind = "urlsearchparams"
	Function        Kind = "function"
	Threw           Kind = "threw"
	Dehydrated      Kind = "dehydrated"
)

// Value is one value, encoded one level deep. The zero Value is null.
type Value struct {
	// Kind says which of the other fields mean something.
	Kind Kind
	// Text is the literal of a bool or number ("true", "1.5", "NaN"), the digits
	// of a bigint, the text of a string or symbol, the ISO form of a date (empty
	// if invalid), the source of a regexp, the message of an error or threw, or
	// the preview of a dehydrated container.
	Text string
	// Name is the type name of an instance, the name of an error or function,
	// the flags of a regexp, or the type of a dehydrated container: object,
	// array, map, set, urlsearchparams, typedarray or arraybuffer.
	Name string
	// Stack is an error's stack as text, if known.
	Stack string
	// Items are the elements of an array or set.
	Items []Value
	// Fields are the properties of an object or instance, in order.
	Fields []Field
	// Entries are those of a map or urlsearchparams.
	Entries []Entry
	// Size is the number of entries that the container has, or the length of the
	// whole string; larger than what is here when Partial is set.
	Size int
	// Partial says that entries or characters were cut.
	Partial bool
	// Opaque says that a dehydrated container cannot be opened.
	Opaque bool
}

// Field is a named value.
type Field struct {
	// Name is the property's or struct field's name, any text.
	Name string
	// Value is what it holds.
	Value Value
}

// Entry is a keyed value.
type Entry struct {
	// Key is the key, which can be of any kind.
	Key Value
	// Value is what it leads to.
	Value Value
}
