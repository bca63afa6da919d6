package httpcap

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"github.com/natscope/natscope/subjects/network"
)

// maxMessage is how many bytes of one message, server-sent event or WebSocket,
// are told; the size of longer ones is told with their beginning.
const maxMessage = 64 << 10

// eventParser splits a text/event-stream into events by the rules of the HTML
// standard, however its bytes are cut into pieces. It keeps one line and one
// event, both bounded.
type eventParser struct {
	// emit takes each event, whose id the caller fills in.
	emit func(network.Message)

	started bool
	// bom counts the bytes of a byte order mark that came at the start.
	bom int
	// cr says that the last byte ended a line as a carriage return, so that a line feed belongs to it.
	cr   bool
	line []byte
	// lineSize counts the bytes of the line, kept or not.
	lineSize int

	data     []byte
	dataSize int
	hasData  bool
	event    string
	lastID   string
	retry    int64
}

const mark = "\xef\xbb\xbf"

// write takes the next bytes of the stream.
func (p *eventParser) write(b []byte) {
	for !p.started && len(b) > 0 {
		if b[0] != mark[p.bom] {
			p.started = true
			p.add([]byte(mark[:p.bom]))
			break
		}
		b = b[1:]
		if p.bom++; p.bom == len(mark) {
			p.started = true
		}
	}
	for len(b) > 0 {
		if p.cr {
			if p.cr = false; b[0] == '\n' {
				b = b[1:]
				continue
			}
		}
		at := bytes.IndexAny(b, "\r\n")
		if at < 0 {
			p.add(b)
			return
		}
		p.add(b[:at])
		p.cr = b[at] == '\r'
		b = b[at+1:]
		p.endLine()
	}
}

func (p *eventParser) add(b []byte) {
	p.lineSize += len(b)
	if room := maxMessage + 16 - len(p.line); room > 0 {
		p.line = append(p.line, b[:min(len(b), room)]...)
	}
}

// endLine processes one line.
func (p *eventParser) endLine() {
	line, size := p.line, p.lineSize
	p.line, p.lineSize = p.line[:0], 0
	if size == 0 {
		p.dispatch()
		return
	}
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "data":
		if p.hasData {
			p.append([]byte("\n"), 1)
		}
		p.hasData = true
		p.append(value, len(value)+size-len(line))
	case "event":
		p.event = wellFormed(value)
	case "id":
		if bytes.IndexByte(value, 0) < 0 {
			p.lastID = wellFormed(value[:min(len(value), 1024)])
		}
	case "retry":
		if n, err := strconv.ParseUint(string(value), 10, 52); err == nil && value[0] != '+' {
			p.retry = int64(n)
		}
	}
}

func (p *eventParser) append(b []byte, size int) {
	p.dataSize += size
	if room := maxMessage - len(p.data); room > 0 {
		p.data = append(p.data, b[:min(len(b), room)]...)
	}
}

// dispatch ends an event at an empty line. One without data is none.
func (p *eventParser) dispatch() {
	if p.hasData {
		m := network.Message{Event: p.event, EventID: p.lastID, Retry: p.retry}
		if m.Event == "" {
			m.Event = "message"
		}
		if p.dataSize > len(p.data) {
			m.Bytes = int64(p.dataSize)
			p.data = wholeRunes(p.data)
		}
		m.Data = wellFormed(p.data)
		p.emit(m)
	}
	p.data, p.dataSize, p.hasData, p.event, p.retry = p.data[:0], 0, false, "", 0
}

// wellFormed returns b as UTF-8, decoded as the standard wants it.
func wellFormed(b []byte) string { return string(bytes.ToValidUTF8(b, []byte("\uFFFD"))) }

// wholeRunes leaves out the beginning of a character at the end of text that was cut.
func wholeRunes(b []byte) []byte {
	for back := 1; back < utf8.UTFMax && back <= len(b); back++ {
		if at := len(b) - back; utf8.RuneStart(b[at]) {
			if !utf8.FullRune(b[at:]) {
				return b[:at]
			}
			return b
		}
	}
	return b
}
