package httpcap

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/natscope/natscope/subjects/network"
)

// events parses a stream that comes in pieces of a size.
func events(stream string, piece int) (out []network.Message) {
	p := eventParser{emit: func(m network.Message) { out = append(out, m) }}
	for len(stream) > 0 {
		n := min(piece, len(stream))
		p.write([]byte(stream[:n]))
		stream = stream[n:]
	}
	return out
}

func TestEvents(t *testing.T) {
	for name, c := range map[string]struct {
		stream string
		want   []network.Message
	}{
		"one":                    {"data: hello\n\n", []network.Message{{Event: "message", Data: "hello"}}},
		"without a space":        {"data:hello\n\ndata:  two\n\n", []network.Message{{Event: "message", Data: "hello"}, {Event: "message", Data: " two"}}},
		"lines of all kinds":     {"data: a\rdata: b\r\ndata: c\n\r\n", []network.Message{{Event: "message", Data: "a\nb\nc"}}},
		"carriage returns only":  {"data: a\r\rdata: b\r\r", []network.Message{{Event: "message", Data: "a"}, {Event: "message", Data: "b"}}},
		"a byte order mark":      {"\xef\xbb\xbfdata: a\n\n", []network.Message{{Event: "message", Data: "a"}}},
		"a second one":           {"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\ndata: b\n\n", []network.Message{{Event: "message", Data: "b"}}},
		"half a mark":            {"\xef\xbbdata: a\n\ndata: b\n\n", []network.Message{{Event: "message", Data: "b"}}},
		"all fields":             {"event: price\nid: 7\nretry: 3000\ndata: {\n\n", []network.Message{{Event: "price", EventID: "7", Retry: 3000, Data: "{"}}},
		"the id stays":           {"id: 7\ndata: a\n\ndata: b\n\nid\ndata: c\n\n", []network.Message{{Event: "message", EventID: "7", Data: "a"}, {Event: "message", EventID: "7", Data: "b"}, {Event: "message", Data: "c"}}},
		"an id with a null":      {"id: a\x00b\ndata: a\n\n", []network.Message{{Event: "message", Data: "a"}}},
		"a retry that is none":   {"retry: 3s\nretry: +3\nretry: -1\nretry:\ndata: a\n\n", []network.Message{{Event: "message", Data: "a"}}},
		"comments and strangers": {": keep alive\n\n: x\nfoo: bar\ndata: a\n\n", []network.Message{{Event: "message", Data: "a"}}},
		"no data":                {"event: price\nid: 4\n\ndata: a\n\n", []network.Message{{Event: "message", EventID: "4", Data: "a"}}},
		"empty data":             {"data\n\ndata:\ndata\n\n", []network.Message{{Event: "message"}, {Event: "message", Data: "\n"}}},
		"unfinished":             {"data: a\n", nil},
		"not UTF-8":              {"data: a\xffb\n\n", []network.Message{{Event: "message", Data: "a\uFFFDb"}}},
	} {
		for _, piece := range []int{1, 2, 3, len(c.stream)} {
			if got := events(c.stream, piece); fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", c.want) {
				t.Errorf("%s, in pieces of %d: %+v, want %+v", name, piece, got, c.want)
			}
		}
	}
}

func TestLongEvents(t *testing.T) {
	long := strings.Repeat("€", 50_000)
	got := events("data: "+long+"\ndata: more\n\ndata: next\n\n", 1000)
	if len(got) != 2 || got[0].Bytes != int64(len(long)+5) || !strings.HasPrefix(long, got[0].Data) || len(got[0].Data) < maxMessage-3 || got[1].Data != "next" || got[1].Bytes != 0 {
		t.Errorf("%d events, the first with %d of %d bytes", len(got), len(got[0].Data), got[0].Bytes)
	}
}

func FuzzEvents(f *testing.F) {
	f.Add("\xef\xbb\xbfid: 1\r\nevent: x\rdata: a\n\ndata\n\n", 3)
	f.Fuzz(func(t *testing.T, stream string, piece int) {
		whole := events(stream, len(stream)+1)
		if got := events(stream, 1+piece&7); fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", whole) {
			t.Fatalf("in pieces %+v, whole %+v", got, whole)
		}
		for _, m := range whole {
			if len(m.Data) > 3*maxMessage || !utf8.ValidString(m.Data) || !utf8.ValidString(m.Event) || !utf8.ValidString(m.EventID) {
				t.Fatalf("event %+v", m)
			}
		}
	})
}
