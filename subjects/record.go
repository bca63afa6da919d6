package subjects

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/natscope/natscope/subjects/value"
)

// MaxT bounds the times on a source's clock on both sides of zero, in
// milliseconds: about 31 000 years. What readers compute with such times stays finite.
const MaxT = 1e15

// Record is one observation.
type Record struct {
	// T is when it happened: milliseconds on the source's monotonic clock, whose
	// wall-clock origin the descriptor carries. It is within MaxT.
	T float64 `json:"t"`
	// Topic says what Data is; its vocabulary belongs to the plane. It is not empty.
	Topic string `json:"topic"`
	// Data is the payload, any JSON value.
	Data json.RawMessage `json:"data,omitempty"`
}

// AppendRecord appends one record to the body of a frame, as one line of JSON,
// which is valid UTF-8. The error wraps ErrFrame when Data are not JSON, when
// the topic is empty, or when T is not within MaxT.
func AppendRecord(body []byte, r Record) ([]byte, error) {
	switch {
	case r.Topic == "":
		return body, fmt.Errorf("%w: a record has no topic", ErrFrame)
	case !(r.T >= -MaxT && r.T <= MaxT):
		return body, fmt.Errorf("%w: record %.80q: t is %v, not a time in milliseconds", ErrFrame, r.Topic, r.T)
	}
	start := len(body)
	body = strconv.AppendFloat(append(body, `{"t":`...), r.T, 'g', -1, 64)
	body = value.AppendString(append(body, `,"topic":`...), r.Topic)
	if len(r.Data) > 0 {
		if !json.Valid(r.Data) {
			return body[:start], fmt.Errorf("%w: record %.80q: data are not JSON: %.80q", ErrFrame, r.Topic, r.Data)
		}
		body = appendLine(append(body, `,"data":`...), r.Data)
	}
	return append(body, '}', '\n'), nil
}

// appendLine appends JSON on one line and as valid UTF-8. Line breaks can only
// be white space there, since strings have them escaped.
func appendLine(body []byte, data json.RawMessage) []byte {
	if !utf8.Valid(data) {
		data = bytes.ToValidUTF8(data, []byte("\ufffd"))
	}
	from := 0
	for i, c := range data {
		if c == '\n' || c == '\r' {
			body = append(body, data[from:i]...)
			from = i + 1
		}
	}
	return append(body, data[from:]...)
}

// parseRecord reads one line of a frame. The record shares memory with the
// line. topic is that of the line before, which often is the same.
func parseRecord(line []byte, topic string) (Record, error) {
	r, ok := parsePlain(line, topic)
	if !ok {
		if err := json.Unmarshal(line, &r); err != nil {
			return Record{}, err
		}
	}
	if r.Topic == "" {
		return Record{}, errors.New("no topic")
	}
	if r.T < -MaxT || r.T > MaxT {
		return Record{}, fmt.Errorf("t is %v, not a time in milliseconds", r.T)
	}
	return r, nil
}

// parsePlain reads a line that is laid out as AppendRecord does it, which is
// several times faster than reading any JSON. It reports false for every other line.
func parsePlain(line []byte, topic string) (Record, bool) {
	rest, ok := bytes.CutPrefix(line, []byte(`{"t":`))
	if !ok {
		return Record{}, false
	}
	number, rest, ok := bytes.Cut(rest, []byte(`,"topic":"`))
	if !ok || !json.Valid(number) {
		return Record{}, false
	}
	t, err := strconv.ParseFloat(string(number), 64)
	if err != nil {
		return Record{}, false
	}
	name, rest, ok := bytes.Cut(rest, []byte{'"'})
	if !ok || !isPlainText(name) {
		return Record{}, false
	}
	if string(name) != topic {
		topic = string(name)
	}
	if len(rest) == 1 && rest[0] == '}' {
		return Record{T: t, Topic: topic}, true
	}
	data, ok := bytes.CutPrefix(rest, []byte(`,"data":`))
	if !ok {
		return Record{}, false
	}
	data, ok = bytes.CutSuffix(data, []byte{'}'})
	if !ok || !json.Valid(data) {
		return Record{}, false
	}
	return Record{T: t, Topic: topic, Data: data[:len(data):len(data)]}, true
}

// isPlainText reports whether the text of a JSON string stands for itself.
func isPlainText(text []byte) bool {
	for _, c := range text {
		if c < ' ' || c >= utf8.RuneSelf || c == '\\' {
			return false
		}
	}
	return true
}
