package value

import (
	"fmt"
	"log/slog"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// The depths at which a Go value is read: the value itself is opened, a
// container in it is dehydrated with a preview, and a container in that
// preview is only named.
const (
	atTop = iota
	inContainer
	inPreview
)

// maxPointers is how many pointers are followed to a value. A pointer type can
// be its own element, so a chain can be a circle.
const maxPointers = 8

// safeInteger is the largest integer that a JavaScript number holds exactly.
const safeInteger = 1<<53 - 1

// Of reads any Go value one level deep. It never panics, and never calls a
// method of the value, with two exceptions: Error of an error that is not in an
// unexported field (what fmt does), and LogValue in a slog.Value; a panic in
// either becomes Threw or an Error.
//
// Structs, and pointers to them, are instances named "pkg.Type" and "*pkg.Type"
// with their exported and unexported fields; other pointers are read as what
// they point to. Maps with string keys are objects in the order of their keys,
// other maps are maps. nil of any type is null, so a nil slice differs from an
// empty one. A time.Time is a date in UTC with milliseconds. A time.Duration is
// its text, such as "1.5s". Integers beyond 2^53 and *big.Int are bigints.
// Slices and arrays of bytes are opaque. A json.RawMessage is what its JSON
// says, a json.Number a number. A []slog.Attr and a group are objects. A
// channel is an instance with len and cap, a complex number one with real and
// imag.
//
// Of iterates maps and reads fields without locks: like fmt, it must not run
// while others write to the value.
func Of(v any) (out Value) {
	defer func() {
		if r := recover(); r != nil {
			out = threw(r)
		}
	}()
	switch v := v.(type) {
	case nil:
		return Value{Kind: Null}
	case string:
		return ofString(v)
	case int:
		return ofInt(int64(v))
	case bool:
		return ofBool(v)
	case float64:
		return ofFloat(v, 64)
	case Value:
		return v
	}
	return read(reflect.ValueOf(v), atTop)
}

// read reads a value at a depth.
func read(v reflect.Value, depth int) Value {
	for range maxPointers {
		if !v.IsValid() {
			return Value{Kind: Null}
		}
		if k := v.Kind(); (k == reflect.Pointer || k == reflect.Interface) && v.IsNil() {
			return Value{Kind: Null}
		}
		if out, ok := ofKnown(v, depth); ok {
			return out
		}
		switch v.Kind() {
		case reflect.Interface:
			v = v.Elem()
		case reflect.Pointer:
			e := v.Elem()
			if e.Kind() == reflect.Struct && !isKnown(e.Type()) {
				return readContainer(e, depth, "*"+typeName(e.Type()))
			}
			v = e
		default:
			return readKind(v, depth)
		}
	}
	return Value{Kind: Threw, Text: "more than " + strconv.Itoa(maxPointers) + " pointers lead to the value"}
}

// readKind reads a value that is no pointer and no type with a meaning of its own.
func readKind(v reflect.Value, depth int) Value {
	switch v.Kind() {
	case reflect.Bool:
		return ofBool(v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return ofInt(v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return ofUint(v.Uint())
	case reflect.Float32:
		return ofFloat(v.Float(), 32)
	case reflect.Float64:
		return ofFloat(v.Float(), 64)
	case reflect.String:
		return ofString(v.String())
	case reflect.Func:
		return ofFunc(v)
	case reflect.UnsafePointer:
		if v.IsNil() {
			return Value{Kind: Null}
		}
		return Value{Kind: String, Text: fmt.Sprintf("%#x", v.Pointer())}
	case reflect.Slice, reflect.Map, reflect.Chan:
		if v.IsNil() {
			return Value{Kind: Null}
		}
	}
	return readContainer(v, depth, typeName(v.Type()))
}

// readContainer opens, dehydrates or names a container, whichever belongs to the depth.
func readContainer(v reflect.Value, depth int, name string) Value {
	if k := v.Kind(); (k == reflect.Slice || k == reflect.Array) && v.Type().Elem().Kind() == reflect.Uint8 {
		return ofBytes(v)
	}
	switch depth {
	case atTop:
		return open(v, depth, MaxEntries, name)
	case inContainer:
		return dehydrate(open(v, depth, previewEntries, name))
	}
	return open(v, depth, 0, name)
}

// dehydrate replaces a container by its preview.
func dehydrate(v Value) Value {
	kind := string(v.Kind)
	if v.Kind == Instance {
		kind = string(Object)
	}
	return Value{Kind: Dehydrated, Name: kind, Text: Preview(v), Size: v.Size}
}

func ofBool(b bool) Value { return Value{Kind: Bool, Text: strconv.FormatBool(b)} }

func ofInt(n int64) Value {
	kind := Number
	if n > safeInteger || n < -safeInteger {
		kind = BigInt
	}
	return Value{Kind: kind, Text: strconv.FormatInt(n, 10)}
}

func ofUint(n uint64) Value {
	kind := Number
	if n > safeInteger {
		kind = BigInt
	}
	return Value{Kind: kind, Text: strconv.FormatUint(n, 10)}
}

func ofFloat(f float64, bits int) Value { return Value{Kind: Number, Text: numberText(f, bits)} }

func ofString(s string) Value {
	s = strings.ToValidUTF8(s, "\ufffd")
	if head, n := cut(s, MaxString); n > MaxString {
		return Value{Kind: String, Text: head, Size: n, Partial: true}
	}
	return Value{Kind: String, Text: s}
}

// ofFunc names a function by its package and name, without the package's path.
func ofFunc(v reflect.Value) Value {
	if v.IsNil() {
		return Value{Kind: Null}
	}
	out := Value{Kind: Function}
	if f := runtime.FuncForPC(v.Pointer()); f != nil {
		name := f.Name()
		out.Name = ellipsis(name[strings.LastIndexByte(name, '/')+1:], MaxString)
	}
	return out
}

// ofError calls Error and contains its panic.
func ofError(err error, t reflect.Type) (out Value) {
	defer func() {
		if r := recover(); r != nil {
			out = threw(r)
		}
	}()
	return Value{Kind: Error, Name: typeName(t), Text: ellipsis(err.Error(), MaxString)}
}

// threw describes a panic. The panic's own methods are not to be trusted either.
func threw(r any) (out Value) {
	defer func() {
		if recover() != nil {
			out = Value{Kind: Threw, Text: "panic"}
		}
	}()
	text := ""
	switch r := r.(type) {
	case error:
		text = r.Error()
	case string:
		text = r
	default:
		text = Preview(read(reflect.ValueOf(r), inContainer))
	}
	return Value{Kind: Threw, Text: ellipsis(text, MaxString)}
}

// ofLogged reads what a slog.Value holds.
func ofLogged(v slog.Value, depth int) Value {
	v = v.Resolve()
	switch v.Kind() {
	case slog.KindGroup:
		return ofAttrs(v.Group(), depth)
	case slog.KindDuration:
		return Value{Kind: String, Text: v.Duration().String()}
	case slog.KindTime:
		return ofTime(v.Time())
	}
	return read(reflect.ValueOf(v.Any()), depth)
}

// ofTime writes a time as JavaScript's toISOString does; times that no
// JavaScript date can hold are invalid dates.
func ofTime(t time.Time) Value {
	const maxDate = 8_640_000_000_000 // seconds on both sides of the epoch
	if s := t.Unix(); s > maxDate || s < -maxDate {
		return Value{Kind: Date}
	}
	t = t.UTC()
	year := t.Year()
	if year >= 0 && year <= 9999 {
		return Value{Kind: Date, Text: t.Format("2006-01-02T15:04:05.000Z")}
	}
	rest := t.Format("01-02T15:04:05.000Z")
	return Value{Kind: Date, Text: fmt.Sprintf("%+07d-%s", year, rest)}
}

// typeName names a type for people. The full text of a struct type without a
// name, or of a large instantiation, would drown the value.
func typeName(t reflect.Type) string {
	if t.Name() == "" && t.Kind() == reflect.Struct {
		return "struct"
	}
	if t.Kind() == reflect.Pointer && t.Name() == "" {
		return "*" + typeName(t.Elem())
	}
	return ellipsis(emptyTypes.Replace(t.String()), MaxPreview)
}

// emptyTypes spells types as people do; their braces would also look like those of a preview.
var emptyTypes = strings.NewReplacer("struct {", "struct{", "interface {", "interface{")
