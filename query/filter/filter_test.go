package filter

import (
	"errors"
	"os"
	"strings"
	"testing"
)

func request() *Item {
	return &Item{
		What: WhatRequest, Source: "shop", Method: "POST", URL: "http://shop:80/api/orders?x=1", Host: "shop:80", Path: "/api/orders",
		Status: 503, State: "finished", Failed: true, Duration: 1500, Text: "POST http://shop:80/api/orders?x=1",
	}
}

func TestMatch(t *testing.T) {
	node := &Item{What: WhatNode, Name: "Worker", Kind: "worker", Attrs: map[string]string{"state": "stuck", "n": "12"}, Values: map[string]any{"jobs": 3.0, "busy": true, "last": "order 7"}}
	for _, tt := range []struct {
		filter, text string
		item         *Item
		want         bool
	}{
		{"", "", request(), true},
		{"status >= 500", "", request(), true},
		{"status >= 500 && duration > 2000", "", request(), false},
		{"url contains 'orders' and method in ['POST', 'PUT']", "", request(), true},
		{`path matches "^/api/o.*s$"`, "", request(), true},
		{"failed ? source == 'shop' : false", "", request(), true},
		{"", "ORDERS", request(), true},
		{"status == 200", "orders", request(), false},
		{"attrs.state == 'stuck'", "", node, true},
		{"int(attrs.n) > 10", "", node, true},
		{"int(attrs.missing) > 10", "", node, false},
		{"values.jobs > 2 && values.busy", "", node, true},
		{"values.missing > 2", "", node, false},
		{"values.missing == nil", "", node, true},
		{"lower(name) == 'worker' && what == 'node'", "", node, true},
		{"", "Order 7", node, true},
		{"", "nowhere", node, false},
	} {
		f, err := New(tt.filter, tt.text)
		if err != nil {
			t.Errorf("%q: %v", tt.filter, err)
			continue
		}
		if got := f.Match(tt.item); got != tt.want {
			t.Errorf("%q, text %q: %v, want %v", tt.filter, tt.text, got, tt.want)
		}
	}
}

func TestRefused(t *testing.T) {
	for filter, want := range map[string]string{
		"status >":                               "column",
		"nonsense == 1":                          "column 1: unknown name nonsense; the fields are what, source",
		"status":                                 "bool",
		"status == 'x'":                          "column 8",
		"len(1..1000000) > 3":                    "range",
		"now() > now()":                          "now",
		"all([1], true)":                         "all",
		"repeat('x', 100) == text":               "repeat",
		strings.Repeat("status>0 || ", 400):      "limit is 4096",
		strings.Repeat("true && ", 150) + "true": "nodes",
	} {
		_, err := New(filter, "")
		if !errors.Is(err, ErrFilter) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.60q: %v, want %q in one line", filter, err, want)
		}
	}
}

// TestLanguageIsDocumented fails when a field or function is not in docs/query.md.
func TestLanguageIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/query.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(Fields(), Functions()...) {
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("docs/query.md does not name `%s`", name)
		}
	}
}

// FuzzNew: whatever people type, it neither panics nor runs away.
func FuzzNew(f *testing.F) {
	for _, s := range []string{"status >= 500", "attrs['a'] == 'b'", "text matches '('", "-1 ** 99999 > 2", "[1,2][9] == 3", "name[1:900000] == ''", "{'a': 1}.a == 1"} {
		f.Add(s)
	}
	item := request()
	f.Fuzz(func(t *testing.T, s string) {
		x, err := New(s, "")
		if err != nil {
			if !errors.Is(err, ErrFilter) {
				t.Fatal(err)
			}
			return
		}
		x.Match(item)
	})
}

func BenchmarkMatch(b *testing.B) {
	x, err := New("status >= 500 && url contains 'orders'", "")
	if err != nil {
		b.Fatal(err)
	}
	item := request()
	b.ReportAllocs()
	for b.Loop() {
		x.Match(item)
	}
}
