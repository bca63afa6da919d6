package realm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/natscope/natscope/subjects/internal/wiretest"
)

// readers reads the payload of each topic of the vectors.
var readers = map[string]func(json.RawMessage) error{
	"request":                 func(d json.RawMessage) error { _, err := ParseRequest(d); return err },
	"answer":                  func(d json.RawMessage) error { return answered(d) },
	"event":                   func(d json.RawMessage) error { _, err := ParseEvent(d); return err },
	string(MethodInspect):     params[InspectParams],
	string(MethodEdit):        params[EditParams],
	string(MethodHighlight):   params[HighlightParams],
	string(MethodPick):        params[PickParams],
	string(MethodLog):         params[LogParams],
	string(MethodStoreGlobal): params[StoreGlobalParams],
	string(MethodOpen):        params[OpenParams],
	string(MethodWatch):       params[WatchParams],

	string(MethodCancel):          params[CancelParams],
	string(MethodResolveArgument): params[ResolveArgumentParams],
	string(MethodResolveNode):     params[ResolveNodeParams],
	string(MethodNodeOf):          params[NodeOfParams],
	string(MethodInspected):       params[InspectedParams],
	string(MethodScriptSource):    params[ScriptSourceParams],
	string(MethodLoadResource):    params[LoadResourceParams],
}

func params[P any](d json.RawMessage) error { _, err := ParseParams[P](d); return err }

// answered tells answers that cannot be read; an error that was read is fine.
func answered(d json.RawMessage) error {
	_, err := ParseAnswer(d)
	if e := (*Error)(nil); errors.As(err, &e) {
		return nil
	}
	return err
}

func TestVectors(t *testing.T) {
	cases := wiretest.Cases(t, "commands.json")
	wiretest.Payloads(t, cases, map[string]any{
		"request": Request{}, "answer": Answer{}, "event": Event{}, "audit": Audit{},
		"tree.inspect": InspectParams{}, "tree.inspect result": InspectResult{}, "tree.edit": EditParams{}, "tree.highlight": HighlightParams{},
		"tree.pick": PickParams{}, "tree.log": LogParams{}, "tree.storeGlobal": StoreGlobalParams{}, "tree.storeGlobal result": StoreGlobalResult{},
		"tree.open": OpenParams{}, "tree.watch": WatchParams{}, "picked": Picked{}, "highlighted": Highlighted{}, "natscope.reveal": Reveal{},
		"session.open result": OpenResult{}, "session.cancel": CancelParams{}, "console.resolve": ResolveArgumentParams{}, "console.resolve result": ObjectResult{},
		"tree.resolve": ResolveNodeParams{}, "tree.nodeOf": NodeOfParams{}, "tree.nodeOf result": NodeOfResult{}, "tree.inspected": InspectedParams{},
		"sources.enable result": EnableSourcesResult{}, "sources.getScriptSource": ScriptSourceParams{}, "sources.getScriptSource result": ScriptSourceResult{},
		"sources.loadResource": LoadResourceParams{}, "sources.loadResource result": LoadResourceResult{},
	})
	for _, c := range cases {
		read := readers[c.Topic]
		if read == nil {
			if c.Error != "" {
				t.Errorf("%s: nothing reads %q", c.Name, c.Topic)
			}
			continue
		}
		err := read(c.Data)
		if c.Error == "" {
			if err != nil {
				t.Errorf("%s: %v", c.Name, err)
			}
			continue
		}
		if !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), c.Error) {
			t.Errorf("%s: %v, want an error that says %q", c.Name, err, c.Error)
		}
	}
	for _, m := range Methods() {
		if readers[string(m)] == nil {
			t.Errorf("no vector reads the parameters of %s", m)
		}
	}
}

func TestErrorsTravel(t *testing.T) {
	for code, sentinel := range sentinels {
		for _, err := range []error{sentinel, fmt.Errorf("%w: no more", sentinel), fmt.Errorf("outer: %w", &Error{Code: code, Message: "no more"})} {
			data, _ := json.Marshal(AnswerOf(nil, err))
			_, back := ParseAnswer(data)
			if !errors.Is(back, sentinel) || CodeOf(back) != code {
				t.Errorf("%v came back as %v of code %s", err, back, CodeOf(back))
			}
		}
		if got := ErrorOf(fmt.Errorf("%w: no more", sentinel)); got.Message != "no more" || got.Code != code {
			t.Errorf("%+v", got)
		}
	}
	if _, err := ParseAnswer([]byte(`{"ok":false}`)); !errors.Is(err, ErrFailed) {
		t.Error(err)
	}
	if _, err := ParseAnswer([]byte(`{"ok":false,"error":{"code":"molten","message":"hot"}}`)); !errors.Is(err, ErrFailed) || err.Error() != "hot" {
		t.Error(err)
	}
	if got := CodeOf(fmt.Errorf("x: %w", context.DeadlineExceeded)); got != CodeTimeout {
		t.Error(got)
	}
	if got := ErrorOf(errors.New(strings.Repeat("ä\xff", 2000))); got.Code != CodeFailed || !utf8.ValidString(got.Message) || len(got.Message) > maxMessage+10 {
		t.Errorf("%d bytes, %s", len(got.Message), got.Code)
	}
	if got := (&Error{Code: CodeBusy}).Error(); got != "busy" {
		t.Error(got)
	}
}

func TestCapabilities(t *testing.T) {
	for _, c := range []struct {
		has  string
		ask  Method
		want bool
	}{
		{"", MethodPing, true}, {"", MethodEdit, false}, {"tree.edit", MethodEdit, true}, {"tree.edit", MethodPick, false},
		{"tree", MethodPick, true}, {"tre", MethodPick, false}, {"tree.", MethodPick, false}, {"runtime tree", "tree.future", true}, {"solo", "solo", true}, {"solo", "sol", false},
	} {
		if got := Supports(strings.Fields(c.has), c.ask); got != c.want {
			t.Errorf("%q supports %s: %v", c.has, c.ask, got)
		}
	}
	for m, want := range map[Method]bool{MethodPing: false, MethodInspect: false, MethodHighlight: false, MethodPick: false, MethodLog: false, MethodEdit: true, MethodStoreGlobal: true, MethodOpen: true, MethodEvaluate: true,
		MethodOpenSession: false, MethodResolveNode: false, "runtime.getProperties": false, "runtime.terminateExecution": true, "debugger.enable": true, "heap.takeHeapSnapshot": true, "future": true} {
		if m.Changes() != want || m.ChangesWith(nil) != want {
			t.Errorf("%s changes a program: %v", m, m.Changes())
		}
	}
	for params, want := range map[string]bool{`{"throwOnSideEffect":true}`: false, `{"throwOnSideEffect":false}`: true, `{}`: true, `{"THROWONSIDEEFFECT":true}`: true, `{"throwOnSideEffect":1}`: true, `{"throwOnSideEffect":true,"throwOnSideEffect":false}`: true} {
		for m := range pure {
			if m.ChangesWith(json.RawMessage(params)) != want {
				t.Errorf("%s %s: %v", m, params, !want)
			}
		}
		if MethodEdit.ChangesWith(json.RawMessage(params)) != true {
			t.Errorf("an edit with %s changes nothing", params)
		}
	}
	if MethodPing.Group() != "" || MethodEdit.Group() != GroupTree {
		t.Error("groups")
	}
	for m, want := range map[Method]bool{MethodPing: false, MethodEdit: false, MethodInspect: false, MethodResolveNode: true, MethodEvaluate: true, MethodOpenSession: false, "heap.enable": true, "solo": false} {
		if m.InSession() != want {
			t.Errorf("%s needs a session: %v", m, !want)
		}
	}
}

func TestDeadlines(t *testing.T) {
	for ms, want := range map[int64]time.Duration{0: time.Minute, 10: 10 * time.Millisecond, 600_000: time.Minute} {
		if got := (Request{DeadlineMS: ms}).Deadline(time.Minute); got != want {
			t.Errorf("%d ms: %v", ms, got)
		}
	}
	for _, bad := range []string{`{"method":"x","deadlineMs":-1}`, `{"method":"x","deadlineMs":9000000000000}`} {
		if r, err := ParseRequest([]byte(bad)); err != nil || r.DeadlineMS != 0 {
			t.Errorf("%s: %d, %v", bad, r.DeadlineMS, err)
		}
	}
}

func TestBounds(t *testing.T) {
	long := `{"method":"x","params":"` + strings.Repeat("a", MaxRequest) + `"}`
	for name, err := range map[string]error{
		"a request that is too long":  readers["request"]([]byte(long)),
		"an event that is too long":   readers["event"]([]byte(`{"event":"` + strings.Repeat("a", MaxEvent) + `"}`)),
		"a method that is too long":   readers["request"]([]byte(`{"method":"` + strings.Repeat("a", 200) + `"}`)),
		"a request that is not UTF-8": readers["request"]([]byte("{\"method\":\"a\xff\"}")),
	} {
		if !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	a := Audit{Params: bytes.Repeat([]byte("1"), MaxAuditParams+1)}.Bound()
	if a.Params != nil || a.Omitted != MaxAuditParams+1 {
		t.Errorf("%d bytes, %d omitted", len(a.Params), a.Omitted)
	}
	if a := (Audit{Params: []byte("1")}).Bound(); string(a.Params) != "1" || a.Omitted != 0 {
		t.Errorf("%+v", a)
	}
	if got := (Step{Index: 3, Indexed: true}).String() + (Step{Name: "x"}).String(); got != "3x" {
		t.Error(got)
	}
}

func FuzzRequest(f *testing.F) {
	for _, c := range wiretest.Cases(f, "commands.json") {
		f.Add([]byte(c.Data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, read := range readers {
			if err := read(data); err != nil && !errors.Is(err, ErrMalformed) {
				t.Errorf("%v is no ErrMalformed", err)
			}
		}
		r, err := ParseRequest(data)
		if err != nil {
			return
		}
		again, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := ParseRequest(again); err != nil || back.Method != r.Method || back.DeadlineMS != r.DeadlineMS {
			t.Errorf("%s came back as %+v, %v", again, back, err)
		}
	})
}
