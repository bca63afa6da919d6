package fold_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
)

func itoa(n int) string { return strconv.Itoa(n) }

// TestStrays shows that messages that belong to no source of the space are passed over.
func TestStrays(t *testing.T) {
	s := newStream(t)
	s.put("a", "g1", life, open("r"))
	h, data := s.messages[0].header, s.messages[0].data
	for _, subject := range []string{"", "foo", "natscope.other.rec.a.g1.life", "natscope.dev.rec.a.g1", "natscope.dev.rec.A.g1.life", "natscope.dev.body.a.g1.r.res"} {
		s.raw(subject, h, data)
	}
	space, changes := s.fold()
	if kinds(changes) != "added opened" || space.Stray != 6 || space.Covered != 7 || len(space.Sources()) != 1 {
		t.Errorf("changes %q, %d strays, covered %d", kinds(changes), space.Stray, space.Covered)
	}
}

// TestSources shows the order of sources, and that messages are folded once.
func TestSources(t *testing.T) {
	s := newStream(t)
	for _, id := range []string{"c", "a", "b"} {
		s.put(id, "g1", life, open("r"))
		s.put(id, "g1", trees, snapshot(1, leaf))
	}
	space, _ := s.fold()
	if got := names(space); got != "c a b" {
		t.Errorf("the order is %s", got)
	}
	before := dump(t, space)
	if changes := feed(t, space, 1, s.messages); len(changes) > 0 || dump(t, space) != before {
		t.Errorf("the same messages again changed %s", kinds(changes))
	}
	if got := kinds(space.Remove("a")); got != "removed" || names(space) != "c b" {
		t.Errorf("removal gives %q and leaves %s", got, names(space))
	}
	if changes := space.Remove("a"); changes != nil || space.Source("a") != nil {
		t.Error("a source is removed twice")
	}
	src, e := space.Node(space.Source("b").Tree.Root.Backend)
	if src != space.Source("b") || e != src.Tree.Root {
		t.Error("a node is not found in its source")
	}
	if src, e := space.Node(3); src != nil || e != nil {
		t.Error("an unknown node is found")
	}
}

func names(space *fold.Space) string {
	var out []string
	for _, s := range space.Sources() {
		out = append(out, string(s.ID))
	}
	return strings.Join(out, " ")
}

// randomStream writes the life of some sources, with restarts, gaps and rubbish.
func randomStream(t testing.TB, r *rand.Rand, count int) *stream {
	s := newStream(t)
	generation := make(map[string]int)
	revision := make(map[string]int)
	for range count {
		id := string(rune('a' + r.IntN(3)))
		g := fmt.Sprintf("g%03d", generation[id])
		put := func(plane subjects.Plane, records ...subjects.Record) { s.put(id, g, plane, records...) }
		switch r.IntN(14) {
		case 0:
			generation[id]++
			revision[id] = 0
			s.put(id, fmt.Sprintf("g%03d", generation[id]), life, open("realm"+itoa(r.IntN(2))))
		case 1:
			put(life, rec("update", `{"title":"`+itoa(r.IntN(9))+`"}`))
		case 2:
			put(life, rec("close", `{"reason":"enough"}`))
		case 3, 4:
			revision[id] += 1 + r.IntN(2)
			if id == "c" {
				put(trees, rec("snapshot", cordis(revision[id], randomContext(r))))
				continue
			}
			put(trees, snapshot(revision[id], randomNode(r)))
		case 5, 6:
			revision[id]++
			if id == "c" {
				put(trees, rec("ops", fmt.Sprintf(`{"revision":%d,"commit":%d,"ops":[{"op":"add","parent":1,"node":%s}]}`, revision[id], revision[id], fiber(50+2*r.IntN(20)))))
				continue
			}
			put(trees, rec("ops", fmt.Sprintf(`{"revision":%d,"commit":%d,"ops":[{"op":"add","parent":1,"node":{"id":%d,"name":"new"}}]}`, revision[id], revision[id], 50+r.IntN(20))))
		case 7, 8:
			put(net, rec("start", fmt.Sprintf(`{"id":"r%d","url":"/<&>"}`, r.IntN(8))), rec("response", fmt.Sprintf(`{"id":"r%d","status":200}`, r.IntN(8))))
		case 9:
			put(net, rec("end", fmt.Sprintf(`{"id":"r%d"}`, r.IntN(8))))
		case 10:
			put(cons, log("<"+itoa(r.IntN(9))+">"), rec("exception", `{"text":"panic"}`))
		case 11:
			s.putAt(id, g, cons, subjects.Seq(1+r.IntN(20)), uint64(r.IntN(3)), log("gap"))
		case 12:
			s.put(id, fmt.Sprintf("g%03d", r.IntN(generation[id]+1)), net, rec("start", request))
		case 13:
			s.raw(subjectOf(id, g, net), subjects.Header{subjects.HeaderVersion: {itoa(r.IntN(3))}}, []byte("rubbish"))
		}
	}
	return s
}

func randomNode(r *rand.Rand) string {
	children := ""
	for i := range r.IntN(6) {
		if i > 0 {
			children += ","
		}
		children += fmt.Sprintf(`{"id":%d,"name":"n","text":"%d","values":{"v":{"a": %d}},"children":[{"id":%d,"name":"n"}]}`, 10+i, r.IntN(3), r.IntN(2), 20+i)
	}
	return `{"id":1,"name":"App","children":[` + children + `]}`
}

// randomContext makes a Cordis tree, and now and then one that breaks the rules.
func randomContext(r *rand.Rand) string {
	var children []string
	for i := range r.IntN(6) {
		children = append(children, fiber(10+2*i, fiber(30+2*i)))
	}
	if r.IntN(5) == 0 {
		children = append(children, fiber(30))
	}
	return context(1, children...)
}

// TestDeterminism shows that the same messages give the same state at every
// reader, also at one that was restored from storage in between, and at one that
// gets some messages again.
func TestDeterminism(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 3))
		s := randomStream(t, r, 120)
		space, changes := s.fold()
		want := dump(t, space)
		other, again := s.fold()
		if dump(t, other) != want || kinds(again) != kinds(changes) {
			t.Fatalf("seed %d: two readers differ", seed)
		}
		cut := r.IntN(len(s.messages))
		half := fold.New("dev", subjects.Limits{})
		first := feed(t, half, 1, s.messages[:cut])
		for _, src := range half.Sources() {
			if src.Tree.Staging() {
				t.Fatalf("seed %d: a tree is on its way", seed)
			}
		}
		late := restore(t, half)
		if got, want := dump(t, late), dump(t, half); got != want {
			t.Fatalf("seed %d: restored at %d it is\n%s\nwant\n%s", seed, cut, got, want)
		}
		back := max(0, cut-10)
		rest := feed(t, late, back+1, s.messages[back:])
		if got := dump(t, late); got != want {
			t.Fatalf("seed %d: restored at %d it is in the end\n%s\nwant\n%s", seed, cut, got, want)
		}
		if got := kinds(append(first, rest...)); got != kinds(changes) {
			t.Fatalf("seed %d: restored at %d the changes are\n%s\nwant\n%s", seed, cut, got, kinds(changes))
		}
	}
}

// FuzzSpace folds valid messages in any order, and rubbish between them. Each
// byte chooses a message of a random stream; a zero byte is followed by rubbish.
func FuzzSpace(f *testing.F) {
	s := randomStream(f, rand.New(rand.NewPCG(7, 7)), 250)
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9}, "natscope.dev.rec.a.g001.net", []byte("x"))
	f.Add([]byte{9, 1, 0, 1, 200, 9}, "natscope.dev.rec.a.g009.life", []byte(`{"t":1,"topic":"open"}`))
	f.Fuzz(func(t *testing.T, order []byte, subject string, rubbish []byte) {
		one, two := fold.New("dev", subjects.Limits{Requests: 3, ConsoleEntries: 2, Faults: 2, Commits: 3, ComponentNodes: 6, TreeDepth: 2}), fold.New("dev", subjects.Limits{Requests: 3, ConsoleEntries: 2, Faults: 2, Commits: 3, ComponentNodes: 6, TreeDepth: 2})
		for i, b := range order[:min(len(order), 60)] {
			m := message{subject, subjects.Header{subjects.HeaderVersion: {"1"}, subjects.HeaderSeq: {itoa(i + 1)}, subjects.HeaderCount: {"1"}}, rubbish}
			if b > 0 {
				m = s.messages[int(b)%len(s.messages)]
			}
			feed(t, one, i+1, []message{m})
			feed(t, two, i+1, []message{m})
		}
		if dump(t, one) != dump(t, two) {
			t.Fatal("two readers differ")
		}
	})
}
