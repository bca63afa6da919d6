// Package wiretest checks payload packages against the golden vectors in
// subjects/testdata/wire. It is for tests only; it knows no payload itself and
// starts no goroutine.
package wiretest

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sort"
	"strings"
	"testing"
)

// Case is one payload of a plane.
type Case struct {
	// Name says what the case shows.
	Name string `json:"name"`
	// T is the time of the record.
	T float64 `json:"t"`
	// Topic is the record's topic.
	Topic string `json:"topic"`
	// Data is the payload.
	Data json.RawMessage `json:"data"`
	// Error is a part of what readers say who refuse it; empty for valid payloads.
	Error string `json:"error"`
	// Odd says that the payload is valid, but not written the way producers of this contract do.
	Odd bool `json:"odd"`
}

// Cases reads a file of vectors, from the folder of a payload package.
func Cases(t testing.TB, file string) []Case {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "testdata", "wire", file))
	if err != nil {
		t.Fatal(err)
	}
	var out []Case
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if len(out) == 0 {
		t.Fatalf("%s holds no case", file)
	}
	return out
}

// Payloads checks that the valid cases, read as the payload type of their
// topic and written again, are the same JSON, and that each field of each type
// occurs in one, save those whose topic and path begin as in absent. types holds a zero payload
// for each topic. Fields below a member named children count as those of its owner.
func Payloads(t *testing.T, cases []Case, types map[string]any, absent ...string) {
	t.Helper()
	keys := make(map[string]map[string]bool)
	for _, c := range cases {
		zero, ok := types[c.Topic]
		if c.Error != "" || c.Odd {
			continue
		}
		if !ok {
			t.Errorf("%s: the topic %q has no type", c.Name, c.Topic)
			continue
		}
		v := reflect.New(reflect.TypeOf(zero))
		d := json.NewDecoder(bytes.NewReader(c.Data))
		d.DisallowUnknownFields()
		if err := d.Decode(v.Interface()); err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		again, err := json.Marshal(v.Interface())
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		if got, want := normal(t, again), normal(t, c.Data); got != want {
			t.Errorf("%s: written again it is\n%s\nwant\n%s", c.Name, got, want)
		}
		if keys[c.Topic] == nil {
			keys[c.Topic] = make(map[string]bool)
		}
		collect(t, "", c.Data, keys[c.Topic])
	}
	for topic, zero := range types {
		for _, path := range Fields(reflect.TypeOf(zero)) {
			if !keys[topic][path] && !slices.ContainsFunc(absent, func(a string) bool { return strings.HasPrefix(topic+":"+path, a) }) {
				t.Errorf("no case of the topic %q has the field %s", topic, path)
			}
		}
	}
}

// normal writes JSON with sorted members.
func normal(t testing.TB, data []byte) string {
	t.Helper()
	var v any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// collect gathers the paths of all members; array elements have the path of their array.
func collect(t testing.TB, path string, data json.RawMessage, into map[string]bool) {
	t.Helper()
	var members map[string]json.RawMessage
	if json.Unmarshal(data, &members) == nil {
		for name, x := range members {
			p := strings.TrimPrefix(path+"."+name, ".")
			into[p] = true
			p = strings.TrimSuffix(p, ".children")
			collect(t, p, x, into)
		}
		return
	}
	var elements []json.RawMessage
	if json.Unmarshal(data, &elements) == nil {
		for _, x := range elements {
			collect(t, path, x, into)
		}
	}
}

// Fields lists the JSON paths of a payload type's fields, sorted. A type that
// holds itself is followed once.
func Fields(t reflect.Type) []string {
	var out []string
	fields(t, "", map[reflect.Type]bool{}, &out)
	sort.Strings(out)
	return out
}

func fields(t reflect.Type, path string, open map[reflect.Type]bool, out *[]string) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8 {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || open[t] || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return
	}
	open[t] = true
	defer delete(open, t)
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		p := strings.TrimPrefix(path+"."+name, ".")
		*out = append(*out, p)
		fields(t.Field(i).Type, p, open, out)
	}
}
