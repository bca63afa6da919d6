package ingest

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/natscope/natscope/subjects"
)

func TestParseMessage(t *testing.T) {
	m, err := ParseMessage([]byte(`{"type":"records","n":7,"plane":"net","dropped":2,"future":1,"records":[{"t":1.5,"topic":"start","data":{
		"id": "r1"
	},"more":true}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if m.N != 7 || m.Records.Dropped != 2 || m.Records.Records[0].T != 1.5 {
		t.Errorf("message %+v", m)
	}
	if got := string(m.Records.Records[0].Data); got != `{"id":"r1"}` {
		t.Errorf("data %s is not one line", got)
	}
	m, err = ParseMessage([]byte(`{"type":"body","n":1,"request":"r1","dir":"req","offset":3,"data":"aGk=","end":"whatever","total":5}`))
	if err != nil || string(m.Data) != "hi" || m.Body.End != subjects.BodyAborted {
		t.Errorf("message %+v, error %v", m, err)
	}
	m, err = ParseMessage([]byte(`{"type":"from-the-future","n":3}`))
	if err != nil || m.Type != "from-the-future" {
		t.Errorf("message %+v, error %v", m, err)
	}
	_, err = ParseMessage([]byte(`{"type":"hello","version":9,"realm":"r"}`))
	if !errors.Is(err, ErrVersion) || !errors.Is(err, ErrMessage) {
		t.Errorf("error %v", err)
	}
	m, err = ParseMessage([]byte(`{"type":"hello","version":1,"realm":"r","title":"` + strings.Repeat("ü", 5000) + `"}`))
	if err != nil || len(m.Hello.Title) > maxField || !utf8.ValidString(m.Hello.Title) {
		t.Errorf("error %v", err)
	}
	m, err = ParseMessage([]byte(`{"type":"records","n":5,"plane":"life"}`))
	if !errors.Is(err, ErrMessage) || m.N != 5 {
		t.Errorf("a malformed message keeps its number: %+v, error %v", m, err)
	}
}

func FuzzParseMessage(f *testing.F) {
	for _, s := range []string{
		`{"type":"hello","version":1,"id":"a","realm":"r","now":1}`,
		`{"type":"records","n":1,"plane":"console","records":[{"t":1,"topic":"message","data":{"a":[1,2]}}]}`,
		`{"type":"body","n":1,"request":"r1","dir":"res","offset":0,"data":"aGk="}`,
		`{"type":"update","n":2,"title":"x"}`,
		`{"type":"bye"}`, `{"type":"ping"}`, `[]`, `null`, "\xff",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := ParseMessage(data)
		if err != nil {
			if !errors.Is(err, ErrMessage) {
				t.Errorf("error %v wraps no ErrMessage", err)
			}
			return
		}
		set := 0
		for _, there := range []bool{m.Hello != nil, m.Records != nil, m.Body != nil, m.Update != nil, m.Bye != nil} {
			if there {
				set++
			}
		}
		if set > 1 || m.Numbered() && (m.N == 0 || set != 1) {
			t.Errorf("message %+v", m)
		}
		if m.Records == nil {
			return
		}
		for _, r := range m.Records.Records {
			if len(r.Data) > 0 && !json.Valid(r.Data) || strings.ContainsAny(string(r.Data), "\n\r") || !utf8.Valid(r.Data) {
				t.Errorf("record data %q", r.Data)
			}
			if _, err := subjects.AppendRecord(nil, r); err != nil {
				t.Errorf("a record that was accepted fits no frame: %v", err)
			}
		}
	})
}
