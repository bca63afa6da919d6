package repl

import (
	"strings"
	"testing"

	"github.com/dop251/goja"
)

// evaluate runs inputs one after the other and returns the last result.
func evaluate(t *testing.T, vm *goja.Runtime, inputs ...string) goja.Value {
	t.Helper()
	var out goja.Value
	for _, in := range inputs {
		s, err := Rewrite(in)
		if err != nil {
			t.Fatalf("%s: %v", in, err)
		}
		v, err := vm.RunString(s.Code)
		if err != nil {
			t.Fatalf("%s as %s: %v", in, s.Code, err)
		}
		if s.Await {
			p, ok := v.Export().(*goja.Promise)
			if !ok || p.State() != goja.PromiseStateFulfilled {
				t.Fatalf("%s as %s: %v", in, s.Code, v)
			}
			v = goja.Undefined()
			if o, ok := p.Result().(*goja.Object); ok {
				v = o.Get("v")
			}
		}
		out = v
	}
	return out
}

func TestRewrite(t *testing.T) {
	for _, c := range []struct {
		want   string
		inputs []string
	}{
		{"2", []string{"let x = 1", "let x = 2", "x"}},
		{"3", []string{"const {a, b: [c], ...d} = {a: 1, b: [2], e: 9}", "a + c"}},
		{"7", []string{"class A { v() { return 7 } } new A().v()"}},
		{"8", []string{"class A { v() { return 7 } }", "class A { v() { return 8 } }", "new A().v()"}},
		{"1", []string{"await 1"}},
		{"3", []string{"const a = await 1, b = await (2)", "a + b"}},
		{"undefined", []string{"let z; await 1", "z"}},
		{"[object Promise]", []string{"await 1; (Promise.resolve(3))"}},
		{"6", []string{"await 1;\n(5)\n+ (1) ;"}},
		{"4", []string{"let n = 0; for (const i of [1, 3]) n += await i; n"}},
		{"5", []string{"f(); await 1; function f() { return 5 }", "f()"}},
		{"11", []string{"var [q] = await [11]; q"}},
		{"1", []string{"await 1; // no more"}},
		{"é", []string{"let s = 'ü'; let r = 'é'", "r"}},
		{"1", []string{"let ü = await 1; let b = 2", "ü"}},
	} {
		if got := evaluate(t, goja.New(), c.inputs...); got.String() != c.want {
			t.Errorf("%q gives %s, want %s", c.inputs, got, c.want)
		}
	}
}

func TestNamesAndColumns(t *testing.T) {
	s, err := Rewrite("const [a, {b = 2}] = [1, {}]; let c\nclass D {}\nvar e")
	if err != nil || strings.Join(s.Names, " ") != "a b c D" {
		t.Errorf("%q, %v", s.Names, err)
	}
	if s, _ := Rewrite("let x = boom()"); strings.Index(s.Code, "boom") != strings.Index("let x = boom()", "boom") {
		t.Errorf("the column moved: %s", s.Code)
	}
}

// DevTools lets people write on only behind these very messages.
func TestIncompleteInput(t *testing.T) {
	for src, want := range map[string]string{
		"function f(a) {": "Unexpected end of input",
		"f(1,":            "Unexpected end of input",
		"`a ${":           "Unterminated template literal",
		"if (1) {":        "Unexpected end of input",
		"a +":             "Unexpected end of input",
		"await f(":        "Unexpected end of input",
	} {
		_, err := Rewrite(src)
		if e, ok := err.(*SyntaxError); !ok || e.Message != want {
			t.Errorf("%s: %v, want %s", src, err, want)
		}
	}
	if _, err := Rewrite("a b"); err == nil || strings.Contains(err.Error(), "end of input") {
		t.Error(err)
	}
}

func TestDeepSourcesAreRefused(t *testing.T) {
	for name, src := range deepSources(500_000) {
		if err := CheckDepth(src); err == nil {
			t.Errorf("%s: not refused", name)
		}
	}
	// What may be run must be safe to parse and to compile.
	for name, src := range deepSources(900) {
		if CheckDepth(src) == nil {
			_, _ = goja.Compile(name, src, false)
		}
	}
	long := "[" + strings.Repeat("{a:1,b:[2,3]},", 900) + "]"
	if _, err := Rewrite(long); err != nil {
		t.Errorf("an ordinary long literal: %v", err)
	}
}

func deepSources(n int) map[string]string {
	out := make(map[string]string)
	for _, s := range []string{"(", "[", "{", "!", "-", "typeof ", "new ", "if(1)", "x=>", "a?", "a?b:", "a=", "1+", "a.b", "`${", "await ", "a,", "else ", "{a:", "f(", "a??", "- -", "for(;;)", "function f(){", "async ", "l:", "a**", "class extends "} {
		out[s] = strings.Repeat(s, n/len(s))
	}
	return out
}

func FuzzRewrite(f *testing.F) {
	for _, s := range []string{"let x = 1", "await 1", "const {a} = await b; a", "class A{}", "})();(async()=>{", "await (1)\n;", "let a=await 1,b;(a)", "`${await 1}`", "await 1 //", "await 1 /* ) */", "let\nx"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		s, err := Rewrite(src)
		if err != nil {
			if e, ok := err.(*SyntaxError); !ok || e.Message == "" {
				t.Fatalf("%q: %v is no SyntaxError with a message", src, err)
			}
			return
		}
		if _, err := goja.Compile("", s.Code, false); err != nil {
			if _, before := goja.Compile("", src, false); before == nil {
				t.Fatalf("%q became %q, which does not compile: %v", src, s.Code, err)
			}
		}
	})
}
