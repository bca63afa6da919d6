package mirror

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/natscope/natscope/producer/goreal/internal/remote"
)

// look is how a value is described: the text and CDP's subtype.
type look struct{ text, subtype string }

// describe describes a value that is no nil.
func (x Value) describe() look {
	v, t := x.v, x.v.Type()
	dt := elem(t)
	if tm, ok := asTime(v); ok {
		return look{timeText(tm), "date"}
	}
	if e, ok := asError(v); ok {
		return look{typeName(t) + ": " + errorText(e), "error"}
	}
	if s, ok := contextText(v); ok {
		return look{s, ""}
	}
	switch {
	case isAtomic(t):
		if l, ok := atomicLoad(v); ok {
			return look{"atomic." + bareName(dt) + "(" + x.child(l, x.g).brief(0) + ")", ""}
		}
		return look{typeName(dt), ""}
	case dt == mutexType || dt == rwMutexType:
		return look{typeName(dt) + " " + lockState(v), ""}
	case dt == syncMapType:
		_, n := syncMapEntries(v, 0)
		return look{"sync.Map(" + strconv.Itoa(n) + ")", "map"}
	}
	if s, ok := x.stdText(); ok {
		return look{typeName(t) + " " + s, ""}
	}
	switch v.Kind() {
	case reflect.Pointer:
		if k := t.Elem().Kind(); k == reflect.Slice || k == reflect.Array {
			return look{fmt.Sprintf("*%s(%d)", keepDims(typeName(t.Elem())), x.Len()), "array"}
		}
	case reflect.Slice:
		if v.IsNil() {
			return look{typeName(t) + "(0) nil", "array"}
		}
		return look{fmt.Sprintf("%s(%d)", keepDims(typeName(t)), v.Len()), "array"}
	case reflect.Array:
		return look{fmt.Sprintf("%s(%d)", keepDims(typeName(t)), v.Len()), "array"}
	case reflect.Map:
		return look{fmt.Sprintf("%s(%d)", typeName(t), x.Len()), "map"}
	case reflect.Chan:
		return look{fmt.Sprintf("%s (%d/%d)", typeName(t), v.Len(), v.Cap()), ""}
	case reflect.Func:
		return look{FuncOf(v).Text(), ""}
	case reflect.Complex64, reflect.Complex128:
		return look{fmt.Sprint(v.Complex()), ""}
	case reflect.UnsafePointer:
		return look{fmt.Sprintf("unsafe.Pointer(0x%x)", v.Pointer()), ""}
	}
	return look{typeName(t), ""}
}

// Text describes the value in one line, as String in JavaScript does.
func (x Value) Text() string {
	if x.IsNil() {
		return x.nilText()
	}
	return x.describe().text
}

// nilText tells the type of a nil.
func (x Value) nilText() string {
	if !x.v.IsValid() {
		return "nil"
	}
	return "(" + typeName(x.v.Type()) + ")(nil)"
}

// isNull reports whether the value shows as null: nil slices are empty lists instead.
func (x Value) isNull() bool { return x.IsNil() && (!x.v.IsValid() || x.v.Kind() != reflect.Slice) }

// Scalar returns the remote object of a value that JavaScript has by value; false for all others.
func (x Value) Scalar() (remote.Object, bool) {
	if x.isNull() {
		return remote.Null(x.nilText()), true
	}
	v := x.v
	var o remote.Object
	if s, ok := secretText(v); ok {
		return remote.String(s), true
	}
	switch v.Kind() {
	case reflect.String:
		return remote.String(v.String()), true
	case reflect.Bool:
		return remote.Bool(v.Bool()), true
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		o = remote.Int(v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		o = remote.Uint(v.Uint())
	case reflect.Float32, reflect.Float64:
		o = remote.Float(v.Float())
	default:
		return o, false
	}
	if s, ok := numberText(v); ok {
		o.Description = numberWithText(v, o.Description, s)
	}
	return o, true
}

func isScalar(k reflect.Kind) bool {
	return k == reflect.String || k >= reflect.Bool && k <= reflect.Float64
}

// IsScalar reports whether JavaScript has the value by value.
func (x Value) IsScalar() bool {
	return x.v.IsValid() && (isScalar(x.v.Kind()) || isSecret(x.v.Type()) && !x.IsNil())
}

// numberWithText shows what a number calls itself. A duration is its text alone.
func numberWithText(v reflect.Value, digits, text string) string {
	if v.Type() == durationType {
		return text
	}
	return digits + " (" + text + ")"
}

// Remote returns the value as DevTools shows it.
func (x Value) Remote(l *Lens, preview bool) remote.Object {
	if o, ok := x.Scalar(); ok {
		return o
	}
	d := x.describe()
	o := remote.Object{Type: "object", Subtype: d.subtype, ClassName: typeName(x.v.Type()), Description: remote.Cut(d.text, 10<<10), ObjectID: l.bind(x)}
	if x.v.Kind() == reflect.Func {
		o.Type, o.ClassName = "function", "Function"
		return o
	}
	if l != nil && l.Node != nil && x.v.Kind() == reflect.Pointer && l.Node(iface(x.v)) {
		o.Subtype = "node"
		return o
	}
	if preview && d.subtype != "error" && d.subtype != "date" {
		o.Preview = x.preview(d)
	}
	return o
}

// brief shows a value in one line, without calling the program's own methods
// and without reading what lies behind pointers.
func (x Value) brief(depth int) string {
	if x.IsNil() {
		return "nil"
	}
	v := x.v
	if s, ok := secretText(v); ok {
		return s
	}
	if s, ok := x.stdText(); ok {
		return s
	}
	switch v.Kind() {
	case reflect.String:
		return strconv.Quote(remote.Cut(v.String(), 40))
	case reflect.Float32, reflect.Float64:
		return remote.FormatFloat(v.Float())
	case reflect.Struct:
		return x.briefStruct(depth)
	case reflect.Pointer:
		if t := v.Type().Elem(); t.Kind() == reflect.Struct {
			return "&" + bareName(t) + "{…}"
		}
		return fmt.Sprintf("(%s)(0x%x)", bareName(v.Type()), v.Pointer())
	case reflect.Slice:
		return bareName(v.Type()) + "(" + strconv.Itoa(v.Len()) + ")"
	case reflect.Map:
		return bareName(v.Type()) + "(" + strconv.Itoa(x.Len()) + ")"
	case reflect.Array, reflect.Chan, reflect.Func:
		return bareName(v.Type())
	}
	if isScalar(v.Kind()) {
		o, _ := x.Scalar()
		return strings.TrimSuffix(o.Description, "n")
	}
	return fmt.Sprint(v)
}

// briefStruct shows the first fields of a struct. Depth is more than 0 only for
// structs that were copied, such as the key of a map.
func (x Value) briefStruct(depth int) string {
	name := bareName(x.v.Type())
	if depth == 0 {
		return name + "{…}"
	}
	var b strings.Builder
	b.WriteString(name + "{")
	for i, f := range infoOf(x.v.Type()).fields {
		if i > 0 {
			b.WriteByte(' ')
		}
		if i > 4 {
			b.WriteString("…")
			break
		}
		b.WriteString(f.name + ":" + x.child(x.v.Field(f.index), x.g).brief(depth-1))
	}
	return b.String() + "}"
}

// String is the text of a string, or what a secret lets be seen of itself.
func (x Value) String() string {
	if s, ok := secretText(x.v); ok {
		return s
	}
	return x.v.String()
}
