package treecap

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/big"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/natscope/natscope/subjects/value"
)

// reader reads live values by reflection: only what lies inside of them, since
// what pointers lead to has other guards or none. It calls no methods but those
// of errors, of named integers for their text, and Load of atomic types.
type reader struct {
	// maps says that nobody writes to maps meanwhile.
	maps bool
	// most is how many entries of the container at the top are read; 0 means value.MaxEntries.
	most int
}

// maxPointers is how many pointers are followed to a value.
const maxPointers = 4

func isLogValuer(v any) bool {
	_, ok := v.(slog.LogValuer)
	return ok
}

// read adds the parts of a value. maps says whether maps may be read.
func (s *scratch) read(v any, maps bool) {
	defer func() {
		if p := recover(); p != nil {
			s.threw(p)
		}
	}()
	r := reader{maps: maps}
	switch v := v.(type) {
	case nil:
		return
	case value.Value:
		s.add(field{name: "value", value: v, kind: kindState})
		return
	case slog.LogValuer:
		if logged := slog.AnyValue(v).Resolve(); logged.Kind() == slog.KindGroup {
			s.attrs(logged.Group(), 0)
		} else {
			s.add(field{name: "value", value: value.Of(logged), kind: kindState})
		}
		return
	}
	x := reflect.ValueOf(v)
	for range maxPointers {
		if x.Kind() != reflect.Pointer || x.IsNil() || isKnown(x.Type()) {
			break
		}
		x = x.Elem()
	}
	switch {
	case x.Kind() == reflect.Struct && !isKnown(x.Type()) && !isAtomic(x.Type()):
		s.structure(r, x)
	case x.Kind() == reflect.Map && maps && !x.IsNil():
		s.entries(r, x)
	default:
		s.add(field{name: "value", value: r.value(x, 0), text: enumText(x), kind: kindState})
	}
}

// top reads a value that was not registered, as one.
func (r reader) top(v any) (out value.Value) {
	defer func() {
		if p := recover(); p != nil {
			out = value.Value{Kind: value.Threw, Text: readable(p)}
		}
	}()
	switch v := v.(type) {
	case value.Value:
		return v
	case slog.LogValuer:
		return value.Of(slog.AnyValue(v))
	}
	return r.value(reflect.ValueOf(v), 0)
}

// maxInline is how deep groups without a name are followed: a group can hold itself.
const maxInline = 8

// attrs adds the attributes of a group.
func (s *scratch) attrs(group []slog.Attr, level int) {
	for _, a := range group {
		v := a.Value.Resolve()
		if name := cleanName(a.Key, ""); name != "" {
			s.add(field{name: name, value: value.Of(v), kind: kindState})
		} else if v.Kind() == slog.KindGroup && level < maxInline {
			s.attrs(v.Group(), level+1)
		}
	}
}

// structure adds the exported fields of a struct.
func (s *scratch) structure(r reader, x reflect.Value) {
	for _, i := range visible(x.Type()) {
		f := x.Field(i.index)
		s.add(field{name: i.name, value: r.value(f, 0), text: enumText(f), kind: kindState})
	}
}

// entries adds the entries of a map, in the order of their keys.
func (s *scratch) entries(r reader, x reflect.Value) {
	pairs := r.pairs(x, maxValues)
	for _, p := range pairs {
		name := cleanName(p.name, "(empty)")
		s.add(field{name: name, value: r.value(p.value, 0), text: enumText(p.value), kind: kindState})
	}
	s.left += x.Len() - len(pairs)
}

// visibleField is a field that is shown.
type visibleField struct {
	index int
	name  string
}

// fieldsOf caches visible for each type; fieldTypes bounds it.
var (
	fieldsOf   sync.Map
	fieldTypes atomic.Int64
)

const maxFieldTypes = 4096

// visible lists the fields of a struct type that are shown.
func visible(t reflect.Type) []visibleField {
	if cached, ok := fieldsOf.Load(t); ok {
		return cached.([]visibleField)
	}
	var out []visibleField
	for i := range t.NumField() {
		f := t.Field(i)
		if f.IsExported() && f.Tag.Get("natscope") != "-" && !isLock(f.Type) {
			out = append(out, visibleField{i, cleanName(f.Name, "field")})
		}
	}
	if fieldTypes.Load() < maxFieldTypes {
		if _, had := fieldsOf.LoadOrStore(t, out); !had {
			fieldTypes.Add(1)
		}
	}
	return out
}

// isLock reports whether values of a type say nothing to people and must not be read.
func isLock(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind() == reflect.Struct && t.PkgPath() == "sync"
}

func isAtomic(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t.PkgPath() == "sync/atomic"
}

var knownTypes = map[reflect.Type]bool{
	reflect.TypeFor[time.Time](): true, reflect.TypeFor[*time.Time](): true, reflect.TypeFor[time.Duration](): true,
	reflect.TypeFor[*big.Int](): true, reflect.TypeFor[json.RawMessage](): true, reflect.TypeFor[json.Number](): true,
	reflect.TypeFor[slog.Value](): true, reflect.TypeFor[slog.Attr](): true, reflect.TypeFor[value.Value](): true,
	reflect.TypeFor[netip.Addr](): true, reflect.TypeFor[netip.AddrPort](): true,
}

// isKnown reports whether values of a type are read as package value does it:
// they hold nothing that another goroutine could change.
func isKnown(t reflect.Type) bool { return knownTypes[t] }

// value reads one value; containers at depth 0 are opened, and previewed below.
func (r reader) value(x reflect.Value, depth int) value.Value {
	for range maxPointers {
		if !x.IsValid() {
			return value.Value{Kind: value.Null}
		}
		switch x.Kind() {
		case reflect.Pointer, reflect.Interface, reflect.Map, reflect.Slice, reflect.Chan, reflect.Func, reflect.UnsafePointer:
			if x.IsNil() {
				return value.Value{Kind: value.Null}
			}
		}
		if v, ok := wellKnown(x); ok {
			return fit(v, depth)
		}
		switch {
		case x.Kind() == reflect.Interface:
			x = x.Elem()
		case x.Kind() == reflect.Pointer && isScalar(x.Elem().Kind()):
			x = x.Elem()
		case isAtomic(x.Type()):
			next, ok := load(x)
			if !ok {
				return opaque(x, "")
			}
			x = next
		default:
			return r.kind(x, depth)
		}
	}
	return opaque(x, "")
}

var (
	errorType     = reflect.TypeFor[error]()
	logValuerType = reflect.TypeFor[slog.LogValuer]()
	stringerType  = reflect.TypeFor[fmt.Stringer]()
)

// wellKnown reads errors, the types that package value reads without harm, and
// copies that say themselves what they are, which often is how secrets are hidden.
func wellKnown(x reflect.Value) (value.Value, bool) {
	if !x.CanInterface() || x.Kind() == reflect.Interface {
		return value.Value{}, false
	}
	t := x.Type()
	switch {
	case t.PkgPath() == "net/netip" && isKnown(t):
		return value.Value{Kind: value.String, Text: fmt.Sprint(x.Interface())}, true
	case isKnown(t):
		return value.Of(x.Interface()), true
	case t.NumMethod() == 0:
		return value.Value{}, false
	case t.Implements(errorType) && !holdsLock(t):
		return value.Of(x.Interface()), true
	case t.Implements(logValuerType) && t.Kind() != reflect.Pointer && !holdsLock(t):
		return value.Of(slog.AnyValue(x.Interface())), true
	case t.Kind() == reflect.String && t.Implements(stringerType):
		return value.Of(readable(x.Interface())), true
	}
	return value.Value{}, false
}

// holdsLock reports whether making an interface of a value would copy a lock.
func holdsLock(t reflect.Type) bool {
	if t.Kind() != reflect.Struct {
		return false
	}
	for i := range t.NumField() {
		if f := t.Field(i).Type; f.Kind() == reflect.Struct && (isLock(f) || isAtomic(f) || holdsLock(f)) {
			return true
		}
	}
	return false
}

// fit previews a container that is not at the top.
func fit(v value.Value, depth int) value.Value {
	if depth == 0 {
		return v
	}
	switch v.Kind {
	case value.Array, value.Object, value.Instance, value.Map, value.Set, value.URLSearchParams:
		return shorten(v)
	}
	return v
}

// opaque names a value that is not read, and why.
func opaque(x reflect.Value, why string) value.Value {
	name := string(value.Object)
	if x.Kind() == reflect.Map {
		name = string(value.Map)
	}
	return value.Value{Kind: value.Dehydrated, Name: name, Text: x.Type().String() + why, Opaque: true}
}

func isScalar(k reflect.Kind) bool {
	return k >= reflect.Bool && k <= reflect.Complex128 || k == reflect.String
}

// load reads a value of sync/atomic, if it can be addressed.
func load(x reflect.Value) (reflect.Value, bool) {
	if !x.CanAddr() || !x.CanInterface() {
		return x, false
	}
	switch a := x.Addr().Interface().(type) {
	case *atomic.Int64:
		return reflect.ValueOf(a.Load()), true
	case *atomic.Int32:
		return reflect.ValueOf(a.Load()), true
	case *atomic.Uint64:
		return reflect.ValueOf(a.Load()), true
	case *atomic.Uint32:
		return reflect.ValueOf(a.Load()), true
	case *atomic.Uintptr:
		return reflect.ValueOf(a.Load()), true
	case *atomic.Bool:
		return reflect.ValueOf(a.Load()), true
	case interface{ Load() any }:
		return reflect.ValueOf(a.Load()), true
	}
	// atomic.Pointer of any type.
	if m := x.Addr().MethodByName("Load"); m.IsValid() {
		return m.Call(nil)[0], true
	}
	return x, false
}

// kind reads a value that has no meaning of its own.
func (r reader) kind(x reflect.Value, depth int) value.Value {
	switch x.Kind() {
	case reflect.Bool:
		return value.Of(x.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return value.Of(x.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return value.Of(x.Uint())
	case reflect.Float32:
		return value.Of(float32(x.Float()))
	case reflect.Float64:
		return value.Of(x.Float())
	case reflect.Complex64, reflect.Complex128:
		return fit(value.Of(x.Complex()), depth)
	case reflect.String:
		return value.Of(x.String())
	case reflect.Func, reflect.Chan:
		if x.CanInterface() {
			return fit(value.Of(x.Interface()), depth)
		}
	case reflect.Struct:
		if !isLock(x.Type()) {
			return r.structValue(x, depth)
		}
	case reflect.Slice, reflect.Array:
		return r.list(x, depth)
	case reflect.Map:
		if !r.maps {
			return opaque(x, ", read with treecap.Locked only")
		}
		return r.mapValue(x, depth)
	}
	return opaque(x, "")
}

// limit is how many entries of a container are read at a depth: enough for its preview below the top.
func (r reader) limit(depth int) int {
	switch depth {
	case 0:
		return max(value.MaxEntries, r.most)
	case 1:
		return 5
	}
	return 0
}

func (r reader) structValue(x reflect.Value, depth int) value.Value {
	t := x.Type()
	out := value.Value{Kind: value.Instance, Name: typeName(t)}
	for _, f := range visible(t) {
		if out.Size++; len(out.Fields) < r.limit(depth) {
			out.Fields = append(out.Fields, value.Field{Name: f.name, Value: r.value(x.Field(f.index), depth+1)})
		}
	}
	out.Partial = out.Size > len(out.Fields)
	return fit(out, depth)
}

func typeName(t reflect.Type) string {
	if t.Name() == "" {
		return "struct"
	}
	return cutText(t.String(), value.MaxPreview)
}

func (r reader) list(x reflect.Value, depth int) value.Value {
	if x.Type().Elem().Kind() == reflect.Uint8 {
		switch {
		case x.Kind() == reflect.Slice:
			return value.Of(x.Bytes())
		case x.CanAddr():
			return value.Of(x.Slice(0, x.Len()).Bytes())
		}
		return opaque(x, "")
	}
	n := x.Len()
	out := value.Value{Kind: value.Array, Size: n, Partial: n > r.limit(depth)}
	for i := range min(n, r.limit(depth)) {
		out.Items = append(out.Items, r.value(x.Index(i), depth+1))
	}
	return fit(out, depth)
}

func (r reader) mapValue(x reflect.Value, depth int) value.Value {
	n, most := x.Len(), r.limit(depth)
	out := value.Value{Kind: value.Map, Size: n, Partial: n > most}
	named := x.Type().Key().Kind() == reflect.String
	if named {
		out.Kind = value.Object
	}
	if depth > 0 && n > value.MaxEntries {
		// A preview is not worth sorting a wide map.
		most = 0
		out.Partial = true
	}
	for _, p := range r.pairs(x, most) {
		if named {
			out.Fields = append(out.Fields, value.Field{Name: p.name, Value: r.value(p.value, depth+1)})
		} else {
			out.Entries = append(out.Entries, value.Entry{Key: p.key, Value: r.value(p.value, depth+1)})
		}
	}
	return fit(out, depth)
}

// pair is one entry of a map.
type pair struct {
	name  string
	key   value.Value
	order int64
	value reflect.Value
}

// pairName is the name of the entry with a key.
func (r reader) pairName(k reflect.Value) string {
	if k.Kind() == reflect.String {
		return strings.ToValidUTF8(k.String(), "\ufffd")
	}
	return value.Preview(r.value(k, 1))
}

// maxScan is how many keys of a map are looked at to find the first ones; of a
// larger one any will do, since sorting would take the application's time.
const maxScan = 2000

// pairs returns the first entries of a map in the order of their keys.
func (r reader) pairs(x reflect.Value, most int) []pair {
	if most == 0 {
		return nil
	}
	scan := x.Len()
	if scan > maxScan {
		scan = most
	}
	out := make([]pair, 0, scan)
	for it := x.MapRange(); len(out) < scan && it.Next(); {
		k := it.Key()
		p := pair{value: it.Value()}
		switch {
		case k.Kind() == reflect.String:
			p.name = r.pairName(k)
			p.key = value.Value{Kind: value.String, Text: p.name}
		case k.CanInt():
			p.order = k.Int()
			fallthrough
		default:
			p.key = r.value(k, 1)
			p.name = value.Preview(p.key)
		}
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b pair) int {
		return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.name, b.name))
	})
	return out[:min(most, len(out))]
}

// enumText is the text of a named integer that has one, such as a state's name.
// Its method gets a copy.
func enumText(x reflect.Value) string {
	if !x.IsValid() || !x.CanInt() && !x.CanUint() || !x.CanInterface() || x.Type() == reflect.TypeFor[time.Duration]() {
		return ""
	}
	s, ok := x.Interface().(fmt.Stringer)
	if !ok {
		return ""
	}
	return readable(s)
}
