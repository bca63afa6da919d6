package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/natscope/natscope/embedded"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/realm"
)

func TestAuditIsShown(t *testing.T) {
	i, err := embedded.Start(t.Context(), embedded.Options{HTTPAddr: "127.0.0.1:0", NATSAddr: "127.0.0.1:0", Parts: embedded.Parts{Store: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = i.Close(t.Context()) }()
	if out, _, err := command(t, "audit", "--nats", i.NATS()); err != nil || out != "" {
		t.Errorf("an empty audit: %q, %v", out, err)
	}
	for _, a := range []realm.Audit{
		{Time: 1796129036738.5, Gateway: "gw-1", Who: "alice at 10.0.0.7:1234", Source: "orders", Method: realm.MethodEdit, Params: json.RawMessage(`{"id":1,"value":"\u001b[31mred"}`)},
		{Time: 1796129036739, Gateway: "gw-1", Who: "bob\x1b[2J", Source: "orders", Method: "runtime.evaluate", Omitted: 70000},
	} {
		data, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := i.Conn().Request(subjects.Audit("dev", "gw-1"), data, stopWithin); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := i.Conn().Request(subjects.Audit("dev", "gw-1"), []byte("rubbish"), stopWithin); err != nil {
		t.Fatal(err)
	}
	out, _, err := command(t, "audit", "--nats", i.NATS(), "--since", "0")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"WHO", "alice at 10.0.0.7:1234", "tree.edit", `{"id":1`, "bob", "runtime.evaluate", "(70000 bytes)", "cannot be read"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	if strings.Contains(out, "\x1b") {
		t.Errorf("control characters reach the terminal: %q", out)
	}
	out, _, err = command(t, "audit", "--nats", i.NATS(), "-o", "json", "--since", "0")
	if err != nil || strings.Count(out, "\n") != 3 || !strings.Contains(out, `"who":"alice at 10.0.0.7:1234"`) {
		t.Errorf("%v\n%s", err, out)
	}
	if _, _, err := command(t, "audit", "--nats", i.NATS(), "--space", "other"); err == nil || !strings.Contains(err.Error(), "store") {
		t.Errorf("a space without audit: %v", err)
	}
}
