package follow

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/source"
)

// maxPrograms is how many programs a world has at most.
const maxPrograms = 6

// program is a program of the simulator. All of them want the id 1; a program
// that has to take another one takes 2, and so on.
type program struct {
	realm  source.RealmID
	number int
	// skew is how far its clock is off.
	skew   int
	id     int
	gen    int
	dead   bool
	frozen bool
	// late are orders that came while it was frozen.
	late []errandTo
	// moves counts new generations.
	moves int
}

// said is a message of the stream.
type said struct {
	id, gen int
	realm   source.RealmID
	close   bool
}

// errandTo is an effect on its way from a store to a program.
type errandTo struct {
	store *simStore
	id    int
	Effect
}

// simStore is a store: its own place in the stream, and its own opinions.
type simStore struct {
	at      int
	newest  map[int]Life
	holders map[int]Holder
}

// world is a bus with programs and stores on it, where everything takes its time.
type world struct {
	t        testing.TB
	rnd      *rand.Rand
	clock    int
	programs []*program
	stores   []*simStore
	stream   []said
	errands  []errandTo
	log      []string
	// claims says that programs ask before they open.
	claims bool
}

func (w *world) note(format string, args ...any) { w.log = append(w.log, fmt.Sprintf(format, args...)) }

func generationOf(n int) subjects.Generation { return subjects.Generation(fmt.Sprintf("%06d", n)) }

// taken reports whether a program that can answer has an id.
func (w *world) taken(id int, but *program) bool {
	for _, p := range w.programs {
		if p != but && !p.dead && !p.frozen && p.id == id {
			return true
		}
	}
	return false
}

// open begins a generation; the clocks of programs differ.
func (w *world) open(p *program, id, after int) {
	w.clock++
	p.id = id
	if w.claims {
		for w.taken(p.id, p) {
			p.id++
		}
	}
	// No two programs make the same generation.
	p.gen = max(w.clock+p.skew, after/maxPrograms+1, p.gen/maxPrograms+1)*maxPrograms + p.number
	p.moves++
	w.stream = append(w.stream, said{id: p.id, gen: p.gen, realm: p.realm})
	w.note("%s opens %d as %d", p.realm, p.id, p.gen)
}

func (w *world) start() {
	n := len(w.programs)
	p := &program{number: n, realm: source.RealmID(fmt.Sprint("realm", n)), skew: w.rnd.IntN(15) - 7}
	w.programs = append(w.programs, p)
	w.open(p, 1, 0)
}

// startStore adds a store that knows what readers know.
func (w *world) startStore() {
	s := &simStore{newest: make(map[int]Life), holders: make(map[int]Holder)}
	for _, m := range w.stream {
		s.fold(m)
	}
	s.at = len(w.stream)
	for id, l := range s.newest {
		s.holders[id], _ = Holder{}.Step(Event{Kind: EventKnown, Life: l})
	}
	w.stores = append(w.stores, s)
}

// fold follows the newest generation, as every reader does, and reports what happened.
func (s *simStore) fold(m said) (Event, bool) {
	l := s.newest[m.id]
	g := generationOf(m.gen)
	switch {
	case m.close && l.Generation == g:
		l.Closed = true
		s.newest[m.id] = l
		return Event{Kind: EventClosed, Generation: g}, true
	case !m.close && g > l.Generation:
		l = Life{Generation: g, Realm: m.realm, Who: string(m.realm)}
		s.newest[m.id] = l
		return Event{Kind: EventOpened, Life: l}, true
	}
	return Event{}, false
}

func (w *world) step(s *simStore, id int, e Event) {
	h, effects := s.holders[id].Step(e)
	s.holders[id] = h
	for _, f := range effects {
		w.errands = append(w.errands, errandTo{s, id, f})
	}
}

// read lets a store read one message of the stream.
func (w *world) read(s *simStore) bool {
	if s.at == len(w.stream) {
		return false
	}
	m := w.stream[s.at]
	s.at++
	if e, ok := s.fold(m); ok {
		w.step(s, m.id, e)
	}
	return true
}

// beat lets all stores hear a program.
func (w *world) beat(p *program) {
	if p.dead || p.frozen {
		return
	}
	for _, s := range w.stores {
		if s.newest[p.id].Generation != "" {
			w.step(s, p.id, Event{Kind: EventBeat, Generation: generationOf(p.gen)})
		}
	}
}

// deliver brings one errand to its program and its answer back.
func (w *world) deliver(i int, lost bool) {
	x := w.errands[i]
	w.errands = append(w.errands[:i], w.errands[i+1:]...)
	var p *program
	for _, q := range w.programs {
		if !q.dead && q.id == x.id && generationOf(q.gen) == x.Generation {
			p = q
		}
	}
	heard := p != nil && !lost && !p.frozen
	if p != nil && p.frozen && x.Message != nil {
		p.late = append(p.late, x)
	}
	if x.Message == nil {
		w.note("%s of %d is asked: %v", x.Generation, x.id, heard)
		w.step(x.store, x.id, Event{Kind: EventAnswer, Generation: x.Generation, Lives: heard})
		return
	}
	w.note("%s of %d is told %s behind %s: %v", x.Generation, x.id, x.Message.Kind, x.Message.After, heard)
	if heard {
		w.obey(p, x)
	}
	w.step(x.store, x.id, Event{Kind: EventMoved, Generation: x.Generation})
}

// obey does what a producer does that is told something.
func (w *world) obey(p *program, x errandTo) {
	if generationOf(p.gen) != x.Generation || p.id != x.id {
		return
	}
	if x.Message.Kind != subjects.ControlReopen {
		w.open(p, p.id+1, 0)
		return
	}
	var after int
	fmt.Sscanf(string(x.Message.After), "%d", &after)
	if p.gen <= after {
		w.open(p, p.id, after)
	}
}

func (w *world) thaw(p *program) {
	p.frozen = false
	for _, x := range p.late {
		w.obey(p, x)
	}
	p.late = nil
}

// chaos does anything that can happen.
func (w *world) chaos() {
	any := func() *program { return w.programs[w.rnd.IntN(len(w.programs))] }
	switch w.rnd.IntN(24) {
	case 0:
		if len(w.programs) < maxPrograms {
			w.start()
		}
	case 1:
		p := any()
		p.dead = true
		w.note("%s is killed", p.realm)
	case 2:
		if p := any(); !p.dead && !p.frozen {
			w.stream = append(w.stream, said{id: p.id, gen: p.gen, close: true})
			p.dead = true
			w.note("%s closes", p.realm)
		}
	case 3:
		if p := any(); !p.dead {
			p.frozen = true
			w.note("%s is frozen", p.realm)
		}
	case 4, 5:
		w.thaw(any())
	case 6:
		if len(w.stores) < 3 {
			w.startStore()
		}
	case 7, 8, 9, 10, 11:
		w.beat(any())
	case 12, 13, 14, 15, 16, 17:
		if len(w.stores) > 0 {
			w.read(w.stores[w.rnd.IntN(len(w.stores))])
		}
	default:
		if len(w.errands) > 0 {
			w.deliver(w.rnd.IntN(len(w.errands)), w.rnd.IntN(10) == 0)
		}
	}
}

// calm lets everything arrive, in any order, for one period of heartbeats.
func (w *world) calm() {
	for _, i := range w.rnd.Perm(len(w.programs)) {
		w.beat(w.programs[i])
	}
	for busy := true; busy; {
		busy = false
		for _, i := range w.rnd.Perm(len(w.stores)) {
			for w.read(w.stores[i]) {
				busy = true
			}
		}
		for len(w.errands) > 0 {
			busy = true
			w.deliver(w.rnd.IntN(len(w.errands)), false)
		}
	}
}

// check demands that every living program is the one that readers follow under its id.
func (w *world) check() {
	w.t.Helper()
	s := w.stores[0]
	var wrong []string
	for _, p := range w.programs {
		if !p.dead && s.newest[p.id].Generation != generationOf(p.gen) {
			wrong = append(wrong, fmt.Sprintf("%s lives as %d of %d, readers follow %s", p.realm, p.gen, p.id, s.newest[p.id].Generation))
		}
	}
	if wrong != nil {
		w.t.Fatalf("%s\n%s", strings.Join(wrong, "\n"), strings.Join(w.log, "\n"))
	}
}

func (w *world) moves() (n int) {
	for _, p := range w.programs {
		n += p.moves
	}
	return n
}

// play runs one world: anything happens for a while, then nothing but time.
func play(t testing.TB, seed uint64, claims bool) {
	w := &world{t: t, rnd: rand.New(rand.NewPCG(seed, 5)), claims: claims}
	w.start()
	for range 20 + w.rnd.IntN(200) {
		w.chaos()
	}
	if len(w.stores) == 0 {
		w.startStore()
	}
	for _, p := range w.programs {
		w.thaw(p)
	}
	w.note("calm")
	// Each period settles at least one program.
	for range 4 * len(w.programs) {
		w.calm()
	}
	w.check()
	before := w.moves()
	for range 10 {
		w.calm()
	}
	if w.check(); w.moves() != before {
		t.Fatalf("programs still move\n%s", strings.Join(w.log, "\n"))
	}
}

// TestConvergence: whatever happens, to any number of programs with one id and
// any number of stores, in the end every living program has an id of its own that
// readers follow, and nothing moves any more.
func TestConvergence(t *testing.T) {
	for seed := range uint64(4000) {
		play(t, seed, seed%2 == 0)
	}
}

// FuzzConvergence looks for worlds in which that does not hold.
func FuzzConvergence(f *testing.F) {
	f.Add(uint64(1), true)
	f.Fuzz(func(t *testing.T, seed uint64, claims bool) { play(t, seed, claims) })
}

// TestFirstKeepsID: when nothing fails, the program that was first keeps the id,
// however many stores there are and whatever order they read in.
func TestFirstKeepsID(t *testing.T) {
	for seed := range uint64(500) {
		w := &world{t: t, rnd: rand.New(rand.NewPCG(seed, 6))}
		for range 1 + seed%3 {
			w.startStore()
		}
		w.start()
		w.calm()
		w.start()
		first, second := w.programs[0], w.programs[1]
		if first.gen > second.gen {
			continue // Its clock is behind: readers never turned to it.
		}
		for range 10 {
			w.calm()
		}
		w.check()
		if first.id != 1 || second.id != 2 || first.moves != 2 || second.moves != 2 {
			t.Fatalf("seed %d: the first has %d after %d openings, the second %d after %d\n%s", seed, first.id, first.moves, second.id, second.moves, strings.Join(w.log, "\n"))
		}
	}
}
