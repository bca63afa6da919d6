package producer

import (
	"encoding/json"
	"fmt"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/console"
	"github.com/natscope/natscope/subjects/network"
	"github.com/natscope/natscope/subjects/tree"
)

// The parts that remain of a record that is cut.
const (
	shrunkArgs    = 64
	shrunkFrames  = 20
	shrunkHeaders = 64
	shrunkText    = 1 << 10
)

// shrink returns a form of data that is at most limit bytes long and still
// means something on its plane; where there is none, a marker that says how large the record was.
func shrink(plane subjects.Plane, topic string, data []byte, limit int) []byte {
	var out []byte
	switch plane {
	case subjects.PlaneConsole:
		out = shrinkConsole(topic, data, limit)
	case subjects.PlaneNet:
		out = shrinkNet(topic, data, limit)
	case subjects.PlaneTree:
		out = shrinkTree(topic, data, limit)
	}
	if out == nil || len(out) > limit {
		return truncated(topic, len(data))
	}
	return out
}

// reshape decodes data, lets f cut it and encodes it again; nil when that fails.
func reshape[T any](data []byte, f func(*T)) []byte {
	var v T
	if json.Unmarshal(data, &v) != nil {
		return nil
	}
	f(&v)
	out, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return out
}

func shrinkConsole(topic string, data []byte, limit int) []byte {
	switch topic {
	case console.TopicMessage:
		return reshape(data, func(m *console.Message) {
			m.Args = m.Args[:min(len(m.Args), shrunkArgs)]
			budget := max(limit/2/max(len(m.Args), 1), 128)
			for i, a := range m.Args {
				if len(a) > budget {
					m.Args[i] = preview(a, budget)
				}
			}
			m.Stack = cutStack(m.Stack)
			m.Logger, m.Trace = cutText(m.Logger, shrunkText), cutText(m.Trace, shrunkText)
		})
	case console.TopicException:
		return reshape(data, func(x *console.Exception) {
			x.Text, x.URL = cutText(x.Text, shrunkText), cutText(x.URL, shrunkText)
			if len(x.Value) > limit/2 {
				x.Value = preview(x.Value, limit/2)
			}
			x.Stack = cutStack(x.Stack)
		})
	}
	return nil
}

// preview is the encoded value (package value) that stands for one that is too long.
func preview(arg json.RawMessage, budget int) json.RawMessage {
	var text string
	if json.Unmarshal(arg, &text) == nil {
		// A character takes up to six bytes when it is quoted.
		head := cutText(text, max(budget/6-16, 16))
		b, _ := json.Marshal(map[string]any{tag: "string", "head": head, "length": len([]rune(text))})
		return b
	}
	kind := "object"
	if len(arg) > 0 && arg[0] == '[' {
		kind = "array"
	}
	b, _ := json.Marshal(map[string]any{
		tag: "dehydrated", "type": kind, "preview": fmt.Sprintf("%d bytes, too large to be recorded", len(arg)), "size": 0, "opaque": true,
	})
	return b
}

func cutStack(s []network.Frame) []network.Frame {
	s = s[:min(len(s), shrunkFrames)]
	for i := range s {
		s[i].Function, s[i].URL = cutText(s[i].Function, 512), cutText(s[i].URL, 512)
	}
	return s
}

func shrinkNet(topic string, data []byte, limit int) []byte {
	switch topic {
	case network.TopicStart:
		return reshape(data, func(s *network.Start) {
			s.Headers, s.Stack = cutHeaders(s.Headers, len(data)), cutStack(s.Stack)
			s.URL, s.DocumentURL = cutText(s.URL, 4*shrunkText), cutText(s.DocumentURL, shrunkText)
			s.Method, s.Trace = cutText(s.Method, 64), cutText(s.Trace, shrunkText)
		})
	case network.TopicResponse:
		return reshape(data, func(r *network.Response) {
			r.Headers, r.RequestHeaders = cutHeaders(r.Headers, len(data)), cutHeaders(r.RequestHeaders, len(data))
			r.URL, r.StatusText = cutText(r.URL, 4*shrunkText), cutText(r.StatusText, shrunkText)
		})
	case network.TopicMessage:
		return reshape(data, func(m *network.Message) {
			note := fmt.Sprintf(" … cut, %d bytes in all", len(m.Data))
			m.Event, m.EventID = cutText(m.Event, shrunkText), cutText(m.EventID, shrunkText)
			if m.Base64 {
				m.Data = cutText(m.Data, limit/2/4*4)
				return
			}
			m.Data = cutText(m.Data, limit/6) + note
		})
	case network.TopicEnd:
		return reshape(data, func(e *network.End) { e.Error = cutText(e.Error, shrunkText) })
	case network.TopicError:
		return reshape(data, func(e *network.Error) { e.Text = cutText(e.Text, shrunkText) })
	}
	return nil
}

// cutHeaders shortens headers and adds one that says so.
func cutHeaders(h []network.Header, size int) []network.Header {
	if len(h) == 0 {
		return h
	}
	h = h[:min(len(h), shrunkHeaders)]
	for i := range h {
		h[i] = network.Header{cutText(h[i][0], 256), cutText(h[i][1], shrunkText)}
	}
	return append(h, network.Header{"natscope-truncated", fmt.Sprintf("the record had %d bytes", size)})
}

// shrinkTree cuts trailing branches off a snapshot.
func shrinkTree(topic string, data []byte, limit int) []byte {
	if topic != tree.TopicSnapshot {
		return nil
	}
	return reshape(data, func(s *tree.Snapshot) {
		budget := limit - 512
		s.Truncated = true
		if s.Root != nil {
			pruneNode(s.Root, &budget)
		}
	})
}

// pruneNode keeps n and as much below it as the budget allows, in order.
func pruneNode(n *tree.Node, budget *int) {
	children := n.Children
	n.Children = nil
	*budget -= nodeSize(n)
	for i := range children {
		if *budget <= 0 || nodeSize(&tree.Node{ID: children[i].ID, Name: children[i].Name, Kind: children[i].Kind, Attrs: children[i].Attrs, Text: children[i].Text, Values: children[i].Values}) > *budget {
			return
		}
		pruneNode(&children[i], budget)
		n.Children = append(n.Children, children[i])
	}
}

// nodeSize is about how many bytes a node without its children has as JSON.
func nodeSize(n *tree.Node) int {
	own := *n
	own.Children = nil
	b, err := json.Marshal(own)
	if err != nil {
		return 1 << 30
	}
	return len(b) + len(`,"children":[],`)
}
