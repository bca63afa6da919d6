package cdpgw

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/natscope/natscope/cdpgw/access"
)

// guarded serves a state to the holders of tokens.
func guarded(t *testing.T, m *memory, grants ...access.Grant) (server *httptest.Server, c *script, tokens map[string]string, file string) {
	t.Helper()
	file, tokens = filepath.Join(t.TempDir(), "tokens"), make(map[string]string)
	for _, g := range grants {
		token, line, err := access.NewToken(g)
		if err == nil {
			err = access.AddLine(file, line)
		}
		if err != nil {
			t.Fatal(err)
		}
		tokens[g.Name] = token
	}
	ts, err := access.OpenTokens(file)
	if err != nil {
		t.Fatal(err)
	}
	c = newScript()
	_, server = serve(t, m, func(o *Options) { o.Tokens, o.Commander, o.Gateway = ts, c, "gw" })
	return server, c, tokens, file
}

// under is a server as the holder of a token addresses it.
func under(s *httptest.Server, token string) *httptest.Server {
	return &httptest.Server{URL: s.URL + access.TokenPath + token}
}

func body(t *testing.T, url string) (int, string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// Without a token there is neither a list, nor a page, nor a connection.
func TestNothingWithoutToken(t *testing.T) {
	server, _, _, _ := guarded(t, shop(t), access.Grant{Name: "a", Role: access.RoleView})
	for _, path := range []string{"/", "/page.js", "/sources.json", "/history.json?source=orders", "/frontend/x", "/json", "/json/list", "/json/version", "/json/protocol", "/devtools/page/dev", "/t/x/json/list"} {
		if status, text := body(t, server.URL+path); status != http.StatusUnauthorized || strings.Contains(text, "orders") {
			t.Errorf("%s: %d %.80s", path, status, text)
		}
	}
	if _, resp, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(server.URL, "http")+targetPath+"dev", nil); err == nil || resp == nil || resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("a connection without a token: %v, %v", resp, err)
	}
}

// Routes that nobody put a door before give nothing away.
func TestRoutesWithoutADoor(t *testing.T) {
	g, _ := serve(t, shop(t))
	server := httptest.NewServer(g.Routes())
	t.Cleanup(server.Close)
	if status, text := body(t, server.URL+"/json/list"); status != http.StatusOK || strings.TrimSpace(text) != "[]" {
		t.Errorf("%d %s", status, text)
	}
	if status, _ := body(t, server.URL+"/"); status != http.StatusForbidden {
		t.Errorf("the page: %d", status)
	}
	if _, resp, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(server.URL, "http")+targetPath+"dev", nil); err == nil || resp.StatusCode != http.StatusForbidden {
		t.Errorf("a connection: %v", err)
	}
}

// A token for some sources shows these, everywhere, and no others.
func TestGrantNarrowsSources(t *testing.T) {
	m := editableShop(t)
	server, _, tokens, _ := guarded(t, m, access.Grant{Name: "all", Role: access.RoleDebug}, access.Grant{Name: "page", Role: access.RoleDebug, Sources: []string{"pa*"}},
		access.Grant{Name: "elsewhere", Role: access.RoleDebug, Spaces: []string{"prod"}})
	var all, some []listing
	for name, out := range map[string]*[]listing{"all": &all, "page": &some} {
		_, text := body(t, under(server, tokens[name]).URL+"/json/list")
		if err := json.Unmarshal([]byte(text), out); err != nil {
			t.Fatal(err)
		}
	}
	if len(all) < 3 || len(some) != 2 || some[1].ID != "dev.page" {
		t.Errorf("%d targets for all, and %+v", len(all), some)
	}
	if want := "/t/" + tokens["page"] + "/devtools/page/dev/page"; !strings.HasSuffix(some[1].WebSocketDebuggerURL, want) || !strings.HasSuffix(some[1].DevtoolsFrontendURL, want) {
		t.Errorf("the links do not carry the token: %+v", some[1])
	}
	if _, text := body(t, under(server, tokens["page"]).URL+"/sources.json"); !strings.Contains(text, "dev/page") || strings.Contains(text, "dev/orders") {
		t.Errorf("the page of links: %s", text)
	}
	c := dial(t, under(server, tokens["page"]), "dev")
	c.call("Runtime.enable", nil, nil)
	c.call("Network.enable", nil, nil)
	c.call("Page.getResourceTree", nil, nil)
	c.call("DOM.getDocument", map[string]any{"depth": -1}, nil)
	seen, _, _ := c.snapshot()
	for _, x := range seen {
		if strings.Contains(string(x.raw), "orders") {
			t.Errorf("a source that may not be seen: %.300s", x.raw)
		}
	}
	for path, name := range map[string]string{"dev/orders": "page", "dev": "elsewhere", "dev/page": "elsewhere"} {
		_, resp, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(under(server, tokens[name]).URL, "http")+targetPath+path, nil)
		if err == nil || resp.StatusCode != http.StatusForbidden {
			t.Errorf("%s as %s: %v", path, name, err)
		}
	}
}

// The role view changes nothing, and says so; the role debug does, under the name of its holder.
func TestRoleViewOnlyLooks(t *testing.T) {
	server, script, tokens, _ := guarded(t, editableShop(t), access.Grant{Name: "eve", Role: access.RoleView}, access.Grant{Name: "dan", Role: access.RoleDebug})
	edit := func(token string) received {
		c := dial(t, under(server, token), "dev/page")
		c.call("DOM.enable", nil, nil)
		c.call("DOM.getDocument", map[string]any{"depth": -1}, nil)
		var found struct {
			SearchID    string `json:"searchId"`
			ResultCount int    `json:"resultCount"`
		}
		c.call("DOM.performSearch", map[string]any{"query": "<Cart"}, &found)
		var results struct {
			NodeIDs []int `json:"nodeIds"`
		}
		c.call("DOM.getSearchResults", map[string]any{"searchId": found.SearchID, "fromIndex": 0, "toIndex": 1}, &results)
		answer, _ := c.do("DOM.setAttributeValue", map[string]any{"nodeId": results.NodeIDs[0], "name": "count", "value": "5"})
		return answer
	}
	if a := edit(tokens["eve"]); a.Error == nil || !strings.Contains(a.Error.Message, "role") {
		t.Errorf("an edit with the role view: %s", a.raw)
	}
	if len(script.sent) != 0 || len(script.audited) != 0 {
		t.Errorf("the source heard of it: %+v", script.sent)
	}
	if a := edit(tokens["dan"]); a.Error != nil {
		t.Errorf("an edit with the role debug: %s", a.raw)
	}
	if len(script.audited) != 1 || !strings.HasPrefix(script.audited[0].Who, "dan at ") {
		t.Errorf("the audit: %+v", script.audited)
	}
}

// A token that is withdrawn ends the connections that it let in, with a reason, and no others.
func TestWithdrawnTokenEndsConnections(t *testing.T) {
	server, _, tokens, file := guarded(t, shop(t), access.Grant{Name: "eve", Role: access.RoleView}, access.Grant{Name: "dan", Role: access.RoleDebug})
	eve, dan := dial(t, under(server, tokens["eve"]), "dev"), dial(t, under(server, tokens["dan"]), "dev")
	eve.sync()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var rest []string
	for line := range strings.Lines(string(data)) {
		if !strings.Contains(line, "name=eve") {
			rest = append(rest, line)
		}
	}
	if err := os.WriteFile(file, []byte(strings.Join(rest, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	var gone detachedEvent
	eve.event(0, "Inspector.detached", &gone)
	if gone.Reason != reasonRevoked {
		t.Errorf("the reason is %q", gone.Reason)
	}
	dan.sync()
}

// One client cannot take all connections, and all together not more than the gateway bears.
func TestConnectionsAreBounded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	tokens := make(map[string]string)
	for _, name := range []string{"a", "b"} {
		token, line, err := access.NewToken(access.Grant{Name: name, Role: access.RoleView})
		if err == nil {
			err = access.AddLine(file, line)
		}
		if err != nil {
			t.Fatal(err)
		}
		tokens[name] = token
	}
	ts, err := access.OpenTokens(file)
	if err != nil {
		t.Fatal(err)
	}
	_, server := serve(t, shop(t), func(o *Options) { o.Tokens, o.MaxConnections, o.MaxPerToken = ts, 3, 2 })
	try := func(name string) (*websocket.Conn, int) {
		ws, resp, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(under(server, tokens[name]).URL, "http")+targetPath+"dev", nil)
		if err != nil {
			return nil, resp.StatusCode
		}
		t.Cleanup(func() { _ = ws.Close() })
		return ws, resp.StatusCode
	}
	first, _ := try("a")
	for i, c := range []struct {
		name string
		want int
	}{{"a", 101}, {"a", 429}, {"b", 101}, {"b", 503}} {
		if _, got := try(c.name); got != c.want {
			t.Errorf("connection %d, of %s: %d, want %d", i+2, c.name, got, c.want)
		}
	}
	_ = first.Close()
	deadline := time.Now().Add(patience)
	for got := 0; got != 101; {
		if _, got = try("b"); time.Now().After(deadline) {
			t.Fatalf("the place of a connection that ended is not free: %d", got)
		}
	}
}

// With the role view, no command of DevTools makes a source do anything that can
// change it, whatever its parameters: every method of the gateway is tried.
func TestRoleViewTriesEverything(t *testing.T) {
	server, script, tokens, _ := guarded(t, editableShop(t), access.Grant{Name: "eve", Role: access.RoleView})
	c := dial(t, under(server, tokens["eve"]), "dev/page")
	for _, domain := range []string{"DOM", "Runtime", "Network", "Overlay", "CSS", "Log", "Debugger"} {
		c.do(domain+".enable", nil)
	}
	c.call("DOM.getDocument", map[string]any{"depth": -1}, nil)
	names := slices.Sorted(maps.Keys(methods))
	for _, name := range names {
		if name == "DOM.disable" || name == "Page.close" {
			continue
		}
		for node := 1; node <= 8; node++ {
			c.do(name, map[string]any{
				"nodeId": node, "backendNodeId": node, "name": "count", "value": "5", "text": `count="5"`, "nodeName": "Cart", "symbol": "count", "highlightConfig": map[string]any{},
				"mode": "searchForNode", "expression": "1", "functionDeclaration": "function(){}", "requestId": "1", "objectId": "1", "outerHTML": "<a>",
			})
		}
	}
	script.mu.Lock()
	defer script.mu.Unlock()
	for _, x := range script.sent {
		if x.method.Changes() {
			t.Errorf("the role view sent %s %s", x.method, x.params)
		}
	}
	if len(script.audited) > 0 {
		t.Errorf("the audit says that it changed something: %+v", script.audited)
	}
	if len(script.sent) == 0 {
		t.Error("no command at all reached the source, so that nothing was tried")
	}
}
