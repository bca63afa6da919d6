package access

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// file makes a file of tokens, and returns the tokens by name.
func file(t *testing.T, grants ...Grant) (string, map[string]string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "tokens")
	tokens := make(map[string]string)
	for _, g := range grants {
		token, line, err := NewToken(g)
		if err == nil {
			err = AddLine(name, line)
		}
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(line, token) {
			t.Fatalf("the line %q holds the token", line)
		}
		tokens[g.Name] = token
	}
	return name, tokens
}

// ask sends one request through a door and returns the status and what was behind it.
func ask(d Door, path, authorization string) (status int, seen Grant, prefix, behind string) {
	h := d.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen, prefix, behind = GrantOf(r), PrefixOf(r), r.URL.Path
	}))
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Host = "127.0.0.1:9230"
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, seen, prefix, behind
}

func TestDoorWithoutTokensLetsEverybodyIn(t *testing.T) {
	for _, c := range []struct {
		role Role
		path string
		want string
	}{{"", "/json", "/json"}, {RoleView, "/json", "/json"}, {"", "/t/old/json", "/json"}} {
		status, g, _, behind := ask(Door{Grant: Grant{Role: c.role}}, c.path, "")
		want := c.role
		if want == "" {
			want = RoleDebug
		}
		if status != 200 || g.Role != want || behind != c.want || !g.Space("dev") || !g.Source("x") {
			t.Errorf("%+v: %d, %+v, %s", c, status, g, behind)
		}
	}
}

func TestDoorWithTokens(t *testing.T) {
	name, tokens := file(t, Grant{Name: "alice", Role: RoleDebug}, Grant{Name: "bob", Role: RoleView, Spaces: []string{"dev", "st*"}, Sources: []string{"orders*"}})
	ts, err := OpenTokens(name)
	if err != nil {
		t.Fatal(err)
	}
	d := Door{Tokens: ts, Open: func(p string) bool { return p == "/healthz" }}
	for _, c := range []struct {
		path, authorization string
		status              int
		who, prefix, behind string
	}{
		{"/json", "", 401, "", "", ""},
		{"/json", "Bearer " + tokens["alice"], 200, "alice", "", "/json"},
		{"/json", "bearer  " + tokens["alice"], 200, "alice", "", "/json"},
		{"/json", "Basic " + tokens["alice"], 401, "", "", ""},
		{"/json", "Bearer", 401, "", "", ""},
		{"/json", "Bearer " + tokens["alice"] + "x", 401, "", "", ""},
		{"/json?token=" + tokens["alice"], "", 401, "", "", ""},
		{"/t/" + tokens["bob"] + "/json/list", "", 200, "bob", "/t/" + tokens["bob"], "/json/list"},
		{"/t/" + tokens["bob"] + "/", "", 200, "bob", "/t/" + tokens["bob"], "/"},
		// What is relative to the page at the root has to stay below the token.
		{"/t/" + tokens["bob"], "", 307, "", "", ""},
		{"/t/wrong/json", "", 401, "", "", ""},
		{"/t//json", "", 401, "", "", ""},
		{"/t/" + strings.Repeat("a", 10_000) + "/", "", 401, "", "", ""},
		// A wrong token in the path is not made good by a right one elsewhere.
		{"/t/wrong/json", "Bearer " + tokens["alice"], 401, "", "", ""},
		{"/healthz", "", 200, "", "", "/healthz"},
	} {
		status, g, prefix, behind := ask(d, c.path, c.authorization)
		if status != c.status || g.Name != c.who || prefix != c.prefix || behind != c.behind {
			t.Errorf("%.60s %.30s: %d %q %.20q %q", c.path, c.authorization, status, g.Name, prefix, behind)
		}
	}
	_, open, _, _ := ask(d, "/healthz", "")
	if open.Space("dev") || open.Controls() {
		t.Errorf("a path that needs no token grants %+v", open)
	}
	_, bob, _, _ := ask(d, "/", "Bearer "+tokens["bob"])
	if bob.Controls() || !bob.Space("dev") || !bob.Space("staging") || bob.Space("prod") || !bob.Source("orders-2") || bob.Source("payments") || !bob.Narrow() {
		t.Errorf("%+v", bob)
	}
	if (Grant{}).Space("dev") || (Grant{Role: "root"}).Space("dev") || (Grant{Role: "root"}).Controls() {
		t.Error("a grant without a known role allows something")
	}
}

// Tokens must not be in logs, whatever was turned away.
func TestDoorLogsNoTokens(t *testing.T) {
	name, tokens := file(t, Grant{Name: "alice", Role: RoleView, Spaces: []string{"other"}})
	ts, _ := OpenTokens(name)
	var log bytes.Buffer
	d := Door{Tokens: ts, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	for _, path := range []string{"/t/almostright/json", "/json", "/t/" + tokens["alice"] + "x/json/\x1b[31m",
		"//t/" + tokens["alice"] + "/json", "/T/" + tokens["alice"] + "/json", "/natscope/t/" + tokens["alice"], "/x/" + tokens["alice"], "/natscope/t//almostright"} {
		if status, _, _, _ := ask(d, strings.ReplaceAll(path, "\x1b", "%1b"), ""); status != 401 {
			t.Errorf("%s: %d", path, status)
		}
	}
	if _, _, _, behind := ask(d, "/json", "Bearer secretsecret"); behind != "" {
		t.Error("let in")
	}
	for _, secret := range []string{tokens["alice"], "almostright", "secretsecret", "\x1b"} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("the log holds %q:\n%s", secret, log.String())
		}
	}
	if !strings.Contains(log.String(), "turned away") {
		t.Errorf("the log tells nothing: %q", log.String())
	}
}

func TestTokensAreWithdrawn(t *testing.T) {
	name, tokens := file(t, Grant{Name: "alice", Role: RoleDebug}, Grant{Name: "bob", Role: RoleView})
	ts, _ := OpenTokens(name)
	var holds func() bool
	h := Door{Tokens: ts}.Middleware(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { holds = Holds(r) }))
	r := httptest.NewRequest(http.MethodGet, "http://localhost/", nil)
	r.Header.Set("Authorization", "Bearer "+tokens["alice"])
	h.ServeHTTP(httptest.NewRecorder(), r)
	if holds == nil || !holds() {
		t.Fatal("alice has no access")
	}
	within(t, "a change of the role ends what the old one gave", func() bool { return !holds() }, func() {
		change(t, name, "name=alice role=debug", "name=alice role=view")
	})
	within(t, "alice is in with the new role", func() bool { g, ok := ts.Grant(tokens["alice"]); return ok && g.Role == RoleView }, nil)
	within(t, "a broken file lets nobody in", func() bool { _, ok := ts.Grant(tokens["bob"]); return !ok && errors.Is(ts.Err(), ErrTokens) }, func() {
		change(t, name, "role=view", "roll=view")
	})
	within(t, "a mended file lets bob in again", func() bool { _, ok := ts.Grant(tokens["bob"]); return ok }, func() {
		change(t, name, "roll=view", "role=view")
	})
	within(t, "a deleted file lets nobody in", func() bool { _, ok := ts.Grant(tokens["bob"]); return !ok && errors.Is(ts.Err(), os.ErrNotExist) }, func() {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	})
}

func change(t *testing.T, name, old, now string) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil || !bytes.Contains(data, []byte(old)) {
		t.Fatalf("%s: %v", data, err)
	}
	if err := os.WriteFile(name, bytes.ReplaceAll(data, []byte(old), []byte(now)), 0o600); err != nil {
		t.Fatal(err)
	}
}

func within(t *testing.T, what string, f func() bool, do func()) {
	t.Helper()
	if do != nil {
		do()
	}
	for end := time.Now().Add(10 * time.Second); !f(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

func TestTokenFilesThatAreRefused(t *testing.T) {
	_, line, err := NewToken(Grant{Name: "alice", Role: RoleView})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"secret name=a role=view":                "line 1",
		"\n# x\n" + line + "\n" + line:           "twice",
		line + " space=dev":                      "space",
		strings.Replace(line, "view", "root", 1): "view or debug",
		line + " sources=[":                      "pattern",
		line + " sources=":                       "pattern",
		"sha256:00 name=a role=view":             "hexadecimal",
		strings.Fields(line)[0]:                  "name",
	} {
		if _, err := parseTokens([]byte(text)); !errors.Is(err, ErrTokens) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	for _, g := range []Grant{{Role: RoleView}, {Name: "a b", Role: RoleView}, {Name: "a"}, {Name: "a", Role: RoleView, Sources: []string{"a,b"}}} {
		if _, _, err := NewToken(g); !errors.Is(err, ErrTokens) {
			t.Errorf("%+v: %v", g, err)
		}
	}
	name, _ := file(t, Grant{Name: "alice", Role: RoleView})
	_, again, _ := NewToken(Grant{Name: "alice", Role: RoleDebug})
	if err := AddLine(name, again); !errors.Is(err, ErrTokens) {
		t.Errorf("a second alice: %v", err)
	}
	if _, err := OpenTokens(name); err != nil {
		t.Errorf("the file is spoiled: %v", err)
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v: others can read the file", info.Mode(), err)
	}
}

func FuzzTokens(f *testing.F) {
	_, line, _ := NewToken(Grant{Name: "a", Role: RoleView, Spaces: []string{"dev"}, Sources: []string{"x*", "y"}})
	f.Add([]byte(line))
	f.Add([]byte("# nothing\n\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := parseTokens(data)
		if err != nil && !errors.Is(err, ErrTokens) {
			t.Errorf("%v", err)
		}
		for _, e := range entries {
			if e.grant.check() != nil {
				t.Errorf("%+v was read", e.grant)
			}
		}
	})
}
