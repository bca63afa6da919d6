package httpcap

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
)

// wsFrame encodes one frame.
func wsFrame(first byte, payload string, mask bool) string {
	b := []byte{first}
	bit := byte(0)
	if mask {
		bit = 0x80
	}
	switch n := len(payload); {
	case n < 126:
		b = append(b, bit|byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, bit|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, bit|127), uint64(n))
	}
	if !mask {
		return string(b) + payload
	}
	key := [4]byte{1, 2, 3, 250}
	b = append(b, key[:]...)
	for i := range len(payload) {
		b = append(b, payload[i]^key[i&3])
	}
	return string(b)
}

// frames parses a wire that comes in pieces of a size.
func parseFrames(wire string, piece int) (out []string, broken bool) {
	p := frameParser{emit: nil}
	p.emit = func(m wsMessage) {
		out = append(out, fmt.Sprintf("%d %d %.40q unread=%t", m.op, m.size, m.data, m.unread))
	}
	for len(wire) > 0 {
		n := min(piece, len(wire))
		p.write([]byte(wire[:n]))
		wire = wire[n:]
	}
	return out, p.broken
}

func TestFrames(t *testing.T) {
	long := strings.Repeat("0123456789", 20_000)
	var z bytes.Buffer
	w, err := flate.NewWriter(&z, flate.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	deflated := func(s string) string {
		z.Reset()
		w.Write([]byte(s))
		w.Flush()
		return strings.TrimSuffix(z.String(), "\x00\x00\xff\xff")
	}
	first, second := deflated("hello hello hello"), deflated("hello hello again")
	for name, c := range map[string]struct {
		wire   string
		want   []string
		broken bool
	}{
		"text":                   {wire: wsFrame(0x81, "hi", false) + wsFrame(0x81, "masked", true), want: []string{`1 2 "hi" unread=false`, `1 6 "masked" unread=false`}},
		"empty":                  {wire: wsFrame(0x82, "", true), want: []string{`2 0 "" unread=false`}},
		"after a handshake":      {wire: "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n" + wsFrame(0x81, "hi", false), want: []string{`1 2 "hi" unread=false`}},
		"after a proxy, too":     {wire: "CONNECT a HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n" + wsFrame(0x82, "\xff", true), want: []string{`2 1 "\xff" unread=false`}},
		"fragments and a ping":   {wire: wsFrame(0x01, "he", true) + wsFrame(0x89, "p", true) + wsFrame(0x00, "ll", true) + wsFrame(0x80, "o", true), want: []string{`9 1 "p" unread=false`, `1 5 "hello" unread=false`}},
		"16 bits of length":      {wire: wsFrame(0x81, long[:500], true), want: []string{fmt.Sprintf("1 500 %.40q unread=false", long)}},
		"64 bits of length":      {wire: wsFrame(0x81, long, false) + wsFrame(0x88, "\x03\xe8bye", false), want: []string{fmt.Sprintf("1 200000 %.40q unread=false", long), `8 5 "\x03\xe8bye" unread=false`}},
		"compressed":             {wire: wsFrame(0xc1, first, true) + wsFrame(0xc1, second, true), want: []string{`1 17 "hello hello hello" unread=false`, `1 17 "hello hello again" unread=false`}},
		"compressed in pieces":   {wire: wsFrame(0x41, first[:3], true) + wsFrame(0x80, first[3:], true), want: []string{`1 17 "hello hello hello" unread=false`}},
		"compressed and corrupt": {wire: wsFrame(0xc1, "\xff\xff\xff", true) + wsFrame(0xc1, second, true) + wsFrame(0x81, "plain", true), want: []string{`1 3 "" unread=true`, fmt.Sprintf(`1 %d "" unread=true`, len(second)), `1 5 "plain" unread=false`}},
		"a strange opcode":       {wire: wsFrame(0x83, "x", true) + wsFrame(0x81, "y", true), broken: true},
		"a long ping":            {wire: wsFrame(0x89, long[:200], true), broken: true},
		"a lone continuation":    {wire: wsFrame(0x80, "x", true), broken: true},
		"a negative length":      {wire: "\x81\x7f\xff\xff\xff\xff\xff\xff\xff\xff", broken: true},
		"a handshake in a frame": {wire: wsFrame(0x81, "HTTP/1.1 200 OK\r\n\r\n", false), want: []string{`1 19 "HTTP/1.1 200 OK\r\n\r\n" unread=false`}},
	} {
		for _, piece := range []int{1, 7, 1 << 20} {
			got, broken := parseFrames(c.wire, piece)
			if fmt.Sprint(got) != fmt.Sprint(c.want) || broken != c.broken {
				t.Errorf("%s, in pieces of %d: %q, broken %t, want %q", name, piece, got, broken, c.want)
			}
		}
	}
}

// TestFrameMemory sends a message of 64 MiB and looks at what is kept of it.
func TestFrameMemory(t *testing.T) {
	p := frameParser{}
	var size int64
	p.emit = func(m wsMessage) {
		if size = m.size; len(m.data) != maxMessage {
			t.Errorf("%d bytes are kept", len(m.data))
		}
	}
	p.write([]byte("\x82\x7f\x00\x00\x00\x00\x04\x00\x00\x00"))
	piece := make([]byte, 1<<20)
	for range 64 {
		p.write(piece)
		if cap(p.message.data) > 2*maxMessage {
			t.Fatalf("%d bytes are kept", cap(p.message.data))
		}
	}
	if size != 64<<20 {
		t.Errorf("the message has %d bytes", size)
	}
}

func FuzzFrames(f *testing.F) {
	f.Add("HTTP/1.1 101\r\n\r\n"+wsFrame(0x01, "he", true)+wsFrame(0x89, "p", false)+wsFrame(0x80, "o", true), 3)
	f.Add(wsFrame(0xc1, "\xca\x48\xcd\xc9\xc9\x07\x00", true), 1)
	f.Fuzz(func(t *testing.T, wire string, piece int) {
		whole, broken := parseFrames(wire, len(wire)+1)
		got, b := parseFrames(wire, 1+piece&15)
		if fmt.Sprint(got) != fmt.Sprint(whole) || b != broken {
			t.Fatalf("in pieces %q %t, whole %q %t", got, b, whole, broken)
		}
	})
}
