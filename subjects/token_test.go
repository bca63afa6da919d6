package subjects

import (
	"errors"
	"strings"
	"testing"
)

// tokenCase is one line of tokens.json.
type tokenCase struct {
	Name  string `json:"name"`
	Token string `json:"token"`
}

func TestTokenVectors(t *testing.T) {
	cases := golden[tokenCase](t, "tokens.json")
	if *updateGolden {
		for i := range cases {
			cases[i].Token = Token(cases[i].Name)
		}
		writeGolden(t, "tokens.json", cases)
	}
	names := make(map[string]string)
	for _, c := range cases {
		got := Token(c.Name)
		if got != c.Token {
			t.Errorf("%.80q becomes %s, want %s", c.Name, got, c.Token)
		}
		if !IsToken(got) {
			t.Errorf("%.80q becomes %q, which is no token", c.Name, got)
		}
		if other, ok := names[got]; ok {
			t.Errorf("%.80q and %.80q both become %s", c.Name, other, got)
		}
		names[got] = c.Name
	}
}

// TestTokenCaseH6 is case H6: names that break keys elsewhere are each listed separately.
func TestTokenCaseH6(t *testing.T) {
	seen := make(map[string]string)
	for _, name := range []string{"a.b", "a b", "a:b", "服务", "*", ">", "", strings.Repeat("x", 5000), "a..b", "A", "a", "a@b", "a~b", "\xff", "\xfe"} {
		token := Token(name)
		if !IsToken(token) {
			t.Errorf("%.20q becomes %q", name, token)
		}
		if other, ok := seen[token]; ok {
			t.Errorf("%.20q and %.20q are the same source", name, other)
		}
		seen[token] = name
	}
}

func TestIsToken(t *testing.T) {
	for s, want := range map[string]bool{
		"a": true, "0-_z": true, strings.Repeat("a", 64): true,
		"": false, "A": false, "a.b": false, "a b": false, "é": false, "*": false, ">": false, "a\x00": false, strings.Repeat("a", 65): false,
	} {
		if IsToken(s) != want {
			t.Errorf("IsToken(%q) is %v", s, !want)
		}
		if err := checkToken("level", s); (err == nil) != want || !want && !errors.Is(err, ErrToken) {
			t.Errorf("checkToken(%q) gives %v", s, err)
		}
	}
}

// FuzzToken shows that every name becomes a token, and no two names the same one.
func FuzzToken(f *testing.F) {
	f.Add("orders", "Orders")
	f.Add("a b", "a.b")
	f.Add("", "n")
	f.Add(Token("A"), "A")
	f.Fuzz(func(t *testing.T, a, b string) {
		x, y := Token(a), Token(b)
		if !IsToken(x) || !IsToken(y) {
			t.Fatalf("%q and %q become %q and %q", a, b, x, y)
		}
		if (a == b) != (x == y) {
			t.Fatalf("%q and %q become %q and %q", a, b, x, y)
		}
		if Token(a) != x {
			t.Fatalf("%q becomes another token each time", a)
		}
		if IsToken(a) && !looksMapped(a) && x != a {
			t.Fatalf("the token %q becomes %q", a, x)
		}
		if (x != a) != looksMapped(x) {
			t.Fatalf("%q becomes %q, which does not say whether it was mapped", a, x)
		}
	})
}
