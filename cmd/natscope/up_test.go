package main

import (
	"strings"
	"testing"
)

// Where a token is needed, the addresses that people are told show where it belongs; programs get them as they are.
func TestPrintedAddressesShowTheToken(t *testing.T) {
	r := ready{HTTP: "https://a:1", DevTools: "devtools://x?wss=a:1/devtools/page/dev", tokens: true}
	for asJSON, want := range map[bool][]string{false: {"wss=a:1/t/<token>/devtools/page/dev", "https://a:1/t/<token>/"}, true: {`"https://a:1"`, "wss=a:1/devtools/page/dev"}} {
		var out strings.Builder
		if err := r.print(&out, asJSON); err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(out.String(), w) {
				t.Errorf("no %s in %s", w, &out)
			}
		}
	}
}
