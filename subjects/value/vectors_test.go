package value

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/big"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

// vector is one line of testdata/wire/values.json; its README says what the fields mean.
type vector struct {
	Name    string          `json:"name"`
	JS      *string         `json:"js"`
	Go      *string         `json:"go"`
	Encoded json.RawMessage `json:"encoded"`
	Again   json.RawMessage `json:"again"`
	Preview string          `json:"preview"`
}

func vectors(t testing.TB) []vector {
	t.Helper()
	data, err := os.ReadFile("../testdata/wire/values.json")
	if err != nil {
		t.Fatal(err)
	}
	var out []vector
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

type point struct {
	X int
	y string
}

type holder struct {
	Err   error
	inner error
}

type stamped struct {
	_  int
	at time.Time
}

type loud struct{ N int }

func (loud) MarshalJSON() ([]byte, error) { panic("MarshalJSON was called") }
func (loud) MarshalText() ([]byte, error) { panic("MarshalText was called") }
func (loud) String() string               { panic("String was called") }
func (loud) GoString() string             { panic("GoString was called") }
func (loud) LogValue() slog.Value         { panic("LogValue was called") }

type panicking struct{}

func (panicking) Error() string { panic("no message") }

func namedFunction() {}

type self *self

func count(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func wideMap[K comparable](key func(int) K) map[K]int {
	out := make(map[K]int)
	for i := range 101 {
		out[key(i)] = i
	}
	return out
}

// wideStruct has one field more than are kept.
func wideStruct() any {
	fields := make([]reflect.StructField, MaxEntries+1)
	for i := range fields {
		fields[i] = reflect.StructField{Name: fmt.Sprintf("F%d", i), Type: reflect.TypeFor[int]()}
	}
	v := reflect.New(reflect.StructOf(fields)).Elem()
	for i := range fields {
		v.Field(i).SetInt(int64(i))
	}
	return v.Interface()
}

// goValues holds the Go values of the vectors by name.
func goValues() map[string]any {
	seven := 7
	var circle self
	circle = &circle
	channel := make(chan int, 3)
	channel <- 1
	digits, _ := new(big.Int).SetString("123456789012345678901234567890", 10)
	at := time.Date(2024, 5, 1, 10, 20, 30, 40e6, time.UTC)
	var noPointer *point
	var noSlice []int
	var noMap map[string]int
	var noFunc func()
	circular := map[string]any{"n": 1}
	circular["self"] = circular
	ring := []any{1, nil}
	ring[1] = ring
	loop := map[int]any{1: "x"}
	loop[2] = loop
	cached := make(map[int]int)
	for i := range MaxEntries {
		cached[i] = i
	}
	return map[string]any{
		"smallest number": math.SmallestNonzeroFloat64, "largest number": math.MaxFloat64,
		"number that JavaScript writes with an exponent": 1e21, "number that JavaScript still writes out": 123456789012345680000.0,
		"integer beyond 2^53 in a double":       9007199254740992.0,
		"bigint of a thousand digits":           new(big.Int).Exp(big.NewInt(10), big.NewInt(999), nil),
		"special numbers in an array":           []float64{math.NaN(), math.Copysign(0, -1), math.Inf(1), math.Inf(-1)},
		"special numbers as keys":               map[float64]int{math.NaN(): 1, math.Inf(-1): 2, 0: 3},
		"dates in an object":                    map[string]time.Time{"a": time.Unix(0, 0), "b": time.Unix(9e12, 0)},
		"surrogates in a name":                  map[string]int{"a\xff": 1},
		"names that are the same when repaired": map[string]int{"\ufffd": 1, "\xff": 2},
		"long string in an object":              map[string]string{"s": strings.Repeat("x", 10001)},
		"long string as a key":                  map[any]int{strings.Repeat("x", 10001): 1},
		"long name":                             map[string]int{strings.Repeat("k", 10001): 1},
		"names that are the same when cut":      map[string]int{strings.Repeat("k", 10001): 1, strings.Repeat("k", 10002): 2},
		"long message":                          errors.New(strings.Repeat("x", 10001)),
		"longest whole message":                 errors.New(strings.Repeat("x", 10000)),
		"error in an array":                     []error{errors.New("it broke\nbadly")},
		"error in a preview":                    [][]error{{errors.New("a long message that does not fit into a preview")}},
		"array of arrays of arrays":             [][][]int{{{1}}, {{}}},
		"wide array in an array":                [][]int{count(101)},
		"array of exactly five in an array":     [][]int{{1, 2, 3, 4, 5}, {1, 2, 3, 4, 5, 6}},
		"object that holds itself":              circular, "array that holds itself": ring, "map that holds itself": loop,
		"map with bool keys":                  map[bool]int{false: 0, true: 1},
		"map of maps":                         map[int]map[int]int{1: {2: 3}},
		"instance of a class with 101 fields": wideStruct(),
		"exactly as wide as may be":           map[string]map[int]int{"m": cached},

		"null": nil, "true": true, "false": false, "zero": 0, "integer": -42, "fraction": 1.5,
		"tiny number": 1e-7, "huge number": 1e300,
		"NaN": math.NaN(), "Infinity": math.Inf(1), "-Infinity": math.Inf(-1), "-0": math.Copysign(0, -1),
		"safe integer": int64(safeInteger), "wide bigint": int64(-9007199254740993),
		"empty string": "", "string": "héllo \"world\" \U0001F600", "control characters": "a\x00\n\t\u2028<&>",
		"longest whole string": strings.Repeat("x", 10000), "long string": strings.Repeat("x", 10001),
		"date":                  at,
		"date beyond year 9999": time.Unix(253402300800, 0),
		"invalid date":          time.Unix(9e12, 0),
		"empty array":           []int{}, "array": []any{1, "two", nil, true}, "array of six": []int{1, 2, 3, 4, 5, 6},
		"widest whole array": count(100), "wide array": count(101),
		"empty object":                         map[string]any{},
		"object":                               map[string]any{"n": 1, "a b": nil, "s": "x"},
		"object with the tag as a key":         map[string]any{Tag: "undefined", "a": 1},
		"object with an empty name":            map[string]int{"": 1},
		"object with a member named __proto__": map[string]int{"__proto__": 1},
		"wide object":                          wideMap(func(i int) string { return fmt.Sprintf("k%03d", i) }),
		"empty map":                            map[int]string{},
		"map":                                  map[int]string{1: "one", 2: "two"},
		"wide map":                             wideMap(func(i int) int { return i }),
		"containers in an object": map[string]any{
			"a": map[string]int{"x": 1}, "b": []any{1, map[string]int{"y": 2}, []int{}}, "c": map[string]int{}, "d": []int{}},
		"long string in a preview": [][]string{{strings.Repeat("x", 31), strings.Repeat("y", 30)}},
		"preview that is too long": map[string][]string{"a": strings.Split(strings.Repeat(strings.Repeat("z", 30)+" ", 4)+strings.Repeat("z", 30), " ")},
		"odd names in a preview":   []map[string]int{{"$ok": 2, "a-b": 1}},

		"nil interface": error(nil), "nil pointer": noPointer, "nil slice": noSlice, "nil map": noMap, "nil func": noFunc,
		"nil error in a struct":                     holder{inner: nil},
		"uint64 beyond 2^53":                        uint64(math.MaxUint64),
		"big.Int":                                   digits,
		"float32":                                   float32(0.1),
		"complex":                                   complex(1, -2.5),
		"invalid UTF-8":                             "a\xffb",
		"duration":                                  1500 * time.Millisecond,
		"Go error":                                  errors.New("it broke"),
		"error that panics":                         panicking{},
		"struct":                                    point{1, "two"},
		"pointer to a struct":                       &point{1, "two"},
		"struct without a name":                     struct{ A int }{1},
		"struct in a slice":                         []any{point{1, "two"}, &point{1, "two"}, noPointer},
		"pointer to an int":                         &seven,
		"map with struct keys":                      map[point]int{{1, "a"}: 1, {2, "b"}: 2},
		"map with mixed keys":                       map[any]int{true: 3, 2: 2, "a": 1},
		"bytes of text":                             []byte("hello"),
		"bytes":                                     []byte{0, 0xff, 0x10},
		"array of bytes":                            [4]byte{1, 2, 3, 4},
		"Go function":                               namedFunction,
		"channel":                                   channel,
		"json.RawMessage":                           json.RawMessage(`{"b":[{"c":1}],"a":1}`),
		"json.Number":                               json.Number("12345678901234567890"),
		"json.RawMessage that is no JSON":           json.RawMessage(`{x`),
		"json.RawMessage with the tag":              json.RawMessage(`{"__natscope":"undefined"}`),
		"slog attributes with a name twice":         []slog.Attr{slog.Int("a", 1), slog.Int("a", 2)},
		"marshalers are not called":                 loud{1},
		"long string of wide characters":            strings.Repeat("é", 10001),
		"pointer that points to itself":             circle,
		"time in another zone":                      time.Date(2024, 5, 1, 10, 20, 30, 123456789, time.FixedZone("", 2*60*60)),
		"time that no JavaScript date can hold":     time.Unix(-9e12, 0),
		"struct with a time in an unexported field": stamped{at: at},
		"slog attributes": []slog.Attr{slog.Int("z", 1), slog.Group("a", "x", "y"), slog.Duration("d", 2*time.Second),
			slog.Group("", slog.Bool("inline", true)), {}},
	}
}

func TestVectors(t *testing.T) {
	values := goValues()
	used := make(map[string]bool)
	for _, v := range vectors(t) {
		t.Run(v.Name, func(t *testing.T) {
			parsed, err := Parse(v.Encoded)
			if err != nil {
				t.Fatal(err)
			}
			again := v.Encoded
			if v.Again != nil {
				again = v.Again
			}
			if got := Append(nil, parsed); !sameJSON(t, got, again) {
				t.Errorf("encoded again it is\n%s\nwant\n%s", got, again)
			}
			if got := Preview(parsed); got != v.Preview {
				t.Errorf("preview\n%s\nwant\n%s", got, v.Preview)
			}
			if v.Go == nil {
				return
			}
			x, ok := values[*v.Go]
			if !ok {
				t.Fatalf("no Go value is named %q", *v.Go)
			}
			used[*v.Go] = true
			if got := Encode(x); !sameJSON(t, got, v.Encoded) {
				t.Errorf("encoded\n%s\nwant\n%s", got, v.Encoded)
			}
			if got := Of(x); !reflect.DeepEqual(got, parsed) {
				t.Errorf("Of gives %+v, Parse %+v", got, parsed)
			}
		})
	}
	for name := range values {
		if !used[name] {
			t.Errorf("the Go value %q belongs to no vector", name)
		}
	}
}

// sameJSON compares two JSON texts with the order of their members.
func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	return bytes.Equal(canonical(t, a), canonical(t, b))
}

func canonical(t *testing.T, data []byte) []byte {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	var out bytes.Buffer
	for {
		token, err := d.Token()
		if err == io.EOF {
			return out.Bytes()
		}
		if err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		fmt.Fprintf(&out, "%T %v\n", token, token)
	}
}

func TestVectorsAreWellNamed(t *testing.T) {
	seen := make(map[string]bool)
	for _, v := range vectors(t) {
		if v.Name == "" || seen[v.Name] {
			t.Errorf("name %q is empty or there twice", v.Name)
		}
		seen[v.Name] = true
	}
}
