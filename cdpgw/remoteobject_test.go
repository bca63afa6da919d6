package cdpgw

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/runtime"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/console"
	"github.com/natscope/natscope/subjects/source"
	"github.com/natscope/natscope/subjects/value"
)

func TestRemoteObjects(t *testing.T) {
	path := objectPath{source: "orders", order: 7, arg: 2}
	for _, tc := range []struct{ in, want string }{
		{`1.5`, `{"type":"number","value":1.5,"description":"1.5"}`},
		{`"a<b"`, `{"type":"string","value":"a<b"}`},
		{`true`, `{"type":"boolean","value":true,"description":"true"}`},
		{`null`, `{"type":"object","subtype":"null","value":null}`},
		{`{"__natscope":"undefined"}`, `{"type":"undefined"}`},
		{`{"__natscope":"number","value":"NaN"}`, `{"type":"number","unserializableValue":"NaN","description":"NaN"}`},
		{`{"__natscope":"number","value":"-0"}`, `{"type":"number","unserializableValue":"-0","description":"-0"}`},
		{`{"__natscope":"bigint","value":"10"}`, `{"type":"bigint","unserializableValue":"10n","description":"10n"}`},
		{`{"__natscope":"symbol","value":"Symbol(x)"}`, `{"type":"symbol","description":"Symbol(x)"}`},
		{`{"__natscope":"date","iso":null}`, `{"type":"object","subtype":"date","className":"Date","description":"Invalid Date","objectId":"record:orders:7:2"}`},
		{`{"__natscope":"regexp","source":"a+","flags":"gi"}`, `{"type":"object","subtype":"regexp","className":"RegExp","description":"/a+/gi","objectId":"record:orders:7:2"}`},
		{`{"__natscope":"error","name":"TypeError","message":"no"}`, `{"type":"object","subtype":"error","className":"TypeError","description":"TypeError: no","objectId":"record:orders:7:2"}`},
		{`{"e":{"__natscope":"error","name":"*fmt.wrapError","message":"` + strings.Repeat("charge 7: ", 12) + `no money","stack":"at main.go"}}`,
			`{"type":"object","className":"Object","description":"Object","objectId":"record:orders:7:2","preview":{"type":"object","description":"Object","overflow":false,"properties":[{"name":"e","type":"object","value":"*fmt.wrapError: ` + strings.Repeat("charge 7: ", 12) + `no money","subtype":"error"}]}}`},
		{`[1,"x"]`, `{"type":"object","subtype":"array","className":"Array","description":"Array(2)","objectId":"record:orders:7:2","preview":{"type":"object","subtype":"array","description":"Array(2)","overflow":false,"properties":[{"name":"0","type":"number","value":"1"},{"name":"1","type":"string","value":"x"}]}}`},
		{`{"__natscope":"map","entries":[["k",1]]}`, `{"type":"object","subtype":"map","className":"Map","description":"Map(1)","objectId":"record:orders:7:2","preview":{"type":"object","subtype":"map","description":"Map(1)","overflow":false,"properties":[],"entries":[{"key":{"type":"string","description":"k","overflow":false,"properties":[]},"value":{"type":"number","description":"1","overflow":false,"properties":[]}}]}}`},
		{`{"__natscope":"instance","name":"main.Order","fields":{"ID":1}}`, `{"type":"object","className":"main.Order","description":"main.Order","objectId":"record:orders:7:2","preview":{"type":"object","description":"main.Order","overflow":false,"properties":[{"name":"ID","type":"number","value":"1"}]}}`},
		{`{"__natscope":"function","name":"f"}`, `{"type":"function","className":"Function","description":"function f() { [recorded] }"}`},
		{`{"__natscope":"dehydrated","type":"array","preview":"[…]","size":3}`, `{"type":"object","className":"Array","description":"[…]"}`},
	} {
		got := string(encode(recorded(json.RawMessage(tc.in), path)))
		if got != tc.want {
			t.Errorf("%s:\n got %s\nwant %s", tc.in, got, tc.want)
		}
		var o runtime.RemoteObject
		if err := json.Unmarshal([]byte(got), &o); err != nil {
			t.Errorf("%s: cdproto: %v", tc.in, err)
		}
	}
}

// Every value, whatever it is, becomes an object that cdproto takes.
func FuzzRecorded(f *testing.F) {
	for _, s := range []string{`1`, `{"__natscope":"map","entries":[[1,2]]}`, `{"__natscope":"date","iso":"x"}`, `{"a":[1]}`, `nonsense`, `{"__natscope":"number","value":"abc"}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		raw := encode(recorded(json.RawMessage(in), objectPath{source: "s"}))
		var o runtime.RemoteObject
		if err := json.Unmarshal(raw, &o); err != nil {
			t.Fatalf("%q becomes %s: %v", in, raw, err)
		}
		v, err := value.Parse(json.RawMessage(in))
		if err != nil {
			return
		}
		encode(properties(v, false))
		_, _ = entryProperties(v, objectPath{source: "s", entries: true, entry: -1})
	})
}

func FuzzParseObject(f *testing.F) {
	f.Add("record:orders:1:2:-1")
	f.Fuzz(func(t *testing.T, id string) {
		p, ok := parseObject(ObjectID(id))
		if !ok {
			return
		}
		if again, ok := parseObject(p.id()); !ok || again != p {
			t.Errorf("%q is %+v, whose id %q is %+v", id, p, p.id(), again)
		}
	})
}

func TestGetProperties(t *testing.T) {
	m := newMemory(t, subjects.Limits{ConsoleEntries: 2})
	m.open("orders", gen1, source.Descriptor{Name: "orders"})
	m.log("orders", gen1, 1, json.RawMessage(`{"a":1,"b":{"__natscope":"dehydrated","type":"object","preview":"{…}","size":2}}`), json.RawMessage(`[5,6]`), json.RawMessage(`{"__natscope":"map","entries":[["k",7]]}`), json.RawMessage(`{"__natscope":"set","values":[8]}`))
	m.Publish("orders", gen1, subjects.PlaneConsole, record(2, console.TopicException, console.Exception{Text: "panic", Value: json.RawMessage(`{"__natscope":"error","name":"E","message":"m"}`)}))
	_, server := serve(t, m)
	c := dial(t, server, "dev")
	c.call("Runtime.enable", nil, nil)
	var line consoleCalledEvent
	at := c.event(0, "Runtime.consoleAPICalled", &line)
	var thrown exceptionThrownEvent
	c.event(at, "Runtime.exceptionThrown", &thrown)
	get := func(id ObjectID, extra ...string) string {
		t.Helper()
		params := map[string]any{"objectId": id, "ownProperties": true}
		for _, e := range extra {
			params[e] = true
		}
		var r getPropertiesResult
		c.call("Runtime.getProperties", params, &r)
		var out []string
		for _, p := range r.Result {
			out = append(out, p.Name+"="+string(p.Value.Value)+p.Value.Description)
		}
		for _, p := range r.InternalProperties {
			out = append(out, p.Name+"="+p.Value.Description)
		}
		return strings.Join(out, " ")
	}
	for _, tc := range []struct {
		id    ObjectID
		extra []string
		want  string
	}{
		{line.Args[0].ObjectID, nil, "a=11 b={…}"},
		{line.Args[0].ObjectID, []string{"accessorPropertiesOnly"}, ""},
		{line.Args[1].ObjectID, nil, "0=55 1=66 length=22"},
		{line.Args[1].ObjectID, []string{"nonIndexedPropertiesOnly"}, "length=22"},
		{line.Args[2].ObjectID, nil, "size=11 [[Entries]]=Array(1)"},
		{line.Args[2].ObjectID + ":-1", nil, "0={k => 7}"},
		{line.Args[2].ObjectID + ":0", nil, `key="k" value=77`},
		{line.Args[3].ObjectID + ":0", nil, "value=88"},
		{thrown.Details.Exception.ObjectID, nil, `name="E" message="m"`},
	} {
		if got := get(tc.id, tc.extra...); got != tc.want {
			t.Errorf("%s %v: %s, want %s", tc.id, tc.extra, got, tc.want)
		}
	}
	for _, id := range []string{"", "nonsense", "record:orders:1:9", "record:orders:9:0", "record:orders:1:2:5", "record:gone:1:0", string(line.Args[0].ObjectID) + "x"} {
		c.fails("Runtime.getProperties", map[string]string{"objectId": id}, codeServer)
	}
	// Case A9: an object of a line that is gone is an immediate error, not silence.
	m.log("orders", gen1, 3, "x")
	m.log("orders", gen1, 4, "y")
	if e := c.fails("Runtime.getProperties", map[string]any{"objectId": line.Args[0].ObjectID}, codeServer); !strings.Contains(e.Message, "no longer kept") {
		t.Errorf("%s", e.Message)
	}
}
