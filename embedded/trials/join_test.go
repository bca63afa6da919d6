package trials

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/producer/treecap"
	"github.com/natscope/natscope/store"
	"github.com/natscope/natscope/store/replica"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
)

// joinLimits keep little, so that dumps stay small, and let nobody die of a loaded machine.
var joinLimits = subjects.Limits{Requests: 300, ConsoleEntries: 200, Heartbeat: time.Minute}

// crowdLoad is a source that lives at random, through several generations.
type crowdLoad struct {
	url, name string
	records   int
	rnd       *rand.Rand
	// gate is false while the source has to wait.
	gate func() bool
	// recorded sums what was recorded in all generations; dropped what its queues gave up.
	recorded, dropped atomic.Uint64
}

// live records everything, in bursts.
func (c *crowdLoad) live(t testing.TB) {
	const lives = 3
	for range lives {
		p, err := producer.Start(producer.Options{Service: c.name, URL: c.url, Instance: "1", Limits: subjects.Limits{Heartbeat: time.Second}})
		if err != nil {
			t.Error(err)
			return
		}
		if !c.once(p, c.records/lives) {
			t.Errorf("%s: no store kept up for %v", c.name, patience)
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		if err := p.Close(ctx); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		cancel()
		for plane, s := range p.Stats().Planes {
			if s.Queued > 0 || s.Recorded != s.Published+s.Dropped+s.Coalesced {
				t.Errorf("%s, plane %s: %+v", c.name, plane, s)
			}
			c.dropped.Add(s.Dropped)
			c.recorded.Add(s.Recorded)
		}
	}
}

// once is one generation. It gives up and returns false when it has to wait for too long.
func (c *crowdLoad) once(p *producer.Producer, records int) bool {
	tree := treecap.New(p, treecap.Options{RootName: c.name})
	var nodes []*treecap.Node
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	moved := time.Now()
	for n := 0; n < records; <-tick.C {
		if !c.gate() {
			if time.Since(moved) > patience {
				return false
			}
			continue
		}
		moved = time.Now()
		for end := min(records, n+1+c.rnd.IntN(40)); n < end; n++ {
			switch x := c.rnd.IntN(10); {
			case x < 2:
				_ = p.Publish(fmt.Sprintf("topic.%d", c.rnd.IntN(3)), n)
			case x < 5:
				p.Record(subjects.PlaneConsole, "message", line(pad(c.rnd, c.rnd.IntN(100))))
			case x < 9:
				c.request(p, n)
			case len(nodes) < 100 || c.rnd.IntN(3) == 0:
				parent := tree.Root()
				if len(nodes) > 0 && c.rnd.IntN(2) == 0 {
					parent = nodes[c.rnd.IntN(len(nodes))]
				}
				nodes = append(nodes, parent.Add("part", treecap.Attr("n", n)))
			case c.rnd.IntN(4) == 0:
				i := c.rnd.IntN(len(nodes))
				nodes[i].Remove()
				nodes = append(nodes[:i], nodes[i+1:]...)
			default:
				nodes[c.rnd.IntN(len(nodes))].Set("n", pad(c.rnd, 20))
			}
		}
	}
	tree.Close()
	return true
}

// request records one of the records of a request.
func (c *crowdLoad) request(p *producer.Producer, n int) {
	id := network.RequestID(fmt.Sprintf("r%d", n/8))
	switch n % 4 {
	case 0:
		p.Record(subjects.PlaneNet, network.TopicStart, network.Start{ID: id, Method: "GET", URL: "http://example.test/" + pad(c.rnd, 30)})
	case 1:
		p.Record(subjects.PlaneNet, network.TopicResponse, network.Response{ID: id, Status: 200})
	case 2:
		p.Record(subjects.PlaneNet, network.TopicDataReceived, network.DataReceived{ID: id, Bytes: int64(n)})
	default:
		p.Record(subjects.PlaneNet, network.TopicEnd, network.End{ID: id, Bytes: int64(n)})
	}
}

// pad is text that does not compress to nothing.
func pad(rnd *rand.Rand, n int) string {
	var b strings.Builder
	for b.Len() < n {
		fmt.Fprintf(&b, "%x", rnd.Uint64())
	}
	return b.String()[:n]
}

// point is a message of the stream and how many bytes there were up to it.
type point struct{ seq, bytes uint64 }

// TestThirtyJoinWhileEverythingHappens is the promise of a replica at full size:
// thirty of them join at random moments while sources write 100 000 records, two
// store processes are killed in turn and the stream holds only the newest part.
// Each of them equals a fold of everything that was ever in the stream.
func TestThirtyJoinWhileEverythingHappens(t *testing.T) {
	const sources, records, joins, window = 4, 114_000, 30, 3 << 20
	srv := startServer(t)
	js := jetStream(t, srv.url())
	storage := subjects.Storage{RecordBytes: window}
	if err := store.EnsureStreams(t.Context(), js, subjects.DefaultSpace, storage); err != nil {
		t.Fatal(err)
	}
	j := keepJournal(t, js)
	config := storeConfig{URL: srv.url(), Storage: storage, Limits: joinLimits}
	stores := []*process{spawn(t, "store", config, nil), spawn(t, "store", config, nil)}
	first := openView(t, "the first", srv.url(), joinLimits)

	// What retention takes before a store has read it is really gone. So the
	// sources wait while the stores are far behind, as no store is that slow in life.
	var open, done atomic.Bool
	open.Store(true)
	var writers, others sync.WaitGroup
	var waits atomic.Uint64
	others.Go(func() {
		var behind []point
		for ; !done.Load(); pass(20 * time.Millisecond) {
			now := saved(t, js)
			last, bytes := j.end()
			behind = append(behind, point{last, bytes})
			// A store may be ahead of the journal.
			for len(behind) > 1 && behind[0].seq <= now {
				behind = behind[1:]
			}
			far := bytes-behind[0].bytes >= window/3
			if open.Swap(!far) && far {
				waits.Add(1)
			}
		}
	})
	loads := make([]*crowdLoad, sources)
	for i := range loads {
		loads[i] = &crowdLoad{url: srv.url(), name: fmt.Sprintf("s%d", i), records: records / sources, rnd: rand.New(rand.NewPCG(uint64(i), 1)), gate: open.Load}
		writers.Go(func() { loads[i].live(t) })
	}
	kills := 0
	others.Go(func() {
		for ; !done.Load(); kills++ {
			stores[kills%2].kill()
			stores[kills%2] = spawn(t, "store", config, nil)
			pass(time.Second)
		}
	})
	views := make([]*replica.Replica, joins)
	rnd := rand.New(rand.NewPCG(9, 9))
	for i := range views {
		at := rnd.Uint64N(6 << 20)
		others.Go(func() {
			until(t, 10*patience, "the time to join", func() bool { _, bytes := j.end(); return bytes >= at || done.Load() })
			views[i] = openView(t, fmt.Sprintf("joiner %d", i), srv.url(), joinLimits).Replica
		})
	}
	writers.Wait()
	done.Store(true)
	others.Wait()
	if t.Failed() {
		return
	}
	last, first1 := stream(t, js)
	until(t, patience, "the journal is complete", func() bool { now, _ := j.end(); return now >= last })
	reference := j.reference(t, joinLimits)
	want := dump(reference)
	views = append(views, first.Replica, openView(t, "the last", srv.url(), joinLimits).Replica)
	for i, r := range views {
		until(t, patience, fmt.Sprintf("replica %d has message %d: %+v", i, last, r.Status()), func() bool { return uint64(r.Status().Covered) >= last })
		if d := differ(want, dumpOf(r)); d != "" {
			t.Errorf("replica %d (%+v): %s", i, r.Status(), d)
		}
	}
	var recorded, dropped, lost uint64
	for _, l := range loads {
		recorded += l.recorded.Load()
		dropped += l.dropped.Load()
	}
	for _, s := range reference.Sources() {
		lost += s.Lost()
		for _, p := range s.Planes {
			if p.Missed > 0 {
				t.Errorf("%s: the fold misses records: %+v", s.ID, *p)
			}
		}
	}
	if dropped != 0 || lost != 0 {
		t.Errorf("%d records were dropped at the sources and %d are missing in the fold: this load fits into the queues", dropped, lost)
	}
	if len(reference.Sources()) != sources || first1 < last/3 || kills < 4 || recorded < 100_000 {
		t.Errorf("%d sources, %d kills, %d records, messages %d to %d are left: this trial shows little", len(reference.Sources()), kills, recorded, first1, last)
	}
	_, bytes := j.end()
	t.Logf("%d records in %d messages, %d KiB; the stream begins at %d; %d kills; the sources waited %d times for a store", recorded, last, bytes>>10, first1, kills, waits.Load())
}
