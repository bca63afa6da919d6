package v8

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strconv"

	"github.com/natscope/natscope/subjects/realm"
)

// The bounds of one message of an engine.
const (
	// maxMessage is the most bytes of one that is kept. An answer that is longer
	// reaches nobody in any case, and an engine can make one of half a gigabyte.
	maxMessage = realm.MaxAnswer + 1<<20
	// handOver is from where on a message gets the memory that it was read into, instead of a copy.
	handOver = 1 << 20
	// headOf and tailOf are how much of a longer one is looked at, to find out what it was.
	headOf, tailOf = 4 << 10, 4 << 10
)

// read takes messages until the connection ends.
func (l *link) read() {
	defer close(l.closed)
	var buf bytes.Buffer
	var err error
	for {
		_, r, e := l.ws.NextReader()
		if e == nil {
			buf.Reset()
			_, e = buf.ReadFrom(io.LimitReader(r, maxMessage+1))
		}
		if e == nil && buf.Len() > maxMessage {
			e = l.overlong(&buf, r)
			buf = bytes.Buffer{}
		} else if e == nil {
			data := buf.Bytes()
			if len(data) > handOver {
				buf = bytes.Buffer{}
			} else {
				data = bytes.Clone(data)
			}
			l.receive(data)
		}
		if e != nil {
			err = fmt.Errorf("%w: %w", errHungUp, e)
			break
		}
	}
	l.close()
	l.end(err)
}

// overlong reads a message to its end and takes another one in its place.
func (l *link) overlong(buf *bytes.Buffer, r io.Reader) error {
	head := bytes.Clone(buf.Bytes()[:headOf])
	last := tail{kept: append(make([]byte, 0, 2*tailOf), buf.Bytes()[buf.Len()-tailOf:]...), size: buf.Len()}
	*buf = bytes.Buffer{} // Its memory is free from here on.
	if _, err := io.Copy(&last, r); err != nil {
		return err
	}
	if data := substitute(head, last.kept, last.size); data != nil {
		l.receive(data)
	}
	return nil
}

// tail is a Writer that keeps the end of what it is given.
type tail struct {
	kept []byte
	size int
}

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.size += len(p)
	if len(p) >= tailOf {
		t.kept = append(t.kept[:0], p[len(p)-tailOf:]...)
		return len(p), nil
	}
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - tailOf; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}

// codeOverlong marks an answer that was too long; engines have no such code.
const codeOverlong = 1

var (
	answerHead  = regexp.MustCompile(`^\{"id":(\d+)`)
	consoleHead = regexp.MustCompile(`^\{"method":"Runtime\.consoleAPICalled","params":\{"type":"(\w+)"`)
	nestedHead  = regexp.MustCompile(`^\{"method":"NodeWorker\.receivedMessageFromWorker","params":\{"sessionId":"(\w+)","message":"`)
	sessionTail = regexp.MustCompile(`"sessionId":"(\w+)"\}$`)
	contextTail = regexp.MustCompile(`"executionContextId":(\d+)`)
)

// substitute makes the message that stands for one that is too long, of its head
// and its tail; nil if nobody need hear of it.
func substitute(head, tail []byte, size int) []byte {
	if m := nestedHead.FindSubmatch(head); m != nil {
		// The thread's message is a string in here, of which quotes are all that is escaped at its beginning.
		inner := substitute(bytes.ReplaceAll(head[len(m[0]):], []byte(`\"`), []byte(`"`)), bytes.ReplaceAll(tail, []byte(`\"`), []byte(`"`)), size)
		if inner == nil {
			return nil
		}
		data, _ := json.Marshal(map[string]any{"method": "NodeWorker.receivedMessageFromWorker", "params": map[string]string{"sessionId": string(m[1]), "message": string(inner)}})
		return data
	}
	out := make(map[string]any)
	if m := sessionTail.FindSubmatch(tail); m != nil {
		out["sessionId"] = string(m[1])
	}
	switch {
	case answerHead.Match(head):
		out["id"] = json.RawMessage(answerHead.FindSubmatch(head)[1])
		out["error"] = protocolError{Code: codeOverlong, Message: fmt.Sprintf("the program's answer has %d bytes; ask for less", size)}
	case consoleHead.Match(head):
		context := 0
		if m := contextTail.FindAllSubmatch(tail, -1); m != nil {
			context, _ = strconv.Atoi(string(m[len(m)-1][1]))
		}
		out["method"] = "Runtime.consoleAPICalled"
		out["params"] = map[string]any{
			"type": string(consoleHead.FindSubmatch(head)[1]), "executionContextId": context, "timestamp": nowMillis(),
			"args": []any{map[string]string{"type": "string", "value": fmt.Sprintf("(a message of %d bytes, which is too long to be shown)", size)}},
		}
	default:
		return nil
	}
	data, _ := json.Marshal(out)
	return data
}
