package httpcap

import (
	"fmt"
	"net/http"
	"testing"
)

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		pattern, s string
		want       bool
	}{
		{"/api/*", "/api/", true}, {"/api/*", "/api", false}, {"*", "", true}, {"", "", true}, {"", "x", false},
		{"*.png", "/a/b.png", true}, {"/a*b*c", "/aXbYc", true}, {"/a*b*c", "/acb", false}, {"a*a", "a", false}, {"ab*ba", "aba", false},
		{"**", "x", true}, {"*.internal:*", "db.internal:5432", true}, {"exact", "exact", true}, {"exact", "exactly", false},
	} {
		if got := match(c.pattern, c.s); got != c.want {
			t.Errorf("%q matches %q: %t", c.pattern, c.s, got)
		}
	}
}

func TestRules(t *testing.T) {
	for _, c := range []struct {
		rules Rules
		url   string
		want  bool
	}{
		{Rules{}, "http://a.test/x", true},
		{Rules{Hosts: []string{"*.test"}}, "http://A.test:81/x", true},
		{Rules{Hosts: []string{"a.test:80"}}, "http://a.test:81/x", false},
		{Rules{NotHosts: []string{"a.test"}}, "http://a.test:81/x", false},
		{Rules{Hosts: []string{"[::1]:*"}}, "http://[::1]:81/x", true},
		{Rules{Paths: []string{"/api/*"}, NotPaths: []string{"*/health"}}, "http://a.test/api/orders", true},
		{Rules{Paths: []string{"/api/*"}, NotPaths: []string{"*/health"}}, "http://a.test/API/health", false},
		{Rules{Paths: []string{"/api/*"}}, "http://a.test/", false},
		{Rules{Share: 1}, "http://a.test/", true},
		{Rules{Share: 1e-12}, "http://a.test/", false},
	} {
		req, err := http.NewRequest("GET", c.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.rules.want(req, req.URL.Host); got != c.want {
			t.Errorf("%+v wants %s: %t", c.rules, c.url, got)
		}
	}
	r := Rules{Types: []string{"application/*", "text/*"}, NotTypes: []string{"*zip"}}
	for mediaType, want := range map[string]bool{"application/json": true, "application/zip": false, "image/png": false, "": false} {
		if r.wantBody(mediaType) != want {
			t.Errorf("bodies of %q: %t", mediaType, !want)
		}
	}
}

// TestShare holds sampling to its share, and all requests of a trace together.
func TestShare(t *testing.T) {
	r := Rules{Share: 0.25}
	kept := map[string]int{"traced": 0, "untraced": 0}
	for i := range 4000 {
		req, err := http.NewRequest("GET", "http://a.test/", nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.want(req, "a.test") {
			kept["untraced"]++
		}
		req.Header.Set("Traceparent", fmt.Sprintf("00-%032x-00f067aa0ba902b7-01", i))
		first := r.want(req, "a.test")
		if first {
			kept["traced"]++
		}
		for range 3 {
			if r.want(req, "a.test") != first {
				t.Fatal("two requests of one trace are treated differently")
			}
		}
	}
	for kind, n := range kept {
		if n < 800 || n > 1200 {
			t.Errorf("%d of 4000 %s requests were kept", n, kind)
		}
	}
}
