package tree

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/natscope/natscope/subjects/value"
)

func values(pairs ...string) map[string]json.RawMessage {
	out := make(map[string]json.RawMessage)
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i]] = json.RawMessage(pairs[i+1])
	}
	return out
}

func numbered(count int, f func(name string)) {
	for i := range count {
		f("k" + fmt.Sprint(i))
	}
}

func TestContent(t *testing.T) {
	many := make(map[string]json.RawMessage)
	numbered(MaxValues+1, func(name string) { many[name] = json.RawMessage("1") })
	var attrs []Attr
	numbered(MaxAttrs+1, func(name string) { attrs = append(attrs, Attr{name, "1"}) })
	long := strings.Repeat("x", MaxNodeBytes)
	for rule, c := range map[string]struct {
		node Node
		want error
		says string
	}{
		"values are encoded values":           {Node{Values: values("ok", "1", "bad", `{"__natscope":"map"}`)}, value.ErrMalformed, `node 2: values: "bad": map marker: value: malformed: entries is missing`},
		"of several bad values the first":     {Node{Values: values("b", `{"__natscope":"set"}`, "a", `{"__natscope":"date"}`, "c", `[{"__natscope":"number","value":"5"}]`)}, ErrPayload, `values: "a": `},
		"values are not nested without end":   {Node{Values: values("deep", strings.Repeat("[", 40)+strings.Repeat("]", 40))}, ErrPayload, `values: "deep"`},
		"values are bounded in number":        {Node{Values: many}, ErrLimit, "node 2 has 1001 values, the limit is 1000"},
		"attributes are bounded in number":    {Node{Attrs: attrs}, ErrLimit, "node 2 has 257 attrs, the limit is 256"},
		"attributes are bounded in bytes":     {Node{Attrs: []Attr{{"a", long}}}, ErrLimit, "most of them are in attrs"},
		"attributes are bounded together":     {Node{Attrs: []Attr{{"a", long[:len(long)/2]}, {"b", long[:len(long)/2]}}}, ErrLimit, "most of them are in attrs"},
		"values are bounded in bytes":         {Node{Values: values("v", `"`+long+`"`)}, ErrLimit, "most of them are in values"},
		"names of values are bounded":         {Node{Values: values(long, `1`)}, ErrLimit, "most of them are in values"},
		"text is bounded":                     {Node{Text: long}, ErrLimit, "most of them are in text"},
		"text that nothing makes long":        {Node{Text: long[:len(long)/6]}, nil, ""},
		"text that escapes make too long":     {Node{Text: strings.Repeat("\x01", MaxNodeBytes/6)}, ErrLimit, "most of them are in text"},
		"a name is bounded":                   {Node{Name: long}, ErrLimit, "most of them are in name"},
		"a kind is bounded":                   {Node{Kind: long}, ErrLimit, "most of them are in kind"},
		"a place is bounded":                  {Node{Loc: long}, ErrLimit, "most of them are in loc"},
		"an object is bounded":                {Node{Object: ObjectRef(long)}, ErrLimit, "most of them are in object"},
		"snippets are bounded":                {Node{Snippets: []string{long}}, ErrLimit, "most of them are in snippets"},
		"kinds of values are bounded":         {Node{ValueKinds: map[string]string{"v": long}}, ErrLimit, "most of them are in valueKinds"},
		"writable is bounded":                 {Node{Writable: []string{long}}, ErrLimit, "most of them are in writable"},
		"writable names values":               {Node{Values: values("a", "1"), Writable: []string{"a", "b"}}, ErrPayload, `node 2: writable names "b", which is none of its values`},
		"writable names each once":            {Node{Values: values("a", "1"), Writable: []string{"a", "a"}}, ErrPayload, `node 2: writable names "a" twice`},
		"everything else goes":                {Node{Values: values("a", "null", "", `"x"`, "m", `{"__natscope":"hologram"}`), ValueKinds: map[string]string{"z": "state"}, Writable: []string{"", "a"}, Attrs: []Attr{{"a", ""}, {"a", "2"}}}, nil, ""},
		"as many attributes as allowed":       {Node{Attrs: attrs[:MaxAttrs]}, nil, ""},
		"text that is as long as JSON allows": {Node{Text: strings.Repeat("\n", MaxNodeBytes/2-200)}, nil, ""},
	} {
		t.Run(rule, func(t *testing.T) {
			node := c.node
			node.ID = 2
			if node.Name == "" {
				node.Name = "n2"
			}
			for way, payload := range map[string]any{
				TopicSnapshot: snapshotOf(2, n(1, node)),
				TopicOps:      Ops{Revision: 2, Ops: []Op{change(node)}},
				"add":         Ops{Revision: 2, Ops: []Op{drop(2), add(1, 0, node)}},
			} {
				if way == TopicOps && (node.Name != "n2" || node.Kind != "") {
					// Updates that change these are refused for that reason.
					continue
				}
				k := newClient(t)
				k.snapshot(n(1, n(2)))
				was := content(&k.state)
				topic := way
				if way == "add" {
					topic = TopicOps
				}
				_, err := k.try(topic, payload)
				if c.want == nil {
					if err != nil {
						t.Errorf("%s: %v", way, err)
					}
					continue
				}
				if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%s: got %.300v, want %v that says %q", way, err, c.want, c.says)
				}
				if content(&k.state) != was {
					t.Errorf("%s: a refused record changed the tree", way)
				}
			}
		})
	}
}

// TestSizeIsThatOfJSON compares the size of nodes with what they have as JSON.
func TestSizeIsThatOfJSON(t *testing.T) {
	for name, node := range map[string]Node{
		"empty":   {ID: 1, Name: "x"},
		"escapes": {ID: 1, Name: "<a href=\"&\">\x00\x1f\\\n", Text: "\u2028\u2029\u2027é\U0001F600\xe2\x80"},
		"all": {ID: 1 << 62, Kind: "worker", Name: "x", Attrs: []Attr{{"a", "\t"}, {"b", "2"}}, Text: "text", Object: "o-1", Values: values("v", `{"a":[1]}`, "w", `"<"`),
			ValueKinds: map[string]string{"v": "state"}, Writable: []string{"v"}, Loc: "a.go:1", Snippets: []string{"s", "t"}},
	} {
		data, err := json.Marshal(node)
		if err != nil {
			t.Fatal(err)
		}
		// Storage and producers write values as they are, json.Marshal escapes what is HTML in them.
		text := strings.ReplaceAll(string(data), `"w":"\u003c"`, `"w":"<"`)
		if _, size := node.size(); size < len(text) || size > len(text)+200 {
			t.Errorf("%s: size %d, as JSON it has %d bytes", name, size, len(text))
		}
	}
	if err := checkContent(&Node{ID: 1, Name: strings.Repeat("é", MaxNodeBytes/2-90)}); err != nil || !utf8.ValidString("é") {
		t.Errorf("a node of just the limit: %v", err)
	}
}

// TestValuesAreStoredAsTheyAre shows that values with space between their tokens
// equal the same ones that were stored, which have none.
func TestValuesAreStoredAsTheyAre(t *testing.T) {
	k := newClient(t)
	spaced := `{"version":1,"profile":"component","revision":%d,"root":{"id":1,"name":"n1","values":{"v": { "a" : [ 1, "x y" ] },"w":"two  words","n": 5 }}}`
	k.apply(TopicSnapshot, json.RawMessage(fmt.Sprintf(spaced, 1)))
	if got := string(k.state.Root.Values["v"]); got != `{"a":[1,"x y"]}` {
		t.Errorf("the value is %s", got)
	}
	if got := string(k.state.Root.Values["w"]); got != `"two  words"` {
		t.Errorf("the value is %s", got)
	}
	if changes := k.apply(TopicSnapshot, json.RawMessage(strings.ReplaceAll(fmt.Sprintf(spaced, 2), `: {`, `:{`))); len(changes) > 0 {
		t.Errorf("the same values again give the changes %s", describe(changes))
	}
}

// FuzzContent checks what is accepted against what a frame and a reader of values can take.
func FuzzContent(f *testing.F) {
	f.Add(`{"id":1,"name":"x","values":{"v":{"__natscope":"date","iso":null},"w":[ 1,{"a":"b"}]},"writable":["w"],"attrs":[["a","<"]],"text":"\u2028"}`)
	f.Add(`{"id":1,"name":"x","values":{"v":{"__natscope":"partial","value":[1],"size":9}},"valueKinds":{"v":"state"},"snippets":["s"],"loc":"a:1"}`)
	f.Fuzz(func(t *testing.T, data string) {
		var n Node
		if json.Unmarshal([]byte(data), &n) != nil {
			return
		}
		n.Children = nil
		if err := checkContent(&n); err != nil {
			if !errors.Is(err, ErrPayload) && !errors.Is(err, ErrLimit) {
				t.Fatalf("the error %v is none of this package", err)
			}
			return
		}
		for name, raw := range n.Values {
			if _, err := value.Parse(raw); err != nil {
				t.Fatalf("value %q: %v", name, err)
			}
		}
		for _, name := range n.Writable {
			if n.Values[name] == nil {
				t.Fatalf("%q is writable and is not there", name)
			}
		}
		again, err := json.Marshal(n)
		if err != nil {
			t.Fatal(err)
		}
		var same Node
		if err := json.Unmarshal(again, &same); err != nil {
			t.Fatal(err)
		}
		if err := checkContent(&same); err != nil {
			t.Fatalf("written and read again: %v", err)
		}
	})
}
