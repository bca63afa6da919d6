package embedded

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// routes are all paths that a natscope listener answers.
var routes = []string{
	"/", "/page.js", "/sources.json", "/history.json?source=x", "/frontend/x", "/json", "/json/list", "/json/version", "/json/protocol", "/devtools/page/dev", "/devtools/node/dev/x",
	"/ingest", "/client.js", "/client/client.js", "/metrics", "/healthz", "/readyz", "/api/v1/sources", "/api/v1/openapi.json", "/api/v1/watch", "/mcp", "/anything",
}

// raw sends a request as it is written and returns the status line and the headers of the answer.
func raw(t *testing.T, addr, request string) (status int, header http.Header) {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := conn.Write([]byte(request)); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("%q: %v", request, err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode, resp.Header
}

// Case J1: a web page whose name was made to point at this machine reaches nothing, on any route.
func TestHostileHostsOnEveryRoute(t *testing.T) {
	i := startTest(t, Options{})
	for _, path := range routes {
		for _, host := range []string{"evil.test", "evil.test:9230", "127.0.0.1.evil.test", "2130706433", "localhost.evil.test", "evil.test\r\nHost: localhost"} {
			status, header := raw(t, i.Addr(), "GET "+path+" HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n")
			// Two Host headers are no request at all.
			if status != http.StatusForbidden && (!strings.Contains(host, "\n") || status != http.StatusBadRequest) {
				t.Errorf("%s with Host %q: %d", path, host, status)
			}
			if header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s with Host %q: CORS headers", path, host)
			}
		}
		for _, host := range []string{"127.0.0.1", "localhost", "[::1]", "localhost."} {
			if status, _ := raw(t, i.Addr(), "GET "+path+" HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n"); status == http.StatusForbidden {
				t.Errorf("%s with Host %q is refused", path, host)
			}
		}
	}
}

// Cases J2 and J6: a web page of elsewhere opens no connection, and neither reads
// nor posts anything, with a form or a script.
func TestForeignPagesOnEveryRoute(t *testing.T) {
	i := startTest(t, Options{})
	for _, origin := range []string{"http://evil.test", "null", "http://127.0.0.1:1", "devtools://other", "file://"} {
		for _, path := range []string{"/devtools/page/dev", "/devtools/page/dev/x", "/devtools/node/dev/x", "/ingest"} {
			status, _ := raw(t, i.Addr(), "GET "+path+" HTTP/1.1\r\nHost: "+i.Addr()+"\r\nOrigin: "+origin+"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
			if status == http.StatusSwitchingProtocols && path != "/ingest" || status == http.StatusOK {
				t.Errorf("a WebSocket to %s from %s: %d", path, origin, status)
			}
		}
		for _, path := range []string{"/api/v1/sources", "/api/v1/evaluate", "/api/v1/edit", "/mcp"} {
			for _, kind := range []string{"application/x-www-form-urlencoded", "text/plain", "multipart/form-data; boundary=x", "application/json"} {
				for _, method := range []string{"POST", "GET"} {
					status, header := raw(t, i.Addr(), method+" "+path+" HTTP/1.1\r\nHost: "+i.Addr()+"\r\nOrigin: "+origin+"\r\nContent-Type: "+kind+"\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
					if status < 400 {
						t.Errorf("%s %s (%s) from %s: %d", method, path, kind, origin, status)
					}
					if header.Get("Access-Control-Allow-Origin") != "" {
						t.Errorf("%s answers %s with CORS headers", path, origin)
					}
				}
			}
		}
		status, header := raw(t, i.Addr(), "OPTIONS /api/v1/sources HTTP/1.1\r\nHost: "+i.Addr()+"\r\nOrigin: "+origin+"\r\nAccess-Control-Request-Method: POST\r\nConnection: close\r\n\r\n")
		if header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("a preflight from %s: %d with CORS headers", origin, status)
		}
	}
}

// No listener gives away the insides of the process.
func TestNoDebugRoutes(t *testing.T) {
	i := startTest(t, Options{Admin: "127.0.0.1:0"})
	for _, addr := range []string{i.Addr(), i.Admin()} {
		for _, path := range []string{"/debug/pprof/", "/debug/pprof/profile", "/debug/pprof/heap", "/debug/vars", "/debug/requests"} {
			if status, _ := raw(t, addr, "GET "+path+" HTTP/1.1\r\nHost: "+addr+"\r\nConnection: close\r\n\r\n"); status != http.StatusNotFound {
				t.Errorf("%s on %s: %d", path, addr, status)
			}
		}
	}
	for _, path := range []string{"/", "/json/list", "/sources.json", "/devtools/page/dev", "/api/v1/sources", "/mcp"} {
		if status, _ := raw(t, i.Admin(), "GET "+path+" HTTP/1.1\r\nHost: "+i.Admin()+"\r\nConnection: close\r\n\r\n"); status != http.StatusNotFound {
			t.Errorf("the operators' listener answers %s: %d", path, status)
		}
	}
}

// Every row of the threat model names tests, and they are there.
func TestThreatModelHasItsTests(t *testing.T) {
	doc, err := os.ReadFile("../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| T\d+ \|.*$`).FindAllString(string(doc), -1)
	if len(rows) < 15 {
		t.Fatalf("the threat model has %d rows", len(rows))
	}
	for _, row := range rows {
		tests := regexp.MustCompile("`([a-z0-9/_-]+)\\.(Test\\w+)`").FindAllStringSubmatch(row, -1)
		if len(tests) == 0 {
			t.Errorf("no test in the row %.80s", row)
		}
		for _, m := range tests {
			if !hasTest(t, "../"+m[1], m[2]) {
				t.Errorf("%s has no %s, which the row %.80s names", m[1], m[2], row)
			}
		}
	}
}

func hasTest(t *testing.T, dir, name string) bool {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		if !strings.HasSuffix(e.Name(), "_test.go") {
			return false
		}
		data, err := os.ReadFile(dir + "/" + e.Name())
		return err == nil && strings.Contains(string(data), fmt.Sprintf("func %s(", name))
	})
}

// Case J8: a name that people need, as in Kubernetes, is reached when it is
// configured, on every route, and neither its neighbours nor the names below it are.
func TestConfiguredNames(t *testing.T) {
	i := startTest(t, Options{Hosts: []string{"natscope.local"}})
	for _, path := range routes {
		for host, want := range map[string]bool{"natscope.local": true, "NATSCOPE.local:80": true, "natscope.local.": true, "other.local": false, "x.natscope.local": false, "natscope.local.evil.test": false} {
			status, _ := raw(t, i.Addr(), "GET "+path+" HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n")
			if (status != http.StatusForbidden) != want {
				t.Errorf("%s with Host %q: %d", path, host, status)
			}
		}
	}
	// Its own pages are no strangers there.
	if status, _ := raw(t, i.Addr(), "GET /devtools/page/dev HTTP/1.1\r\nHost: natscope.local\r\nOrigin: http://natscope.local\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"); status != http.StatusSwitchingProtocols {
		t.Errorf("a WebSocket of the configured name: %d", status)
	}
}
