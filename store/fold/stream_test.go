package fold_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/store/state"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/tree"
)

// message is one message of a record stream.
type message struct {
	subject string
	header  subjects.Header
	data    []byte
}

// stream writes messages as producers do, and faulty ones.
type stream struct {
	t        testing.TB
	messages []message
	next     map[string]subjects.Seq
}

func newStream(t testing.TB) *stream { return &stream{t: t, next: make(map[string]subjects.Seq)} }

// rec makes a record whose payload is a JSON text.
func rec(topic, data string) subjects.Record {
	return subjects.Record{T: 1, Topic: topic, Data: json.RawMessage(data)}
}

func open(realm string) subjects.Record {
	return rec("open", `{"name":"Shop","kind":"client","realm":"`+realm+`","origin":1000}`)
}

func snapshot(revision int, root string) subjects.Record {
	return rec("snapshot", fmt.Sprintf(`{"version":1,"profile":"component","revision":%d,"root":%s}`, revision, root))
}

func subjectOf(source, generation string, plane subjects.Plane) string {
	return subjects.RecordSubject{Space: "dev", Source: subjects.SourceID(source), Generation: subjects.Generation(generation), Plane: plane}.String()
}

// put appends the next frame of a plane.
func (s *stream) put(source, generation string, plane subjects.Plane, records ...subjects.Record) {
	s.t.Helper()
	name := subjectOf(source, generation, plane)
	if s.next[name] == 0 {
		s.next[name] = 1
	}
	s.putAt(source, generation, plane, s.next[name], 0, records...)
	s.next[name] += subjects.Seq(len(records))
}

// putAt appends a frame with a sequence of its own.
func (s *stream) putAt(source, generation string, plane subjects.Plane, seq subjects.Seq, dropped uint64, records ...subjects.Record) {
	s.t.Helper()
	var body []byte
	for _, r := range records {
		var err error
		if body, err = subjects.AppendRecord(body, r); err != nil {
			s.t.Fatal(err)
		}
	}
	h, data := subjects.EncodeFrame(subjects.FrameInfo{Seq: seq, Count: len(records), Dropped: dropped}, body)
	s.raw(subjectOf(source, generation, plane), h, data)
}

func (s *stream) raw(subject string, h subjects.Header, data []byte) {
	s.messages = append(s.messages, message{subject, h, data})
}

// feed applies messages from a stream sequence on and returns what they changed.
func feed(t testing.TB, space *fold.Space, from int, messages []message) []fold.Change {
	t.Helper()
	var out []fold.Change
	for i, m := range messages {
		out = append(out, space.Apply(m.subject, subjects.StreamSeq(from+i), m.header, m.data)...)
		if err := check(space); err != nil {
			t.Fatalf("after message %d on %s: %v", from+i, m.subject, err)
		}
	}
	return out
}

// fold applies the whole stream to a new space.
func (s *stream) fold() (*fold.Space, []fold.Change) {
	s.t.Helper()
	space := fold.New("dev", subjects.Limits{})
	changes := feed(s.t, space, 1, s.messages)
	return space, changes
}

// kinds writes the kinds of changes in short.
func kinds(changes []fold.Change) string {
	names := map[fold.Kind]string{
		fold.SourceAdded: "added", fold.SourceOpened: "opened", fold.SourceUpdated: "updated", fold.SourceClosed: "closed",
		fold.SourceRemoved: "removed", fold.PresenceChanged: "presence", fold.TreeChanged: "tree", fold.RequestChanged: "request",
		fold.ConsoleAdded: "console", fold.FaultAdded: "fault", fold.EventPublished: "event",
	}
	var out []string
	for _, c := range changes {
		name := names[c.Kind]
		if c.Fault != nil {
			name += ":" + string(c.Fault.Kind)
		}
		if c.SameRealm {
			name += ":same"
		}
		out = append(out, name)
	}
	return strings.Join(out, " ")
}

// dump writes everything that a space holds.
func dump(t testing.TB, space *fold.Space) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "covered %d\n", space.Covered)
	for _, s := range space.Sources() {
		line := func(name string, v any) {
			data, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "%s %s %s\n", s.ID, name, data)
		}
		line("head", []any{s.Element, s.Generation, s.Covered, s.LastT, s.Late, s.Unknown, s.FaultCount, s.Lost(), s.Name()})
		line("life", s.Life)
		line("planes", s.Planes)
		line("faults", s.Faults)
		line("tree", []any{s.Tree.Profile, s.Tree.Revision, s.Tree.Registry, s.Tree.Truncated, s.Tree.Commit, s.Tree.Detached, s.Tree.Len(), s.Tree.Staging()})
		if s.Tree.Root != nil {
			s.Tree.Root.Walk(func(e *tree.Entry) bool {
				line(fmt.Sprintf("node %d at %d", e.Backend, e.Depth()), e.Node)
				return true
			})
		}
		line("history", []uint64{s.Tree.History.Count, s.Tree.History.Dropped})
		for _, c := range s.Tree.History.Commits {
			line("commit", c)
		}
		line("net", []uint64{s.Net.Started, s.Net.Evicted})
		for _, r := range s.Net.Requests {
			line("request", r)
		}
		line("console", []uint64{s.Console.Count, s.Console.Evicted})
		for _, e := range s.Console.Entries {
			line("entry", e)
		}
	}
	return b.String()
}

// restore saves every source as the store does, and rebuilds the space from that.
func restore(t testing.TB, space *fold.Space) *fold.Space {
	t.Helper()
	out := fold.New(space.Name, space.Limits)
	out.Covered, out.Stray = space.Covered, space.Stray
	for _, s := range space.Sources() {
		w, err := state.NewTracker(s, space.Limits).Capture(nil, state.Stream{Name: "x"}).Encode(nil)
		if err != nil {
			t.Fatal(err)
		}
		w.Put[state.HeadPart] = w.Head
		src, _, err := state.Decode(s.ID, w.Put, space.Limits)
		if err != nil {
			t.Fatal(err)
		}
		out.Restore(src)
	}
	return out
}

// check checks everything that holds for every space.
func check(space *fold.Space) error {
	backends := make(map[tree.BackendNodeID]bool)
	element := tree.BackendNodeID(0)
	for _, s := range space.Sources() {
		if space.Source(s.ID) != s || s.Element <= element || s.Covered > space.Covered {
			return fmt.Errorf("source %s is out of order", s.ID)
		}
		element = s.Element
		backends[element] = true
		for p, state := range s.Planes {
			if !p.Known() || state.Next == 0 {
				return fmt.Errorf("source %s has the plane %q at %d", s.ID, p, state.Next)
			}
		}
		l := space.Limits
		if len(s.Faults) > l.Faults || len(s.Net.Requests) > l.Requests || len(s.Console.Entries) > l.ConsoleEntries || s.Tree.Len() > l.ComponentNodes || len(s.Tree.History.Commits) > l.Commits {
			return fmt.Errorf("source %s is over its limits", s.ID)
		}
		if s.FaultCount < uint64(len(s.Faults)) || s.Generation == "" || s.LastT != s.LastT {
			return fmt.Errorf("source %s has %d faults, generation %q, time %v", s.ID, s.FaultCount, s.Generation, s.LastT)
		}
		if s.Tree.Root == nil {
			continue
		}
		nodes := 0
		var failed error
		s.Tree.Root.Walk(func(e *tree.Entry) bool {
			nodes++
			found, entry := space.Node(e.Backend)
			if backends[e.Backend] || found != s || entry != e {
				failed = fmt.Errorf("node %d of source %s is not found, or there twice", e.Backend, s.ID)
			}
			for _, c := range e.Children {
				if c.Parent != e {
					failed = fmt.Errorf("node %d of source %s does not point to its parent", c.Backend, s.ID)
				}
			}
			backends[e.Backend] = true
			return failed == nil
		})
		if failed != nil {
			return failed
		}
		if nodes != s.Tree.Len() {
			return fmt.Errorf("source %s has %d nodes, %d in its index", s.ID, nodes, s.Tree.Len())
		}
	}
	return nil
}
