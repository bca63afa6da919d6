package value

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestParseRefuses(t *testing.T) {
	for name, c := range map[string]struct{ data, says string }{
		"nothing":                       {``, "not JSON"},
		"no JSON":                       {`{`, "not JSON"},
		"two values":                    {`1 2`, "not JSON"},
		"number without a value":        {`{"__natscope":"number"}`, "value is missing"},
		"number of another value":       {`{"__natscope":"number","value":"5"}`, "none of NaN"},
		"number that is a number":       {`{"__natscope":"number","value":5}`, "not a string"},
		"bigint without digits":         {`{"__natscope":"bigint","value":"-"}`, "no integer"},
		"bigint with a letter":          {`{"__natscope":"bigint","value":"1n"}`, "no integer"},
		"empty bigint":                  {`{"__natscope":"bigint","value":""}`, "no integer"},
		"date without iso":              {`{"__natscope":"date"}`, "iso is missing"},
		"date as a number":              {`{"__natscope":"date","iso":1}`, "not a string"},
		"error without a message":       {`{"__natscope":"error","name":"E"}`, "message is missing"},
		"error with an odd stack":       {`{"__natscope":"error","name":"E","message":"","stack":[]}`, "stack is not a string"},
		"map without entries":           {`{"__natscope":"map"}`, "entries is missing"},
		"map with a triple":             {`{"__natscope":"map","entries":[[1,2],[1,2,3]]}`, "entry 1 is not a pair"},
		"map with a number":             {`{"__natscope":"map","entries":5}`, "not an array"},
		"set without values":            {`{"__natscope":"set"}`, "values is missing"},
		"string with a negative length": {`{"__natscope":"string","head":"","length":-1}`, "no count"},
		"string with a fraction":        {`{"__natscope":"string","head":"","length":1.5}`, "no count"},
		"instance without fields":       {`{"__natscope":"instance","name":"x"}`, "fields is missing"},
		"instance with odd fields":      {`{"__natscope":"instance","name":"x","fields":[]}`, "not an object"},
		"partial of a number":           {`{"__natscope":"partial","value":1,"size":1}`, "not a container"},
		"partial of a partial":          {`{"__natscope":"partial","value":{"__natscope":"partial","value":[],"size":1},"size":1}`, "not a container"},
		"partial without a size":        {`{"__natscope":"partial","value":[]}`, "size is missing"},
		"partial without a value":       {`{"__natscope":"partial","size":1}`, "value is missing"},
		"object with a number as name":  {`{"__natscope":"object","entries":[[1,2]]}`, "not a string"},
		"a bad marker inside":           {`{"a":[0,{"__natscope":"date"}]}`, `in "a": in element 1: date marker`},
		"a bad value of an instance":    {`{"__natscope":"instance","name":"x","fields":{"f":{"__natscope":"set"}}}`, `in "f": set marker`},
		"too deep":                      {strings.Repeat("[", 40) + strings.Repeat("]", 40), "more than 32 levels"},
		"deep enough for a stack":       {strings.Repeat("[", 1<<20) + strings.Repeat("]", 1<<20), ""},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := Parse(json.RawMessage(c.data))
			if !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %+v, %v; want an error that says %q", v, err, c.says)
			}
		})
	}
}

func TestParseTolerates(t *testing.T) {
	for name, c := range map[string]struct {
		data string
		want Value
	}{
		"space":                    {" [ 1 , { } ] ", Value{Kind: Array, Size: 2, Items: []Value{{Kind: Number, Text: "1"}, {Kind: Object}}}},
		"unknown fields":           {`{"x":{},"__natscope":"undefined"}`, Value{Kind: Undefined}},
		"a field twice":            {`{"__natscope":"symbol","value":"a","value":"b"}`, Value{Kind: Symbol, Text: "b"}},
		"a number out of range":    {`1e999`, Value{Kind: Number, Text: "Infinity"}},
		"a wide integer":           {`9007199254740993`, Value{Kind: Number, Text: "9007199254740992"}},
		"a number written oddly":   {`1.50e1`, Value{Kind: Number, Text: "15"}},
		"minus zero":               {`-0`, Value{Kind: Number, Text: "-0"}},
		"a size that is too small": {`{"__natscope":"partial","value":[1],"size":0}`, Value{Kind: Array, Size: 1, Partial: true, Items: []Value{{Kind: Number, Text: "1"}}}},
		"invalid UTF-8":            {"\"a\xff\"", Value{Kind: String, Text: "a\ufffd"}},
		"negative bigint":          {`{"__natscope":"bigint","value":"-1"}`, Value{Kind: BigInt, Text: "-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(json.RawMessage(c.data))
			if err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v, %v; want %+v", got, err, c.want)
			}
		})
	}
}

// addVectors seeds a fuzz test; the long vectors would only slow it down.
func addVectors(f *testing.F) {
	for _, v := range vectors(f) {
		if len(v.Encoded) < 1000 {
			f.Add([]byte(v.Encoded))
		}
	}
}

// FuzzValueParse shows that no data make the parser panic, and that what it
// reads is stable: written and read again it is the same value.
func FuzzValueParse(f *testing.F) {
	addVectors(f)
	f.Add([]byte(`{"__natscope":"map","entries":[[{"__natscope":"object","entries":[["a",1]]},{}]]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := Parse(data)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatalf("%v wraps no ErrMalformed", err)
			}
			return
		}
		written := Append(nil, v)
		if !json.Valid(written) || !utf8.Valid(written) {
			t.Fatalf("%q was written as %q", data, written)
		}
		again, err := Parse(written)
		if err != nil {
			if strings.Contains(err.Error(), "levels") {
				return // a marker around an object adds levels
			}
			t.Fatalf("%q was written as %q, which is refused: %v", data, written, err)
		}
		if !reflect.DeepEqual(v, again) {
			t.Fatalf("%q was read as %+v, then as %+v", data, v, again)
		}
		if p := Preview(v); !utf8.ValidString(p) || utf8.RuneCountInString(p) > MaxPreview || strings.ContainsAny(p, "\r\n") {
			t.Fatalf("%q has the preview %q", data, p)
		}
	})
}

// FuzzRawMessage shows that an application's JSON is encoded to valid values, whatever it is.
func FuzzRawMessage(f *testing.F) {
	addVectors(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, x := range []any{json.RawMessage(data), []any{json.RawMessage(data)}, string(data), data, map[string]any{string(data): json.Number(data)}} {
			b := Encode(x)
			v, err := Parse(b)
			if err != nil {
				t.Fatalf("%q was encoded as %q: %v", data, b, err)
			}
			if got := Of(x); !reflect.DeepEqual(got, v) {
				t.Fatalf("%q: Of gives %+v, Parse %+v", data, got, v)
			}
		}
	})
}
