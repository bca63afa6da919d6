package value

import (
	"encoding/json"
	"log/slog"
	"math/big"
	"reflect"
	"time"
)

var (
	timeType     = reflect.TypeFor[time.Time]()
	durationType = reflect.TypeFor[time.Duration]()
	bigIntType   = reflect.TypeFor[big.Int]()
	rawType      = reflect.TypeFor[json.RawMessage]()
	numberType   = reflect.TypeFor[json.Number]()
	logType      = reflect.TypeFor[slog.Value]()
	attrType     = reflect.TypeFor[slog.Attr]()
	attrsType    = reflect.TypeFor[[]slog.Attr]()
	valueType    = reflect.TypeFor[Value]()
	errorType    = reflect.TypeFor[error]()
)

// maxBigInt is how many bits of a big.Int are written out: about MaxString
// digits. Converting more takes time that the application would wait for.
const maxBigInt = 33000

// isKnown reports whether values of a type have a meaning of their own, besides errors.
func isKnown(t reflect.Type) bool {
	switch t {
	case timeType, durationType, bigIntType, rawType, numberType, logType, attrType, attrsType, valueType:
		return true
	}
	return false
}

// ofKnown reads errors and the types with a meaning of their own.
func ofKnown(v reflect.Value, depth int) (Value, bool) {
	t := v.Type()
	if !isKnown(t) {
		if t.Kind() == reflect.Interface || !v.CanInterface() || t.NumMethod() == 0 || !t.Implements(errorType) || isNil(v) {
			return Value{}, false
		}
		return ofError(v.Interface().(error), t), true
	}
	switch t {
	case durationType:
		return Value{Kind: String, Text: time.Duration(v.Int()).String()}, true
	case numberType:
		return ofNumber(v.String()), true
	case rawType:
		if v.IsNil() {
			return Value{Kind: Null}, true
		}
		return ofRaw(v.Bytes(), depth), true
	}
	if v = exposed(v); !v.CanInterface() {
		return Value{}, false
	}
	switch x := v.Interface().(type) {
	case time.Time:
		return ofTime(x), true
	case big.Int:
		if n := x.BitLen(); n > maxBigInt {
			return Value{Kind: Dehydrated, Name: string(Object), Text: "big.Int", Size: n, Opaque: true}, true
		}
		return Value{Kind: BigInt, Text: x.String()}, true
	case slog.Value:
		return ofLogged(x, depth), true
	case slog.Attr:
		return ofAttrs([]slog.Attr{x}, depth), true
	case []slog.Attr:
		if x == nil {
			return Value{Kind: Null}, true
		}
		return ofAttrs(x, depth), true
	case Value:
		if depth > atTop && isContainer(x.Kind) {
			return dehydrate(x), true
		}
		return x, true
	}
	return Value{}, false
}

// exposed gives access to a value in an unexported field, where it is
// addressable. It is used for types whose methods only read.
func exposed(v reflect.Value) reflect.Value {
	if v.CanInterface() || !v.CanAddr() {
		return v
	}
	return reflect.NewAt(v.Type(), v.Addr().UnsafePointer()).Elem()
}

// ofNumber reads a number's literal; a text that is none stays a text.
func ofNumber(text string) Value {
	data := []byte(text)
	s := scan(data)
	if !json.Valid(data) || !isNumberStart(s.Peek()) {
		return ofString(text)
	}
	return s.number(true)
}

// maxRaw is how many bytes of JSON are read for their value; more is shown as bytes.
const maxRaw = 1 << 20

// ofRaw reads JSON as the value that it says; what is no JSON stays bytes.
func ofRaw(data []byte, depth int) Value {
	if len(data) > maxRaw || !json.Valid(data) {
		return ofBytes(reflect.ValueOf(data))
	}
	s := scan(data)
	return s.plain(depth)
}

func isNil(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Func, reflect.Chan, reflect.Interface, reflect.UnsafePointer:
		return v.IsNil()
	}
	return false
}
