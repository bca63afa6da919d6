package tree

import (
	"encoding/json"
	"fmt"

	"github.com/natscope/natscope/subjects/internal/jsonwalk"
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
	s := jsonwalk.New(raw)
	return exactNext(&s)
}

// exactNext checks the fields of the next node, and goes on with its children. What
// is no object was refused, or ignored, when it was decoded.
func exactNext(s *jsonwalk.Scanner) (err error) {
	if s.Peek() != '{' {
		s.Raw()
		return nil
	}
	var id []byte
	odd := ""
	known := true
	s.Members(func(name string) {
		switch name {
		case "id":
			id = s.Raw()
		case "children":
			if e := exactChildren(s); err == nil {
				err = e
			}
		case "kind", "name", "attrs", "object":
			s.Raw()
		default:
			known, odd = false, name
			s.Raw()
		}
	})
	if err == nil && !known {
		err = fmt.Errorf("%w: %.40q of node %.20s: a cordis node has no such field", ErrPayload, odd, id)
	}
	return err
}

func exactChildren(s *jsonwalk.Scanner) (err error) {
	if s.Peek() != '[' {
		s.Raw()
		return nil
	}
	s.Elements(func() {
		if e := exactNext(s); err == nil {
			err = e
		}
	})
	return err
}
