package ingest

import (
	"io/fs"
	"reflect"
	"strings"
	"testing"

	"github.com/natscope/natscope/producer/client"
)

// TestProtocolIsTheClients compares the names of both sides' protocol files.
func TestProtocolIsTheClients(t *testing.T) {
	var text strings.Builder
	for _, name := range []string{"shared/protocol.js", "shared/client.js", "shared/link.js", "shared/outbox.js", "shared/commands.js", "shared/realm.js", "shared/questions.js"} {
		data, err := fs.ReadFile(client.Files(), name)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(data)
	}
	js := text.String()
	for _, kind := range []string{MsgHello, MsgRecords, MsgBody, MsgUpdate, MsgPing, MsgPong, MsgBye, MsgWelcome, MsgRejected, MsgAck, MsgResnapshot, MsgProblem, MsgCommand, MsgAnswer, MsgPart, MsgAsk, MsgReply, MsgEvent} {
		if !strings.Contains(js, "'"+kind+"'") {
			t.Errorf("the client knows no message %q", kind)
		}
	}
	for _, v := range []any{Hello{}, Records{}, BodyPart{}, Bye{}, Welcome{}, PageLimits{}, Rejected{}, Ack{}, Problem{}, Command{}, CommandAnswer{}, AnswerPart{}, PageQuestion{}, Reply{}, PageEvent{}} {
		for f := range reflect.TypeOf(v).Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if !strings.Contains(js, name) {
				t.Errorf("the client knows no field %q of %T", name, v)
			}
		}
	}
	if !strings.Contains(js, "export const VERSION = 1;") || ProtocolVersion != 1 {
		t.Error("the versions differ")
	}
}
