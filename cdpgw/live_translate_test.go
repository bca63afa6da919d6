package cdpgw

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

var testTranslator = translator{prefix: "o:a:7:", context: 7, script: func(id string) ScriptID { return ScriptID("s" + id) }}

func TestTranslate(t *testing.T) {
	for in, want := range map[string]string{
		`{"result":{"type":"object","objectId":"1"}}`: `{"result":{"type":"object","objectId":"o:a:7:1"}}`,
		// The user's own data has no ids of ours, whatever its members are called.
		`{"result":{"type":"object","value":{"objectId":"1","scriptId":"2","value":{"objectId":"3"}}}}`:                                                                                 ``,
		`{"result":[{"name":"value","value":{"type":"object","objectId":"1","value":{"objectId":"9"}},"get":{"objectId":"2"},"symbol":{"objectId":"3"}}]}`:                              `{"result":[{"name":"value","value":{"type":"object","objectId":"o:a:7:1","value":{"objectId":"9"}},"get":{"objectId":"o:a:7:2"},"symbol":{"objectId":"o:a:7:3"}}]}`,
		`{"internalProperties":[{"name":"[[FunctionLocation]]","value":{"type":"object","subtype":"internal#location","value":{"scriptId":"5","lineNumber":3}}}]}`:                      `{"internalProperties":[{"name":"[[FunctionLocation]]","value":{"type":"object","subtype":"internal#location","value":{"scriptId":"s5","lineNumber":3}}}]}`,
		`{"exceptionDetails":{"scriptId":"5","executionContextId":1,"exception":{"objectId":"2"},"stackTrace":{"callFrames":[{"scriptId":"6"}]},"exceptionMetaData":{"objectId":"4"}}}`: `{"exceptionDetails":{"scriptId":"s5","executionContextId":7,"exception":{"objectId":"o:a:7:2"},"stackTrace":{"callFrames":[{"scriptId":"s6"}]},"exceptionMetaData":{"objectId":"4"}}}`,
		`{"result":{"preview":{"properties":[{"name":"objectId","value":"5","objectId":"1"}]},"objectId":"1"}}`:                                                                         `{"result":{"preview":{"properties":[{"name":"objectId","value":"5","objectId":"1"}]},"objectId":"o:a:7:1"}}`,
		`{"callFrames":[{"scopeChain":[{"type":"local","object":{"objectId":"1"}}],"this":{"objectId":"2"}}]}`:                                                                          `{"callFrames":[{"scopeChain":[{"type":"local","object":{"objectId":"o:a:7:1"}}],"this":{"objectId":"o:a:7:2"}}]}`,
		`{"result":{"description":"\"objectId\":\"1\" \\","objectId":"a\"b"}}`:                                                                                                          `{"result":{"description":"\"objectId\":\"1\" \\","objectId":"o:a:7:a\"b"}}`,
		" { \"result\" : [ 1 , true ,null ] } ": `{"result":[1,true,null]}`,
		`{}`:                                    ``, `[]`: ``, `"x"`: ``, `7`: ``,
		// What is not JSON is left alone.
		`{"result":`: ``, `{"objectId":1}`: ``, `{"a" 1}`: ``, `{"a":"\`: ``, ``: ``, `{"a":1`: ``, `[1 2]`: ``,
	} {
		if want == "" {
			want = in
		}
		if got := string(testTranslator.translate(json.RawMessage(in))); got != want {
			t.Errorf("%s\n became %s\n want   %s", in, got, want)
		}
	}
	deep := strings.Repeat("[", 10_000)
	if got := testTranslator.translate(json.RawMessage(deep)); string(got) != deep {
		t.Error("what nests too deep is changed")
	}
}

func FuzzTranslate(f *testing.F) {
	f.Add([]byte(`{"result":[{"name":"a","value":{"type":"object","objectId":"1","subtype":"internal#location","value":{"scriptId":"2"}}}],"executionContextId":3}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		out := testTranslator.translate(in)
		if json.Valid(in) != json.Valid(out) {
			t.Errorf("%s became %s", in, out)
		}
		// Without the ids, it is the same text.
		plain := translator{}
		if json.Valid(in) {
			var a, b bytes.Buffer
			_ = json.Compact(&a, in)
			_ = json.Compact(&b, plain.translate(in))
			if a.String() != b.String() {
				t.Errorf("%s became %s", a.String(), b.String())
			}
		}
	})
}

func TestObjectIDs(t *testing.T) {
	at := liveAt{realmOf: realmOf{"a-1", gen1}, context: 5}
	if o, ok := parseLiveObject(ObjectID(at.prefix() + "x:y:z")); !ok || o != (liveObject{"a-1", 5, "x:y:z"}) {
		t.Errorf("%+v, %v", o, ok)
	}
	for _, bad := range []ObjectID{"", "o", "o:a:5:", "o:A:5:1", "o:a:x:1", "p:a:5:1", "record:a:5:1"} {
		if _, ok := parseLiveObject(bad); ok {
			t.Errorf("%q is one", bad)
		}
	}
}

func BenchmarkTranslate(b *testing.B) {
	var in bytes.Buffer
	in.WriteString(`{"result":[`)
	for i := range 2000 {
		if i > 0 {
			in.WriteByte(',')
		}
		in.WriteString(`{"name":"property","value":{"type":"object","className":"Order","description":"*main.Order","objectId":"12345","preview":{"type":"object","description":"&Order{…}","overflow":false,"properties":[{"name":"ID","type":"number","value":"5"},{"name":"Items","type":"object","value":"[]Item(2)","subtype":"array"}]}},"writable":true,"configurable":true,"enumerable":true,"isOwn":true}`)
	}
	in.WriteString(`]}`)
	b.Run("walk", func(b *testing.B) {
		b.SetBytes(int64(in.Len()))
		b.ReportAllocs()
		for b.Loop() {
			testTranslator.translate(in.Bytes())
		}
	})
	b.Run("check only", func(b *testing.B) { // what encoding/json takes to look at it once
		b.SetBytes(int64(in.Len()))
		for b.Loop() {
			json.Valid(in.Bytes())
		}
	})
}
