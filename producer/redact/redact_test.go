package redact

import (
	"bytes"
	"encoding/json"
	"errors"
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

func TestHeaders(t *testing.T) {
	r := compile(t, Secrets().And(Rules{Headers: []string{"x-tenant"}}))
	for _, c := range [][3]string{
		{"authorization", "Bearer abc", "Bearer [redacted]"},
		{"Authorization", "abc", "[redacted]"},
		{"COOKIE", "a=1; b=2;c", "a=[redacted]; b=[redacted];[redacted]"},
		{"Set-Cookie", "sid=31=d; Path=/; HttpOnly", "sid=[redacted]; Path=/; HttpOnly"},
		{"X-Tenant", "acme", "[redacted]"},
		{"Location", "https://a.test/cb?state=1&code=xyz#top", "https://a.test/cb?state=1&code=[redacted]#top"},
		{"X-Debug", "jwt eyJhbGciOiJI.eyJzdWIiOiIx.c2ln", "jwt [redacted]"},
		{"Accept", "*/*", "*/*"},
	} {
		if got := r.Header(c[0], c[1]); got != c[2] {
			t.Errorf("%s: %s gives %q, want %q", c[0], c[1], got, c[2])
		}
	}
}

func TestURL(t *testing.T) {
	r := compile(t, Secrets())
	for in, want := range map[string]string{
		"https://a.test/x":                        "https://a.test/x",
		"https://a.test/x?a=1&access_token=s&b":   "https://a.test/x?a=1&access_token=[redacted]&b",
		"/x?accessToken=s&Access-Token=t":         "/x?accessToken=[redacted]&Access-Token=[redacted]",
		"/x?user%5Bpassword%5D=s&tokens=1":        "/x?user%5Bpassword%5D=[redacted]&tokens=1",
		"/keys/AKIAABCDEFGHIJKLMNOP/x?%zz=1&sig=": "/keys/[redacted]/x?%zz=1&sig=[redacted]",
	} {
		if got := r.URL(in); got != want {
			t.Errorf("%s gives %s, want %s", in, got, want)
		}
	}
}

func TestBodies(t *testing.T) {
	r := compile(t, Rules{JSON: []string{"password", "card.number", "users.*.token"}, Query: []string{"pin"}, Patterns: []string{`s3cr3t-\d+`}})
	for _, c := range []struct {
		name, contentType, body, want string
		encoded, withheld             bool
	}{
		{name: "members", contentType: "application/json; charset=utf-8", body: ` {"user":"ada", "Pass_Word" : {"old":"x"} ,"n":1.50}` + "\n",
			want: ` {"user":"ada", "Pass_Word" : "[redacted]" ,"n":1.50}` + "\n"},
		{name: "paths", contentType: "application/json", body: `{"card":{"number":12,"name":"a"},"number":3,"users":[{"x":{"token":"a"},"token":"b"}]}`,
			want: `{"card":{"number":"[redacted]","name":"a"},"number":3,"users":[{"x":{"token":"[redacted]"},"token":"b"}]}`},
		{name: "arrays and depth", contentType: "application/vnd.api+json", body: `[[{"a":[{"password":null},{"password":[1,{"x":2}]}]}]]`,
			want: `[[{"a":[{"password":"[redacted]"},{"password":"[redacted]"}]}]]`},
		{name: "lines", contentType: "application/x-ndjson", body: "{\"password\":1}\n{\"password\":\"\\\"}\"}\n", want: "{\"password\":\"[redacted]\"}\n{\"password\":\"[redacted]\"}\n"},
		{name: "escaped names", contentType: "application/json", body: `{"p\u0061ssword":"x"}`, want: `{"p\u0061ssword":"[redacted]"}`},
		{name: "unlabelled", contentType: "text/plain", body: `{"password":"x"}`, want: `{"password":"[redacted]"}`},
		{name: "broken", contentType: "application/json", body: `{"password":"x"`, withheld: true},
		{name: "broken and unlabelled", contentType: "", body: `{"password":"x`, withheld: true},
		{name: "text in brackets", contentType: "text/plain", body: "[info] started", want: "[info] started"},
		{name: "a pattern", contentType: "text/html", body: "<p>s3cr3t-42</p>", want: "<p>[redacted]</p>"},
		{name: "a pattern in JSON", contentType: "application/json", body: `{"a":"s3cr3t-1"}`, want: `{"a":"[redacted]"}`},
		{name: "bytes", contentType: "application/octet-stream", body: "\xff\x00s3cr3t-7\xfe", want: "\xff\x00[redacted]\xfe"},
		{name: "a picture", contentType: "image/png", body: "\x89PNG s3cr3t-7", want: "\x89PNG s3cr3t-7"},
		{name: "a drawing", contentType: "image/svg+xml", body: "<svg>s3cr3t-7", want: "<svg>[redacted]"},
		{name: "a form", contentType: "application/x-www-form-urlencoded", body: "a=1&PIN=1234&b=s3cr3t-5", want: "a=1&PIN=[redacted]&b=[redacted]"},
		{name: "a multipart form", contentType: "multipart/form-data; boundary=x", body: "--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--x--", want: "--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--x--"},
		{name: "a multipart form with a secret", contentType: "multipart/form-data; boundary=x", body: "--x\r\nContent-Disposition: form-data; name=\"Pin\"\r\n\r\n1\r\n--x--", withheld: true},
		{name: "encoded", contentType: "application/json", body: "\x1f\x8b", encoded: true, withheld: true},
		{name: "nothing", contentType: "application/json", encoded: true},
	} {
		out, changed, ok := r.Body(c.contentType, c.encoded, []byte(c.body))
		if ok == c.withheld || string(out) != c.want || changed != (c.want != c.body) {
			t.Errorf("%s: %q, changed %t, ok %t, want %q", c.name, out, changed, ok, c.want)
		}
	}
	if out, changed := r.Message([]byte(`{"password":1}`), false); string(out) != `{"password":"[redacted]"}` || !changed {
		t.Errorf("message %q", out)
	}
	for _, m := range []struct {
		data string
		cut  bool
	}{{`{"password":1`, false}, {"s3cr", true}} {
		if out, changed := r.Message([]byte(m.data), m.cut); string(out) != Mark || !changed {
			t.Errorf("message %q gives %q", m.data, out)
		}
	}
}

func TestBadRules(t *testing.T) {
	for _, r := range []Rules{{JSON: []string{"a..b"}}, {JSON: []string{"*"}}, {Patterns: []string{"("}}, {Patterns: []string{"a*"}}} {
		if _, err := r.Compile(); !errors.Is(err, ErrRules) {
			t.Errorf("%+v: %v", r, err)
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
