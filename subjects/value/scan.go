package value

import (
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// scanner walks JSON that is known to be valid, so it needs no errors.
type scanner struct {
	data []byte
	pos  int
}

// peek returns the first byte of the next token without passing it, 0 at the end.
func (s *scanner) peek() byte {
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

// raw passes the next value and returns its text.
func (s *scanner) raw() []byte {
	first := s.peek()
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

func (s *scanner) passString() {
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

func (s *scanner) passContainer() {
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

func (s *scanner) passLiteral() {
	for ; s.pos < len(s.data); s.pos++ {
		switch s.data[s.pos] {
		case ' ', '\t', '\n', '\r', ',', ':', '}', ']':
			return
		}
	}
}

// members calls f for each member of the next object; f must pass the value.
func (s *scanner) members(f func(key string)) {
	s.peek()
	for s.pos++; s.peek() == '"'; {
		key := unquote(s.raw())
		f(key)
	}
	s.pos++
}

// elements calls f for each element of the next array; f must pass it.
func (s *scanner) elements(f func()) {
	s.peek()
	for s.pos++; s.peek() != ']' && s.pos < len(s.data); {
		f()
	}
	s.pos++
}

// unquote returns the text of a JSON string, as valid UTF-8.
func unquote(raw []byte) string {
	for _, c := range raw {
		if c == '\\' || c >= utf8.RuneSelf {
			var s string
			_ = json.Unmarshal(raw, &s) // the text is known to be valid
			return s
		}
	}
	return string(raw[1 : len(raw)-1])
}

func isNumberStart(c byte) bool { return c == '-' || c >= '0' && c <= '9' }

// number reads the next number as JavaScript writes it. Where wide is set, an
// integer that a JavaScript number does not hold exactly is a bigint.
func (s *scanner) number(wide bool) Value {
	text := string(s.raw())
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && text != "-0" {
		if v := ofInt(n); wide || v.Kind == Number {
			return v
		}
	} else if wide && isDigits(text) && len(text) <= MaxString {
		return Value{Kind: BigInt, Text: text}
	}
	f, _ := strconv.ParseFloat(text, 64) // out of range means infinity
	return ofFloat(f, 64)
}

// isDigits reports whether text is an integer of at least two digits, perhaps negative.
func isDigits(text string) bool {
	if text != "" && text[0] == '-' {
		text = text[1:]
	}
	if len(text) < 2 {
		return false
	}
	for i := 0; i < len(text); i++ {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return true
}

// plain reads the next value as an application's data, in which Tag means
// nothing, at a depth as read does.
func (s *scanner) plain(depth int) Value {
	switch c := s.peek(); {
	case c == '{' || c == '[':
		limit := MaxEntries
		switch depth {
		case inContainer:
			limit = previewEntries
		case inPreview:
			limit = 0
		}
		v := s.plainContainer(c, depth, limit)
		if depth == inContainer {
			return dehydrate(v)
		}
		return v
	case c == '"':
		return ofString(unquote(s.raw()))
	case isNumberStart(c):
		return s.number(true)
	}
	return literal(s.raw())
}

func (s *scanner) plainContainer(first byte, depth, limit int) Value {
	out := Value{Kind: Array}
	if first == '[' {
		s.elements(func() {
			if out.Size++; out.Size > limit {
				s.raw()
				return
			}
			out.Items = append(out.Items, s.plain(depth+1))
		})
	} else {
		out.Kind = Object
		s.members(func(key string) {
			if out.Size++; out.Size > limit {
				s.raw()
				return
			}
			out.Fields = append(out.Fields, Field{ellipsis(key, MaxString), s.plain(depth + 1)})
		})
	}
	out.Partial = out.Size > limit
	return out
}

// literal reads true, false or null.
func literal(raw []byte) Value {
	if text := string(raw); text == "true" || text == "false" {
		return Value{Kind: Bool, Text: text}
	}
	return Value{Kind: Null}
}
