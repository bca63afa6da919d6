package fold_test

import (
	"strings"
	"testing"

	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
	"github.com/natscope/natscope/subjects/source"
)

const (
	life    = subjects.PlaneLife
	trees   = subjects.PlaneTree
	net     = subjects.PlaneNet
	cons    = subjects.PlaneConsole
	events  = subjects.PlaneEvent
	request = `{"id":"r1","url":"/"}`
	leaf    = `{"id":1,"name":"App"}`
)

func log(text string) subjects.Record { return rec("message", `{"type":"log","args":["`+text+`"]}`) }

// TestSource shows what single situations change.
func TestSource(t *testing.T) {
	type situation struct {
		write func(s *stream)
		want  string
		check func(t *testing.T, s *fold.Source)
	}
	opened := func(s *stream) { s.put("a", "g1", life, open("r")) }
	for name, c := range map[string]situation{
		"a source opens": {opened, "added opened", func(t *testing.T, s *fold.Source) {
			if s.Name() != "Shop" || s.Life.Descriptor.Kind != source.KindClient || s.Planes[life].Next != 2 {
				t.Errorf("%+v", s)
			}
		}},
		"it tells of something": {func(s *stream) {
			opened(s)
			s.put("a", "g1", life, rec("notice", `{"text":"another program asked for the id a"}`), rec("notice", `{}`))
		}, "added opened fault:notice fault:malformed", func(t *testing.T, s *fold.Source) {
			if f := s.Faults[0]; f.Kind != fold.FaultNotice || f.Text != "another program asked for the id a" || s.Faults[1].Kind != fold.FaultMalformed {
				t.Errorf("%+v", s.Faults)
			}
		}},
		"its records": {func(s *stream) {
			opened(s)
			s.put("a", "g1", trees, snapshot(1, leaf))
			s.put("a", "g1", net, rec("start", request))
			s.put("a", "g1", cons, log("x"), log("y"))
			s.put("a", "g1", events, rec("cart.changed", `5`))
			s.put("a", "g1", life, rec("update", `{"title":"T"}`))
		}, "added opened tree request console console event updated", func(t *testing.T, s *fold.Source) {
			r := s.Net.Requests[0]
			if r.Origin != 1000 || s.Console.Entries[0].Wall != 1001 || s.Life.Descriptor.Title != "T" {
				t.Errorf("origin %v, wall %v, title %q", r.Origin, s.Console.Entries[0].Wall, s.Life.Descriptor.Title)
			}
		}},
		"it closes": {func(s *stream) {
			opened(s)
			s.put("a", "g1", net, rec("start", request))
			s.put("a", "g1", life, rec("close", `{}`))
		}, "added opened request closed request", func(t *testing.T, s *fold.Source) {
			if r := s.Net.Requests[0]; r.Ending != network.SourceGone || r.Error.Text != "the source closed" {
				t.Errorf("the request is %+v", r)
			}
		}},
		"it starts again": {func(s *stream) {
			opened(s)
			s.put("a", "g1", trees, snapshot(1, leaf))
			s.put("a", "g1", net, rec("start", request))
			s.put("a", "g2", life, open("r2"))
			s.put("a", "g2", trees, snapshot(1, leaf))
		}, "added opened tree request request opened tree tree", func(t *testing.T, s *fold.Source) {
			if s.Generation != "g2" || s.Planes[net] != nil || s.Tree.Detached || s.Net.Requests[0].Ending != network.SourceGone {
				t.Errorf("%+v", s)
			}
		}},
		"it comes back with its realm": {func(s *stream) {
			opened(s)
			s.put("a", "g1", trees, snapshot(7, leaf))
			s.put("a", "g2", life, open("r"))
			s.put("a", "g2", trees, snapshot(1, leaf))
		}, "added opened tree opened:same", nil},
		"a late goodbye": {func(s *stream) {
			opened(s)
			s.put("a", "g2", life, open("r2"))
			s.put("a", "g1", life, rec("close", `{}`))
			s.put("a", "g1", cons, log("late"))
		}, "added opened opened", func(t *testing.T, s *fold.Source) {
			if s.Life.Closed || s.Late != 2 || s.Console.Count != 0 {
				t.Errorf("%+v", s)
			}
		}},
		"a request of a dead generation": {func(s *stream) {
			opened(s)
			s.put("a", "g1", net, rec("start", request))
			s.put("a", "g2", life, open("r2"))
			s.put("a", "g1", net, rec("error", `{"id":"r1","text":"late"}`))
			s.put("a", "g2", net, rec("error", `{"id":"r1","text":"of another generation"}`))
		}, "added opened request request opened", func(t *testing.T, s *fold.Source) {
			if r := s.Net.Requests[0]; r.Error.Text != "the source began a new generation" {
				t.Errorf("the request ended as %+v", r.Error)
			}
		}},
		"no open": {func(s *stream) {
			s.putAt("a", "g1", net, 500, 0, rec("start", request))
			s.putAt("a", "g1", net, 501, 0, rec("error", `{"id":"r1","text":"x"}`))
			s.putAt("a", "g1", net, 510, 0, rec("start", request))
		}, "added opened fault:unopened request request fault:gap", func(t *testing.T, s *fold.Source) {
			if s.Life.Opened || s.Planes[net].Missed != 8 || s.Name() != "a" || s.Faults[0].T != 0 {
				t.Errorf("%+v", s)
			}
		}},
		"no open of a generation that follows another": {func(s *stream) {
			opened(s)
			s.put("a", "g1", trees, snapshot(1, leaf))
			s.put("a", "g2", cons, log("x"))
		}, "added opened tree opened fault:unopened console", func(t *testing.T, s *fold.Source) {
			if s.Name() != "Shop" || s.Life.Descriptor.Kind != source.KindClient || !s.Tree.Detached {
				t.Errorf("%+v", s)
			}
		}},
		"a malformed open": {func(s *stream) {
			opened(s)
			s.put("a", "g2", life, rec("open", `{"name":"x"}`))
		}, "added opened opened fault:unopened fault:malformed", func(t *testing.T, s *fold.Source) {
			if s.Life.Opened || s.Life.Descriptor.Realm != "g2" {
				t.Errorf("%+v", s.Life)
			}
		}},
		"a frame twice": {func(s *stream) {
			opened(s)
			s.putAt("a", "g1", cons, 1, 0, log("a"), log("b"))
			s.putAt("a", "g1", cons, 1, 0, log("a"), log("b"))
		}, "added opened console console", nil},
		"frames that overlap": {func(s *stream) {
			opened(s)
			s.putAt("a", "g1", cons, 1, 0, log("a"), log("b"))
			s.putAt("a", "g1", cons, 2, 5, log("b"), log("c"))
		}, "added opened console console console", func(t *testing.T, s *fold.Source) {
			if p := s.Planes[cons]; p.Next != 4 || p.Records != 3 || p.Dropped != 0 || string(s.Console.Entries[2].Message.Args[0]) != `"c"` {
				t.Errorf("%+v", p)
			}
		}},
		"a gap": {func(s *stream) {
			opened(s)
			s.putAt("a", "g1", cons, 4, 0, log("d"))
		}, "added opened fault:gap console", func(t *testing.T, s *fold.Source) {
			if s.Planes[cons].Missed != 3 || s.Lost() != 3 || !strings.Contains(s.Faults[0].Text, "3 records of plane console are missing before number 4") || s.Faults[0].T != 1001 {
				t.Errorf("%+v", s.Faults)
			}
		}},
		"dropped records": {func(s *stream) {
			opened(s)
			s.putAt("a", "g1", cons, 4, 3, log("d"))
		}, "added opened fault:dropped console", func(t *testing.T, s *fold.Source) {
			if p := s.Planes[cons]; p.Dropped != 3 || p.Missed != 0 {
				t.Errorf("%+v", p)
			}
		}},
		"dropped and missing records": {func(s *stream) {
			opened(s)
			s.putAt("a", "g1", cons, 6, 2, log("f"))
		}, "added opened fault:dropped fault:gap console", func(t *testing.T, s *fold.Source) {
			if p := s.Planes[cons]; p.Dropped != 2 || p.Missed != 3 {
				t.Errorf("%+v", p)
			}
		}},
		"more dropped than missing": {func(s *stream) {
			opened(s)
			s.putAt("a", "g1", cons, 2, 100, log("b"))
		}, "added opened fault:dropped console", func(t *testing.T, s *fold.Source) {
			if p := s.Planes[cons]; p.Dropped != 1 || p.Missed != 0 {
				t.Errorf("%+v", p)
			}
		}},
		"a malformed frame": {func(s *stream) {
			opened(s)
			s.raw(subjectOf("a", "g1", cons), subjects.Header{}, []byte("x"))
			s.put("a", "g1", cons, log("a"))
		}, "added opened fault:malformed console", nil},
		"a frame of another version": {func(s *stream) {
			opened(s)
			s.raw(subjectOf("a", "g1", cons), subjects.Header{subjects.HeaderVersion: {"2"}}, nil)
		}, "added opened fault:malformed", func(t *testing.T, s *fold.Source) {
			if !strings.Contains(s.Faults[0].Text, "version 2, this reader has version 1") {
				t.Errorf("%+v", s.Faults)
			}
		}},
		"a malformed frame of nobody": {func(s *stream) {
			s.raw(subjectOf("x", "g1", cons), subjects.Header{}, []byte("x"))
			opened(s)
		}, "added opened", nil},
		"malformed records": {func(s *stream) {
			opened(s)
			s.put("a", "g1", net, rec("start", `{"id":"R"}`), rec("start", request))
			s.put("a", "g1", cons, rec("message", `5`))
			s.put("a", "g1", life, rec("update", `5`))
			s.put("a", "g1", trees, rec("snapshot", `{}`), snapshot(1, leaf))
		}, "added opened fault:malformed request fault:malformed fault:malformed fault:malformed tree", nil},
		"ops that cannot be followed": {func(s *stream) {
			opened(s)
			s.put("a", "g1", trees, snapshot(1, leaf), rec("ops", `{"revision":3,"ops":[]}`), rec("ops", `{"revision":2,"ops":[{"op":"remove","id":9}]}`))
		}, "added opened tree fault:tree fault:tree", func(t *testing.T, s *fold.Source) {
			if s.Tree.Revision != 1 || s.Tree.Len() != 1 {
				t.Errorf("the tree has %d nodes at revision %d", s.Tree.Len(), s.Tree.Revision)
			}
		}},
		"an unknown plane": {func(s *stream) {
			opened(s)
			s.put("a", "g1", "smell", rec("x", `1`))
		}, "added opened", func(t *testing.T, s *fold.Source) {
			if s.Unknown != 1 || len(s.Planes) != 1 {
				t.Errorf("%d unknown, planes %v", s.Unknown, s.Planes)
			}
		}},
		"unknown topics": {func(s *stream) {
			opened(s)
			for _, p := range []subjects.Plane{life, trees, net, cons} {
				s.put("a", "g1", p, rec("hologram", `{`+`}`))
			}
		}, "added opened", nil},
		"a cordis tree over its limit": {func(s *stream) {
			opened(s)
			s.put("a", "g1", trees, rec("snapshot", `{"version":1,"profile":"cordis","revision":1,"root":`+context(1)+`}`))
			nodes := context(2)
			for i := 3; i <= 2049; i++ {
				nodes += "," + context(i)
			}
			s.put("a", "g1", trees, rec("snapshot", `{"version":1,"profile":"cordis","revision":2,"root":`+context(1, nodes)+`}`))
		}, "added opened tree fault:malformed", func(t *testing.T, s *fold.Source) {
			if !strings.Contains(s.Faults[0].Text, "more than 2048 nodes") || s.Tree.Len() != 1 || s.Tree.Revision != 1 {
				t.Errorf("%d nodes of revision %d, %+v", s.Tree.Len(), s.Tree.Revision, s.Faults)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStream(t)
			c.write(s)
			space, changes := s.fold()
			if got := kinds(changes); got != c.want {
				t.Errorf("changes %q, want %q", got, c.want)
			}
			if c.check != nil {
				c.check(t, space.Source("a"))
			}
		})
	}
}

// TestFaultsAreBounded shows that faults are kept to their limits and counted beyond.
func TestFaultsAreBounded(t *testing.T) {
	s := newStream(t)
	s.put("a", "g1", life, open("r"))
	for range 70 {
		s.put("a", "g1", net, rec("start", `{"id":"`+strings.Repeat("é", 2000)+`","url":"/"}`))
	}
	space, _ := s.fold()
	src := space.Source("a")
	if len(src.Faults) != 50 || src.FaultCount != 70 || src.Faults[0].Number != 21 {
		t.Errorf("%d faults from %d on, %d in all", len(src.Faults), src.Faults[0].Number, src.FaultCount)
	}
}

// TestGone shows what the death of a source ends.
func TestGone(t *testing.T) {
	s := newStream(t)
	s.put("a", "g1", life, open("r"))
	s.put("a", "g1", net, rec("start", request), rec("start", `{"id":"r2","url":"/"}`), rec("error", `{"id":"r2","text":"x"}`))
	space, _ := s.fold()
	if got := kinds(space.Source("a").Gone("the source died")); got != "request" {
		t.Errorf("changes %q", got)
	}
	if got := kinds(space.Source("a").Gone("again")); got != "" {
		t.Errorf("changes %q the second time", got)
	}
}
