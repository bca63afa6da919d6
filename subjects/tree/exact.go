package tree

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// exact checks the nodes of a record of the cordis profile for fields that they
// must not have, also those that a later version may add: nothing of an
// application's own data may slip into this tree. data is valid JSON that was
// decoded before.
func exact(topic string, data json.RawMessage) error {
	type carrier struct {
		Node json.RawMessage `json:"node"`
	}
	var r struct {
		Root  json.RawMessage `json:"root"`
		Ops   []carrier       `json:"ops"`
		Nodes []carrier       `json:"nodes"`
	}
	if err := decode(topic, data, &r); err != nil {
		return err
	}
	if err := exactNode(r.Root); err != nil {
		return err
	}
	for _, list := range [][]carrier{r.Ops, r.Nodes} {
		for i := range list {
			if err := exactNode(list[i].Node); err != nil {
				return err
			}
		}
	}
	return nil
}

// exactNode checks one node and all below it.
func exactNode(raw json.RawMessage) error {
	if len(raw) == 0 {
		return nil
	}
	s := scanner{data: raw}
	return s.node()
}

// scanner walks valid JSON once, so it needs no errors of its own.
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

// skip passes one value and returns its text.
func (s *scanner) skip() []byte {
	first := s.peek()
	from := s.pos
	depth := 0
	for s.pos < len(s.data) {
		c := s.data[s.pos]
		switch {
		case c == '"':
			s.passString()
			if depth == 0 {
				return s.data[from:s.pos]
			}
			continue
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth == 0 {
				return s.data[from:s.pos]
			}
			if depth--; depth == 0 {
				s.pos++
				return s.data[from:s.pos]
			}
		case depth == 0 && first != '{' && first != '[' && (c == ',' || c <= ' '):
			return s.data[from:s.pos]
		}
		s.pos++
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

// node checks the fields of a node, and goes on with its children. What is no
// object was refused, or ignored, when it was decoded.
func (s *scanner) node() error {
	if s.peek() != '{' {
		s.skip()
		return nil
	}
	s.pos++
	var id []byte
	var odd string
	known := true
	for s.peek() == '"' {
		switch name := unquoted(s.skip()); name {
		case "id":
			id = s.skip()
		case "children":
			if err := s.children(); err != nil {
				return err
			}
		case "kind", "name", "attrs", "object":
			s.skip()
		default:
			known, odd = false, name
			s.skip()
		}
	}
	s.pos++
	if !known {
		return fmt.Errorf("%w: %.40q of node %.20s: a cordis node has no such field", ErrPayload, odd, id)
	}
	return nil
}

// unquoted returns the text of a JSON string.
func unquoted(raw []byte) string {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	var text string
	// A valid string can be decoded.
	_ = json.Unmarshal(raw, &text)
	return text
}

func (s *scanner) children() error {
	if s.peek() != '[' {
		s.skip()
		return nil
	}
	s.pos++
	for {
		switch c := s.peek(); c {
		case 0:
			return nil
		case ']':
			s.pos++
			return nil
		}
		if err := s.node(); err != nil {
			return err
		}
	}
}
