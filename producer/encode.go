package producer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// maxTopic is the longest topic of a record, in bytes; longer ones are cut.
const maxTopic = 256

// lineOverhead is the most that a line has besides topic and data, in bytes.
const lineOverhead = 64

// appendLine appends one record as a line of a frame and returns where its
// data begin. data is valid JSON, or empty. The result has exactly one line break, at its end.
func appendLine(dst []byte, t float64, topic string, data []byte) (line []byte, at int) {
	dst = append(dst, `{"t":`...)
	dst = appendMillis(dst, t)
	dst = append(dst, `,"topic":`...)
	dst = appendQuoted(dst, topic)
	at = len(dst)
	if len(data) > 0 {
		dst = append(dst, `,"data":`...)
		at = len(dst)
		dst = append(dst, data...)
		// A raw line break in valid JSON stands between tokens, where a blank is as good.
		for rest := dst[at:]; ; {
			i := bytes.IndexByte(rest, '\n')
			if i < 0 {
				break
			}
			rest[i] = ' '
			rest = rest[i+1:]
		}
	}
	return append(dst, '}', '\n'), at
}

// appendMillis appends a time in milliseconds with microseconds at most. What is no time becomes 0.
func appendMillis(dst []byte, t float64) []byte {
	if !(math.Abs(t) < 1e15) {
		return append(dst, '0')
	}
	us := int64(math.Round(t * 1000))
	if us < 0 {
		dst = append(dst, '-')
		us = -us
	}
	dst = strconv.AppendInt(dst, us/1000, 10)
	frac := us % 1000
	if frac == 0 {
		return dst
	}
	dst = append(dst, '.', byte('0'+frac/100), byte('0'+frac/10%10), byte('0'+frac%10))
	for dst[len(dst)-1] == '0' {
		dst = dst[:len(dst)-1]
	}
	return dst
}

// appendQuoted appends a JSON string.
func appendQuoted(dst []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			q, _ := json.Marshal(strings.ToValidUTF8(s, "\uFFFD"))
			return append(dst, q...)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}

// scratch is a reusable JSON encoder.
type scratch struct {
	buf bytes.Buffer
	enc *json.Encoder
	// repaired says that the last value had bytes that are not UTF-8 and passed encoding/json as they were.
	repaired bool
}

// maxScratch is the largest buffer that waits for reuse, in bytes.
const maxScratch = 64 << 10

var scratches = sync.Pool{New: func() any {
	s := new(scratch)
	s.enc = json.NewEncoder(&s.buf)
	s.enc.SetEscapeHTML(false)
	return s
}}

// encode writes v as one line of JSON without its line break. The bytes are
// valid until free. An error says what cannot be encoded; a panic of the value's own methods is one.
func (s *scratch) encode(v any) (data []byte, err error) {
	s.buf.Reset()
	s.repaired = false
	defer func() {
		if r := recover(); r != nil {
			data, err = nil, fmt.Errorf("encoding %T: panic: %v", v, r)
		}
	}()
	if err := s.enc.Encode(v); err != nil {
		return nil, err
	}
	data = bytes.TrimSuffix(s.buf.Bytes(), []byte{'\n'})
	if tooDeep(data) {
		return nil, fmt.Errorf("encoding %T: it nests more than %d levels", v, maxJSONDepth)
	}
	if !utf8.Valid(data) {
		data, s.repaired = bytes.ToValidUTF8(data, []byte("\uFFFD")), true
	}
	return data, nil
}

// tooDeep reports whether JSON nests more than maxJSONDepth levels. encoding/json
// writes what it would not read, and what no reader of records does.
func tooDeep(data []byte) bool {
	if len(data) <= 2*maxJSONDepth || bytes.Count(data, []byte{'['})+bytes.Count(data, []byte{'{'}) <= maxJSONDepth {
		return false
	}
	return !validJSON(data)
}

// free makes the encoder available again. An encoder that panicked may be in
// any state and must not be freed.
func (s *scratch) free() {
	if s.buf.Cap() <= maxScratch {
		scratches.Put(s)
	}
}

// clean makes data that came from outside fit for a frame: valid UTF-8, and
// valid JSON or a marker that says what was wrong.
func clean(data []byte) []byte {
	if !validJSON(data) {
		return invalid("not valid JSON", len(data))
	}
	if !utf8.Valid(data) {
		return bytes.ToValidUTF8(data, []byte("\uFFFD"))
	}
	return data
}

// tag is the key that marks an object which stands for something else; it is the one of package value.
const tag = "__natscope"

// invalid is the payload in place of one that could not be encoded. size is its length in bytes, or 0.
func invalid(reason string, size int) []byte {
	m := map[string]any{tag: "invalid", "error": cutText(reason, 512)}
	if size > 0 {
		m["bytes"] = size
	}
	b, _ := json.Marshal(m)
	return b
}

// truncated is the payload in place of one that no frame can carry.
func truncated(topic string, size int) []byte {
	b, _ := json.Marshal(map[string]any{tag: "truncated", "bytes": size, "topic": cutText(topic, 128)})
	return b
}

// cleanTopic returns a topic that readers accept.
func cleanTopic(topic string) string {
	switch {
	case topic == "":
		return "unnamed"
	case len(topic) > maxTopic:
		return cutText(topic, maxTopic)
	}
	return topic
}
