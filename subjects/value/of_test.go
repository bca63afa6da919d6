package value

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"
)

type hostileError struct{ text string }

func (e hostileError) Error() string { return e.text }

type evilPanic struct{}

func (evilPanic) Error() string { panic(evilPanic{}) }

type panicsWith struct{ value any }

func (p panicsWith) Error() string { panic(p.value) }

type logValuer struct{}

func (logValuer) LogValue() slog.Value { panic("no value") }

type withPrivateError struct{ err error }

type embedded struct {
	point
	Extra int
}

type generic[T any] struct{ V T }

type namedString string

type hours time.Duration

func TestOf(t *testing.T) {
	var nilErr *hostileError
	var nilChan chan int
	var nilPtr unsafe.Pointer
	big1 := big.NewInt(5)
	huge := new(big.Int).Lsh(big1, maxBigInt+1)
	for name, c := range map[string]struct {
		value any
		want  string
	}{
		"nil pointer that is an error":   {nilErr, "null"},
		"nil channel":                    {nilChan, "null"},
		"nil unsafe pointer":             {nilPtr, "null"},
		"nil bytes":                      {[]byte(nil), "null"},
		"nil raw message":                {slog.AnyValue(nil), "null"},
		"pointer to a nil slice":         {new([]int), "null"},
		"pointer to a slice":             {&[]int{1}, "[1]"},
		"pointer to a time":              {new(time.Time), `{"__natscope":"date","iso":"0001-01-01T00:00:00.000Z"}`},
		"pointer to a duration":          {new(time.Duration), `"0s"`},
		"named duration is a number":     {hours(time.Hour), "3600000000000"},
		"big.Int by value":               {*big1, `{"__natscope":"bigint","value":"5"}`},
		"big.Int beyond the limit":       {huge, `{"__natscope":"dehydrated","type":"object","preview":"big.Int","size":33004,"opaque":true}`},
		"named string":                   {namedString("x"), `"x"`},
		"map of a named string":          {map[namedString]int{"b": 2, "a": 1}, `{"a":1,"b":2}`},
		"uint8":                          {uint8(200), "200"},
		"uintptr":                        {uintptr(3), "3"},
		"float32 NaN":                    {float32(math.NaN()), `{"__natscope":"number","value":"NaN"}`},
		"embedded":                       {embedded{point{1, "a"}, 2}, `{"__natscope":"instance","name":"value.embedded","fields":{"point":{"__natscope":"dehydrated","type":"object","preview":"value.point {X: 1, y: \"a\"}","size":2},"Extra":2}}`},
		"generic":                        {generic[int]{1}, `{"__natscope":"instance","name":"value.generic[int]","fields":{"V":1}}`},
		"error in an unexported field":   {withPrivateError{evilPanic{}}, `{"__natscope":"instance","name":"value.withPrivateError","fields":{"err":{"__natscope":"dehydrated","type":"object","preview":"value.evilPanic {}","size":0}}}`},
		"error in a container":           {[]error{errors.New("bad")}, `[{"__natscope":"error","name":"*errors.errorString","message":"bad"}]`},
		"error whose text is not UTF-8":  {hostileError{"a\xff"}, `{"__natscope":"error","name":"value.hostileError","message":"a` + "\ufffd" + `"}`},
		"panic whose Error panics":       {evilPanic{}, `{"__natscope":"threw","message":"panic"}`},
		"panic with an error":            {panicsWith{errors.New("inner")}, `{"__natscope":"threw","message":"inner"}`},
		"panic with a value":             {panicsWith{[]int{1}}, `{"__natscope":"threw","message":"Array(1) [1]"}`},
		"map keys as numbers":            {map[int8]bool{10: true, 9: false}, `{"__natscope":"map","entries":[[9,false],[10,true]]}`},
		"map keys as unsigned numbers":   {map[uint]bool{10: true, 9: false}, `{"__natscope":"map","entries":[[9,false],[10,true]]}`},
		"map keys as floats":             {map[float64]bool{1.5: true, -2: false}, `{"__natscope":"map","entries":[[-2,false],[1.5,true]]}`},
		"map key of NaN":                 {map[float64]int{math.NaN(): 1}, `{"__natscope":"map","entries":[[{"__natscope":"number","value":"NaN"},1]]}`},
		"chan of empty structs":          {make(chan struct{}), `{"__natscope":"instance","name":"chan struct{}","fields":{"len":0,"cap":0}}`},
		"complex in a container":         {[]complex64{1i}, `[{"__natscope":"dehydrated","type":"object","preview":"complex64 {real: 0, imag: 1}","size":2}]`},
		"slog value":                     {slog.GroupValue(slog.Int("a", 1)), `{"a":1}`},
		"slog time":                      {slog.TimeValue(time.Unix(0, 0)), `{"__natscope":"date","iso":"1970-01-01T00:00:00.000Z"}`},
		"slog attribute":                 {slog.Any("k", []int{1}), `{"k":{"__natscope":"dehydrated","type":"array","preview":"Array(1) [1]","size":1}}`},
		"slog valuer in a slog value":    {slog.AnyValue(logValuer{}), ""},
		"slog valuer is not called":      {logValuer{}, `{"__natscope":"instance","name":"value.logValuer","fields":{}}`},
		"value":                          {Value{Kind: BigInt, Text: "1"}, `{"__natscope":"bigint","value":"1"}`},
		"value in a container":           {[]Value{{Kind: Array, Items: []Value{{}}, Size: 1}}, `[{"__natscope":"dehydrated","type":"array","preview":"Array(1) [null]","size":1}]`},
		"reflect.Value of nothing":       {reflect.Value{}, `{"__natscope":"instance","name":"reflect.Value","fields":{"typ_":null,"ptr":null,"flag":0}}`},
		"binary data in an object":       {map[string][]byte{"b": {1}}, `{"b":{"__natscope":"dehydrated","type":"typedarray","preview":"[]byte(1) 01","size":1,"opaque":true}}`},
		"invalid json.Number":            {jsonNumber("1 2"), `"1 2"`},
		"json.Number that is a fraction": {jsonNumber("1.50"), `1.5`},
		"json.Number out of range":       {jsonNumber("1e999"), `{"__natscope":"number","value":"Infinity"}`},
	} {
		t.Run(name, func(t *testing.T) {
			got := string(Encode(c.value))
			if c.want == "" {
				if !strings.Contains(got, "panicked") {
					t.Errorf("got %s, which does not tell of the panic", got)
				}
				return
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestOfLargeMap shows that a map beyond the scan limit is cut, not sorted as a whole.
func TestOfLargeMap(t *testing.T) {
	m := make(map[string]int)
	for i := range maxScan + 1 {
		m[fmt.Sprint(i)] = i
	}
	v := Of(m)
	if v.Kind != Object || !v.Partial || v.Size != maxScan+1 || len(v.Fields) != MaxEntries {
		t.Errorf("got %s with %d of %d fields", v.Kind, len(v.Fields), v.Size)
	}
	if got, want := Preview(Of([]any{m}).Items[0]), "{…}"; got != want {
		t.Errorf("preview %s, want %s", got, want)
	}
}

// TestOfCycles shows that values that hold themselves end.
func TestOfCycles(t *testing.T) {
	list := []any{nil}
	list[0] = list
	m := map[string]any{}
	m["m"] = m
	type node struct{ Next *node }
	n := &node{}
	n.Next = n
	var iface any
	iface = &iface
	group := make([]slog.Attr, 1)
	group[0] = slog.Attr{Key: "", Value: slog.GroupValue(group...)}
	group[0].Value = slog.GroupValue(slog.Attr{Key: "g", Value: slog.AnyValue(group)})
	for _, v := range []any{list, m, n, iface, group} {
		if got := Encode(v); len(got) > 1000 {
			t.Errorf("%T became %d bytes", v, len(got))
		}
	}
}

// TestOfBounds shows what the largest encoding of hostile values is.
func TestOfBounds(t *testing.T) {
	long := strings.Repeat("\x00", MaxString+1)
	wide := make([]any, MaxEntries+1)
	for i := range wide {
		wide[i] = hostileError{long}
	}
	if n := len(Encode(wide)); n > MaxEntries*(6*MaxString+200) {
		t.Errorf("%d bytes", n)
	}
}

func TestOfBytes(t *testing.T) {
	for want, b := range map[string][]byte{
		`[]byte(0)`:         {},
		`[]byte(3) "a\n\t"`: []byte("a\n\t"),
		`[]byte(2) 41 00`:   {'A', 0},
		"[]byte(200) \"" + strings.Repeat("é", 85) + "…": []byte(strings.Repeat("é", 100)),
	} {
		got := Of(b).Text
		if len([]rune(got)) > MaxPreview {
			t.Errorf("%q has %d characters", got, len([]rune(got)))
		}
		if !strings.HasPrefix(want, "[]byte(200)") && got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if strings.HasPrefix(want, "[]byte(200)") && (!strings.HasPrefix(got, `[]byte(200) "éé`) || strings.Contains(got, "\ufffd")) {
			t.Errorf("a cut character is shown: %s", got)
		}
	}
}
