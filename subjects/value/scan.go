package value

import (
	"strconv"

	"github.com/natscope/natscope/subjects/internal/jsonwalk"
)

// scanner reads the values of JSON that is known to be valid.
type scanner struct{ jsonwalk.Scanner }

func scan(data []byte) *scanner { return &scanner{jsonwalk.New(data)} }

func isNumberStart(c byte) bool { return c == '-' || c >= '0' && c <= '9' }

// number reads the next number as JavaScript writes it. Where wide is set, an
// integer that a JavaScript number does not hold exactly is a bigint.
func (s *scanner) number(wide bool) Value {
	text := string(s.Raw())
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
	switch c := s.Peek(); {
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
		return ofString(jsonwalk.Unquote(s.Raw()))
	case isNumberStart(c):
		return s.number(true)
	}
	return literal(s.Raw())
}

func (s *scanner) plainContainer(first byte, depth, limit int) Value {
	out := Value{Kind: Array}
	if first == '[' {
		s.Elements(func() {
			if out.Size++; out.Size > limit {
				s.Raw()
				return
			}
			out.Items = append(out.Items, s.plain(depth+1))
		})
	} else {
		out.Kind = Object
		s.Members(func(key string) {
			if out.Size++; out.Size > limit {
				s.Raw()
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
