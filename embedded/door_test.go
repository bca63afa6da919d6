package embedded

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/natscope/natscope/cdpgw/access"
)

// tokens makes a file with one token.
func tokens(t *testing.T, role access.Role) (*access.Tokens, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tokens")
	token, line, err := access.NewToken(access.Grant{Name: "a", Role: role})
	if err == nil {
		err = access.AddLine(file, line)
	}
	if err != nil {
		t.Fatal(err)
	}
	ts, err := access.OpenTokens(file)
	if err != nil {
		t.Fatal(err)
	}
	return ts, token
}

// Case J4: nothing listens beyond this machine without tokens and TLS.
func TestDoorsThatAreRefused(t *testing.T) {
	ts, _ := tokens(t, access.RoleView)
	for name, o := range map[string]Options{
		"no host":             {HTTPAddr: ":0"},
		"all interfaces":      {HTTPAddr: "0.0.0.0:0"},
		"all of IPv6":         {HTTPAddr: "[::]:0"},
		"tokens without TLS":  {HTTPAddr: "0.0.0.0:0", Tokens: ts},
		"TLS without tokens":  {HTTPAddr: "0.0.0.0:0", TLS: &tls.Config{}},
		"a proxy, no tokens":  {HTTPAddr: "127.0.0.1:0", BehindProxy: true},
		"a name of elsewhere": {HTTPAddr: "example.com:0"},
	} {
		o.NATSAddr = "127.0.0.1:0"
		i, err := Start(context.Background(), o)
		if err == nil {
			closeTest(t, i)
		}
		if !errors.Is(err, ErrUnsafe) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, o := range map[string]Options{"a role that is none": {Role: "root"}, "an external address that is none": {External: "tools.example"}} {
		o.HTTPAddr, o.NATSAddr = "127.0.0.1:0", "127.0.0.1:0"
		if i, err := Start(context.Background(), o); err == nil {
			closeTest(t, i)
			t.Errorf("%s was accepted", name)
		}
	}
}

// A gateway for others serves HTTPS, to holders of tokens.
func TestGatewayForOthers(t *testing.T) {
	// The test server lends its certificate.
	lender := httptest.NewTLSServer(http.NotFoundHandler())
	defer lender.Close()
	ts, token := tokens(t, access.RoleView)
	i, err := Start(t.Context(), Options{
		HTTPAddr: "0.0.0.0:0", NATSAddr: "127.0.0.1:0", Tokens: ts, TLS: &tls.Config{Certificates: lender.TLS.Certificates, NextProtos: []string{"http/1.1"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer closeTest(t, i)
	_, port, _ := strings.Cut(strings.ReplaceAll(i.Addr(), "[::]", "0.0.0.0"), ":")
	roots := x509.NewCertPool()
	roots.AddCert(lender.Certificate())
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	defer client.CloseIdleConnections()
	for path, want := range map[string]int{"/json/list": 401, "/": 401, "/t/" + token + "/json/list": 200, "/t/" + token + "/": 200, "/client.js": 200, "/healthz": 200, "/readyz": 200} {
		resp, err := client.Get("https://127.0.0.1:" + port + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %s, want %d", path, resp.Status, want)
		}
	}
	if want := "https://127.0.0.1:" + port[strings.LastIndexByte(port, ':')+1:]; i.HTTP() != want {
		t.Errorf("the address that is printed is %s, which nobody can use; want %s", i.HTTP(), want)
	}
	if got := reachable("[::]:9230", []string{"tools.example"}); got != "tools.example:9230" {
		t.Error(got)
	}
	if !strings.HasPrefix(i.HTTP(), "https://") || !strings.Contains(i.DevTools(), "?wss=") {
		t.Errorf("%s, %s", i.HTTP(), i.DevTools())
	}
}

func TestExternalAddress(t *testing.T) {
	ts, token := tokens(t, access.RoleView)
	i := startTest(t, Options{BehindProxy: true, External: "https://tools.example/natscope/", Tokens: ts})
	if got := i.DevTools(); got != "devtools://devtools/bundled/devtools_app.html?wss=tools.example/natscope/devtools/page/dev" {
		t.Error(got)
	}
	r, _ := http.NewRequest(http.MethodGet, "http://"+i.Addr()+"/t/"+token+"/json/list", nil)
	r.Host = "tools.example"
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("the external name is refused: %s", resp.Status)
	}
}
