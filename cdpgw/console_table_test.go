package cdpgw

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/console"
)

// console.table comes with what DevTools draws it from: a preview of each row,
// with the columns that were asked for, and a last row that tells of those not recorded.
func TestTable(t *testing.T) {
	m := shop(t)
	many := "[" + strings.Repeat(`{"a":1},`, tableRows) + `{"a":1}]`
	for _, args := range [][]string{
		{`[{"id":1,"to":"x"},{"__natscope":"instance","name":"main.P","fields":{"id":2,"ok":true}},7]`},
		{`{"k":{"a":1,"b":null,"c":"z"}}`, `["c","a","none"]`},
		{`{"__natscope":"map","entries":[["m",{"a":1}]]}`, `"a"`},
		{`{"__natscope":"partial","value":[[1,2]],"size":9}`},
		{many},
		{`"text"`},
		{},
	} {
		raw := make([]json.RawMessage, len(args))
		for i, a := range args {
			raw[i] = json.RawMessage(a)
		}
		m.Publish("orders", gen1, subjects.PlaneConsole, record(5, console.TopicMessage, console.Message{Type: "table", Args: raw}))
	}
	_, server := serve(t, m)
	c := dial(t, server, "dev")
	var got []string
	for _, e := range c.call("Runtime.enable", nil, nil) {
		var p consoleCalledEvent
		if e.Method != "Runtime.consoleAPICalled" || json.Unmarshal(e.Params, &p) != nil || p.Type != "table" {
			continue
		}
		text := ""
		if len(p.Args) > 0 && p.Args[0].Preview != nil {
			text = tableText(p.Args[0].Preview)
		}
		got = append(got, text)
	}
	want := []string{
		"0[id=1 to=x] 1[id=2 ok=true] 2=7",
		"k[c=z a=1]",
		"m[a=1]",
		"0[0=1 1=2] …=the first 1 of 9 rows",
		"…=the first 1000 of 1001 rows",
		"", "",
	}
	if len(got) != len(want) {
		t.Fatalf("%q", got)
	}
	for i := range want {
		if i == 4 {
			got[i] = got[i][max(strings.Index(got[i], "…"), 0):]
		}
		if got[i] != want[i] {
			t.Errorf("%d: %s\nwant %s", i, got[i], want[i])
		}
	}
	c.valid()
}

// tableText is a table as one line of text.
func tableText(p *objectPreview) string {
	var rows []string
	for _, r := range p.Properties {
		if r.ValuePreview == nil {
			rows = append(rows, r.Name+"="+r.Value)
			continue
		}
		var cells []string
		for _, c := range r.ValuePreview.Properties {
			cells = append(cells, c.Name+"="+c.Value)
		}
		rows = append(rows, r.Name+"["+strings.Join(cells, " ")+"]")
	}
	return strings.Join(rows, " ")
}
