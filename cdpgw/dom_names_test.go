package cdpgw

import (
	"strings"
	"testing"

	"github.com/natscope/natscope/subjects/tree"
)

func TestElementNames(t *testing.T) {
	for name, want := range map[string]string{
		"App": "App", "my-app": "my_app", "main.Worker": "main.Worker", "svelte:head": "svelte:head", "with space": "with_space", "9lives": "_9lives",
		"Body": "Body_", "IFRAME": "IFRAME_", "script": "script_", "#text": "_text", "::before": "_:before", "Größe": "Größe", "服务": "服务", "": "_", "*": "_",
		"a<b>": "a_b_", "host": "host", "$el": "$el", "\xff": "_", "selectedcontent": "selectedcontent_",
	} {
		if got := elementName(name); got != want {
			t.Errorf("%q becomes %q, want %q", name, got, want)
		}
	}
	if n := len(elementName(strings.Repeat("x", 5000))); n != maxElementName {
		t.Errorf("a long name keeps %d characters", n)
	}
}

func FuzzElementName(f *testing.F) {
	f.Add("my-app")
	f.Fuzz(func(t *testing.T, name string) {
		got := elementName(name)
		if got == "" || strings.ContainsAny(got, "-#<>/\"'= \t\n") || specialElements[strings.ToLower(got)] || elementName(got) != got && len(got) < maxElementName {
			t.Errorf("%q becomes %q", name, got)
		}
	})
}

// Names of attributes may not break the markup that DevTools shows, nor carry what nobody sees.
func TestAttributeNames(t *testing.T) {
	for name, want := range map[string]string{
		"class": "class", "data-x": "data-x", "on:click": "on:click", "größe": "größe", "two words": "two_words", `on"click`: "on_click",
		"a=b": "a_b", "\x00": "_", "\x1b[31m": "_[31m", "\u202elru": "_lru", "a\u0085b": "a_b",
	} {
		if got := attributeName(name); got != want {
			t.Errorf("%q becomes %q, want %q", name, got, want)
		}
	}
}

func TestTreeAttributes(t *testing.T) {
	for _, tc := range []struct {
		node tree.Node
		want string
	}{
		{tree.Node{Name: "App"}, ""},
		{tree.Node{Name: "Fiber", Kind: "fiber", Attrs: []tree.Attr{{Name: "uid", Value: "1"}}}, "uid 1"},
		{tree.Node{Name: "orders", Kind: "worker"}, "kind worker"},
		{tree.Node{Name: "my-app", Kind: "app"}, "name my-app kind app"},
		{tree.Node{Name: "my-app", Attrs: []tree.Attr{{Name: "name", Value: "x"}}}, "component my-app name x"},
		{tree.Node{Name: "A", Attrs: []tree.Attr{{Name: "b c", Value: "1"}, {Name: "b", Value: "2"}, {Name: "b", Value: "3"}}}, "b_c 1 b 3"},
	} {
		if got := strings.Join(treeAttributes(tc.node.Name, tc.node.Kind, tc.node.Attrs), " "); got != tc.want {
			t.Errorf("%+v: %q, want %q", tc.node, got, tc.want)
		}
	}
}
