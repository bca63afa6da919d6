package fold

import (
	"cmp"
	"slices"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/tree"
)

// Space is the state of all sources of a space.
type Space struct {
	// Name is the space's name.
	Name subjects.Space
	// Limits bounds what is kept; only the fields about retention matter here.
	Limits subjects.Limits
	// Covered is the sequence of the last message that was folded or passed over.
	Covered subjects.StreamSeq
	// Stray counts messages that belong to no known source and were passed over.
	Stray uint64

	sources map[subjects.SourceID]*Source
	order   []*Source
}

// New returns an empty state.
func New(name subjects.Space, limits subjects.Limits) *Space {
	return &Space{Name: name, Limits: limits.WithDefaults(), sources: make(map[subjects.SourceID]*Source)}
}

// Sources returns all sources in the order in which they first appeared. The caller must not change the slice.
func (s *Space) Sources() []*Source { return s.order }

// Source returns the source with the given id, or nil.
func (s *Space) Source(id subjects.SourceID) *Source { return s.sources[id] }

// Restore adds a source that was rebuilt from storage, in place of one with the same id.
func (s *Space) Restore(src *Source) {
	if old := s.sources[src.ID]; old != nil {
		s.order = slices.DeleteFunc(s.order, func(x *Source) bool { return x == old })
	}
	s.sources[src.ID] = src
	at, _ := slices.BinarySearchFunc(s.order, src, func(a, b *Source) int { return cmp.Compare(a.Element, b.Element) })
	s.order = slices.Insert(s.order, at, src)
}

// Remove evicts a source with everything known of it.
func (s *Space) Remove(id subjects.SourceID) []Change {
	src := s.sources[id]
	if src == nil {
		return nil
	}
	delete(s.sources, id)
	s.order = slices.DeleteFunc(s.order, func(x *Source) bool { return x == src })
	return []Change{{Kind: SourceRemoved, Source: src}}
}

// Node returns the entry with the given id in any source, and its source.
func (s *Space) Node(id tree.BackendNodeID) (*Source, *tree.Entry) {
	for _, src := range s.order {
		if e := src.Tree.Backend(id); e != nil {
			return src, e
		}
	}
	return nil, nil
}

// Message is one message of the record stream, decoded. Decoding needs no
// state, so that a reader does it before it takes its lock.
type Message struct {
	// Name is what the subject says; it is the zero value for a stray message.
	Name  subjects.RecordSubject
	frame subjects.Frame
	err   error
}

// Decode decodes one message. What is wrong with it comes to light when it is applied.
func Decode(subject string, h subjects.Header, data []byte) Message {
	name, err := subjects.ParseRecord(subject)
	if err != nil {
		return Message{}
	}
	m := Message{Name: name}
	m.frame, m.err = subjects.DecodeFrame(h, data)
	return m
}

// Apply folds one message of the record stream and returns what it changed. A
// message that was folded before changes nothing; a malformed one changes
// nothing but the faults of its source.
func (s *Space) Apply(subject string, seq subjects.StreamSeq, h subjects.Header, data []byte) []Change {
	return s.ApplyMessage(seq, Decode(subject, h, data))
}

// ApplyMessage is Apply for a message that was decoded before.
func (s *Space) ApplyMessage(seq subjects.StreamSeq, m Message) []Change {
	if seq > s.Covered {
		s.Covered = seq
	}
	name := m.Name
	if name.Space == "" || name.Space != s.Name {
		s.Stray++
		return nil
	}
	src := s.sources[name.Source]
	if src != nil && seq <= src.Covered {
		return nil
	}
	ids := tree.IDsOf(uint64(seq))
	if m.err != nil {
		if src == nil {
			s.Stray++
			return nil
		}
		src.Covered = seq
		return []Change{src.fault(FaultMalformed, name.Plane, m.err.Error())}
	}
	var changes []Change
	if src == nil {
		element, err := ids.Take()
		if err != nil {
			return nil
		}
		src = &Source{ID: name.Source, Element: element, limits: s.Limits}
		s.Restore(src)
		changes = append(changes, Change{Kind: SourceAdded, Source: src})
	}
	src.Covered = seq
	return src.apply(changes, name, m.frame, ids)
}
