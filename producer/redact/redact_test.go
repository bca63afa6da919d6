package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
)

func compile(t testing.TB, r Rules) *Redactor {
	t.Helper()
	out, err := r.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestNothing(t *testing.T) {
	r := compile(t, Rules{})
	if r != nil || r.InBodies() || r.Concerns("application/json") {
		t.Error("no rules are rules")
	}
	if r.Text("a") != "a" || r.Header("Authorization", "x") != "x" || r.URL("/?token=1") != "/?token=1" {
		t.Error("no rules change something")
	}
	if out, changed, ok := r.Body("application/json", true, []byte("{")); string(out) != "{" || changed || !ok {
		t.Error("no rules change a body")
	}
	if out, changed := r.Message([]byte("{"), true); string(out) != "{" || changed {
		t.Error("no rules change a message")
	}
}

// vectors are what this package and producer/client/shared/redact.js agree upon.
type vectors struct {
	Secrets Rules
	Headers struct {
		Rules Rules
		Cases [][3]string
	}
	URLs, Texts [][2]string
	Bodies      struct {
		Rules Rules
		Cases []struct {
			Name, ContentType, Body, Want string
			Base64, Encoded, Withheld     bool
		}
	}
	Messages []struct {
		Data, Want string
		Cut        bool
	}
	Bad []Rules
}

func readVectors(t *testing.T) (v vectors) {
	t.Helper()
	data, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	if len(v.Headers.Cases) < 10 || len(v.URLs) < 10 || len(v.Texts) < 10 || len(v.Bodies.Cases) < 30 || len(v.Messages) < 5 || len(v.Bad) < 4 {
		t.Fatal("vectors are missing")
	}
	return v
}

func TestVectors(t *testing.T) {
	v := readVectors(t)
	if !reflect.DeepEqual(v.Secrets, Secrets()) {
		t.Error("the vectors have other rules than Secrets")
	}
	r := compile(t, Secrets().And(v.Headers.Rules))
	for _, c := range v.Headers.Cases {
		if got := r.Header(c[0], c[1]); got != c[2] {
			t.Errorf("%s: %s gives %q, want %q", c[0], c[1], got, c[2])
		}
	}
	for _, c := range v.URLs {
		if got := r.URL(c[0]); got != c[1] {
			t.Errorf("%s gives %s, want %s", c[0], got, c[1])
		}
	}
	for _, c := range v.Texts {
		if got := r.Text(c[0]); got != c[1] {
			t.Errorf("%s gives %s, want %s", c[0], got, c[1])
		}
	}
	r = compile(t, v.Bodies.Rules)
	for _, c := range v.Bodies.Cases {
		body, want := []byte(c.Body), []byte(c.Want)
		if c.Base64 {
			var err1, err2 error
			body, err1 = base64.StdEncoding.DecodeString(c.Body)
			want, err2 = base64.StdEncoding.DecodeString(c.Want)
			if err := errors.Join(err1, err2); err != nil {
				t.Fatal(err)
			}
		}
		out, changed, ok := r.Body(c.ContentType, c.Encoded, body)
		if ok == c.Withheld || !bytes.Equal(out, want) || changed != !bytes.Equal(want, body) {
			t.Errorf("%s: %q, changed %t, ok %t, want %q", c.Name, out, changed, ok, want)
		}
	}
	for _, c := range v.Messages {
		if out, changed := r.Message([]byte(c.Data), c.Cut); string(out) != c.Want || changed != (c.Want != c.Data) {
			t.Errorf("message %q gives %q, changed %t, want %q", c.Data, out, changed, c.Want)
		}
	}
	for _, bad := range v.Bad {
		if _, err := bad.Compile(); !errors.Is(err, ErrRules) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// FuzzJSON holds redacted JSON to JSON, and looks for secrets in it.
func FuzzJSON(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"password":"x"}],"b":{"password":{"c":1}}}`))
	f.Add([]byte("{\"password\":1}\n[{\"PASSWORD\":2}] 3"))
	r := compile(f, Rules{JSON: []string{"password"}})
	f.Fuzz(func(t *testing.T, data []byte) {
		out, changed, ok := r.Body("application/json", false, data)
		if !ok {
			return
		}
		if !changed && !bytes.Equal(out, data) {
			t.Fatal("changed without a word")
		}
		var check func(v any)
		check = func(v any) {
			switch v := v.(type) {
			case []any:
				for _, x := range v {
					check(x)
				}
			case map[string]any:
				for k, x := range v {
					if plain(k) == "password" && x != Mark {
						t.Fatalf("%q leaves %v", out, x)
					}
					check(x)
				}
			}
		}
		for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
			var v any
			if err := dec.Decode(&v); err != nil {
				if strings.Contains(err.Error(), "out of range") || strings.Contains(err.Error(), "cannot unmarshal") {
					return // numbers that float64 does not hold
				}
				t.Fatalf("%q from %q: %v", out, data, err)
			}
			check(v)
		}
	})
}

func BenchmarkJSON(b *testing.B) {
	r := compile(b, Secrets())
	body := []byte(`{"items":[` + strings.Repeat(`{"sku":"mug","price":12.5,"token":"abcdef"},`, 200) + `{}]}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, ok := r.Body("application/json", false, body); !ok {
			b.Fatal("withheld")
		}
	}
}
