package cdpgw

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

// schema is a type, a property or a parameter in the protocol's own definition,
// testdata/protocol.json: the domains that matter here from the package
// devtools-protocol, without their descriptions.
type schema struct {
	ID         string   `json:"id"`
	Name       string   `json:"name"`
	Ref        string   `json:"$ref"`
	Type       string   `json:"type"`
	Enum       []string `json:"enum"`
	Optional   bool     `json:"optional"`
	Properties []schema `json:"properties"`
	Items      *schema  `json:"items"`
}

type protocolMethod struct {
	Name       string   `json:"name"`
	Parameters []schema `json:"parameters"`
	Returns    []schema `json:"returns"`
}

// definition is the protocol by full names, as "Network.RequestId".
type definition struct {
	types            map[string]schema
	events, commands map[string]protocolMethod
}

var loadDefinition = sync.OnceValues(func() (*definition, error) {
	b, err := os.ReadFile("testdata/protocol.json")
	if err != nil {
		return nil, err
	}
	var file struct {
		Domains []struct {
			Domain   string           `json:"domain"`
			Types    []schema         `json:"types"`
			Commands []protocolMethod `json:"commands"`
			Events   []protocolMethod `json:"events"`
		} `json:"domains"`
	}
	if err := json.Unmarshal(b, &file); err != nil {
		return nil, err
	}
	d := &definition{make(map[string]schema), make(map[string]protocolMethod), make(map[string]protocolMethod)}
	for _, x := range file.Domains {
		for _, t := range x.Types {
			d.types[x.Domain+"."+t.ID] = t
		}
		for _, m := range x.Commands {
			d.commands[x.Domain+"."+m.Name] = m
		}
		for _, m := range x.Events {
			d.events[x.Domain+"."+m.Name] = m
		}
	}
	return d, nil
})

// protocolOf returns the definition of the protocol.
func protocolOf(t testing.TB) *definition {
	t.Helper()
	d, err := loadDefinition()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// event lists what the protocol does not allow in the parameters of an event.
func (d *definition) event(method string, params json.RawMessage) []string {
	m, ok := d.events[method]
	if !ok {
		return []string{"the protocol has no event " + method}
	}
	return d.fields(method, m.Parameters, params)
}

// result lists what the protocol does not allow in the result of a command.
func (d *definition) result(method string, result json.RawMessage) []string {
	m, ok := d.commands[method]
	if !ok {
		return []string{"the protocol has no command " + method}
	}
	return d.fields(method, m.Returns, result)
}

func (d *definition) fields(path string, want []schema, data json.RawMessage) []string {
	var v any
	if len(data) == 0 {
		data = json.RawMessage("{}")
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return []string{err.Error()}
	}
	domain, _, _ := strings.Cut(path, ".")
	return d.object(path, domain, want, v)
}

func (d *definition) object(path, domain string, want []schema, v any) []string {
	m, ok := v.(map[string]any)
	if !ok {
		return []string{fmt.Sprintf("%s is %T, not an object", path, v)}
	}
	var out []string
	for _, p := range want {
		x, ok := m[p.Name]
		switch {
		case ok:
			out = append(out, d.check(path+"."+p.Name, domain, p, x)...)
		case !p.Optional:
			out = append(out, path+"."+p.Name+" is missing")
		}
	}
	for name := range m {
		if !slices.ContainsFunc(want, func(p schema) bool { return p.Name == name }) {
			out = append(out, path+"."+name+" is not of the protocol")
		}
	}
	return out
}

func (d *definition) check(path, domain string, s schema, v any) []string {
	if s.Ref != "" {
		name := s.Ref
		if !strings.Contains(name, ".") {
			name = domain + "." + name
		}
		t, ok := d.types[name]
		if !ok {
			return nil // of a domain that the file leaves out
		}
		domain, _, _ = strings.Cut(name, ".")
		return d.check(path, domain, t, v)
	}
	bad := []string{fmt.Sprintf("%s is %v, not %s", path, v, s.Type)}
	switch s.Type {
	case "string", "binary":
		text, ok := v.(string)
		if !ok {
			return bad
		}
		// V8 itself has subtypes that the definition leaves out, and DevTools knows them.
		if internal := strings.HasSuffix(path, ".subtype") && strings.HasPrefix(text, "internal#"); len(s.Enum) > 0 && !slices.Contains(s.Enum, text) && !internal {
			return []string{fmt.Sprintf("%s is %q, not one of %q", path, text, s.Enum)}
		}
	case "integer":
		if n, ok := v.(float64); !ok || n != math.Trunc(n) {
			return bad
		}
	case "number":
		if _, ok := v.(float64); !ok {
			return bad
		}
	case "boolean":
		if _, ok := v.(bool); !ok {
			return bad
		}
	case "array":
		list, ok := v.([]any)
		if !ok {
			return bad
		}
		var out []string
		for i, x := range list {
			if s.Items != nil {
				out = append(out, d.check(fmt.Sprintf("%s[%d]", path, i), domain, *s.Items, x)...)
			}
		}
		return out
	case "object":
		m, ok := v.(map[string]any)
		if !ok {
			return bad
		}
		if len(s.Properties) > 0 {
			return d.object(path, domain, s.Properties, m)
		}
	}
	return nil
}

// TestSchemaCanFail makes sure that the definition refuses what is wrong.
func TestSchemaCanFail(t *testing.T) {
	d := protocolOf(t)
	for params, want := range map[string]string{
		`{"requestId":"r","timestamp":1,"type":"Fetch","errorText":"x"}`:                   "",
		`{"requestId":"r","timestamp":1,"type":"Fetch","errorText":"x","canceled":true}`:   "",
		`{"requestId":"r","timestamp":1,"type":"Fetch"}`:                                   "errorText is missing",
		`{"requestId":"r","timestamp":1,"type":"Feta","errorText":"x"}`:                    "not one of",
		`{"requestId":"r","timestamp":"1","type":"Fetch","errorText":"x"}`:                 "timestamp is 1, not number",
		`{"requestId":"r","timestamp":1,"type":"Fetch","errorText":"x","more":1}`:          "more is not of the protocol",
		`{"requestId":"r","timestamp":1,"type":"Fetch","errorText":"x","blockedReason":1}`: "blockedReason",
	} {
		if got := strings.Join(d.event("Network.loadingFailed", json.RawMessage(params)), "; "); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", params, got, want)
		}
	}
	if got := d.result("Network.getResponseBody", json.RawMessage(`{"body":"x"}`)); len(got) != 1 {
		t.Errorf("a result without a field gives %q", got)
	}
}
