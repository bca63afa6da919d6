// Package jsonwalk walks JSON that is known to be valid, without decoding what is
// not asked for. It knows nothing of what the JSON means.
package jsonwalk

import (
	"encoding/json"
	"unicode/utf8"
)

// Scanner is a place in a valid JSON text. It returns no errors; text that is not
// valid gives values that mean nothing, and an end.
type Scanner struct {
	data []byte
	pos  int
}

// New returns a scanner at the beginning of data, which it keeps and does not change.
func New(data []byte) Scanner { return Scanner{data: data} }

// Peek returns the first byte of the next token without passing it, 0 at the end.
func (s *Scanner) Peek() byte {
	for s.pos < len(s.data) {
		switch c := s.data[s.pos]; c {
		case ' ', '\t', '\n', '\r', ',', ':':
			s.pos++
		default:
			return c
		}
	}
	return 0
}

// Raw passes the next value and returns its text, which is part of the data.
func (s *Scanner) Raw() []byte {
	first := s.Peek()
	from := s.pos
	switch {
	case first == '"':
		s.passString()
	case first == '{' || first == '[':
		s.passContainer()
	default:
		s.passLiteral()
	}
	return s.data[from:s.pos]
}

func (s *Scanner) passString() {
	for s.pos++; s.pos < len(s.data); s.pos++ {
		switch s.data[s.pos] {
		case '\\':
			s.pos++
		case '"':
			s.pos++
			return
		}
	}
}

func (s *Scanner) passContainer() {
	depth := 0
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case '"':
			s.passString()
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if s.pos++; depth == 0 {
			return
		}
	}
}

func (s *Scanner) passLiteral() {
	for ; s.pos < len(s.data); s.pos++ {
		switch s.data[s.pos] {
		case ' ', '\t', '\n', '\r', ',', ':', '}', ']':
			return
		}
	}
}

// Members calls f for each member of the next value, which is an object; f must pass the member's value.
func (s *Scanner) Members(f func(key string)) {
	s.Peek()
	for s.pos++; s.Peek() == '"'; {
		f(Unquote(s.Raw()))
	}
	s.pos++
}

// Elements calls f for each element of the next value, which is an array; f must pass it.
func (s *Scanner) Elements(f func()) {
	s.Peek()
	for s.pos++; s.Peek() != ']' && s.pos < len(s.data); {
		f()
	}
	s.pos++
}

// Unquote returns what a JSON string says, as valid UTF-8.
func Unquote(raw []byte) string {
	for _, c := range raw {
		if c == '\\' || c >= utf8.RuneSelf {
			var s string
			_ = json.Unmarshal(raw, &s) // the text is known to be valid
			return s
		}
	}
	return string(raw[1 : len(raw)-1])
}
