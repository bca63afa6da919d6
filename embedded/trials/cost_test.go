package trials

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/subjects"
)

// TestK4ExitsWithoutServer: a program that ends while NATS is away ends at
// once, whether or not it says goodbye.
func TestK4ExitsWithoutServer(t *testing.T) {
	t.Parallel()
	url := fmt.Sprintf("nats://127.0.0.1:%d", freePorts(t, 1)[0])
	for _, closes := range []bool{false, true} {
		p := begin(t, "leaver", leaverConfig{URL: url, Close: closes})
		var goodbye time.Duration
		p.ready(&goodbye)
		p.ends(time.Second)
		if goodbye > time.Second {
			t.Errorf("its goodbye took %v with nobody there to hear it", goodbye)
		}
		t.Logf("closes %v: goodbye took %v", closes, goodbye)
	}
}

// TestK1NobodyWatches: a source that records 1000 records a second costs
// its program next to nothing while nobody watches, and does not grow.
func TestK1NobodyWatches(t *testing.T) {
	srv := startServer(t)
	startStore(t, srv.url(), subjects.Storage{}, subjects.Limits{})
	// The same program without records is the measure of what the clock of the load costs.
	cost := func(perSecond int) (share float64, grown int64) {
		p := spawn(t, "source", sourceConfig{URL: srv.url(), Service: "cheap", Instance: fmt.Sprint(perSecond), PerSecond: perSecond}, nil)
		var from, to sourceCost
		p.ask("flush", nil)
		until(t, patience, "it runs", func() bool { p.ask("cost", &from); return from.Numbers > uint64(perSecond) || perSecond == 0 })
		start := time.Now()
		pass(3 * time.Second)
		p.ask("cost", &to)
		t.Logf("%d numbers/s: %d numbers in %v", perSecond, to.Numbers-from.Numbers, time.Since(start))
		if d := to.Stats.Planes[subjects.PlaneEvent].Dropped; d > 0 {
			t.Errorf("%d records were dropped", d)
		}
		return (to.CPU - from.CPU).Seconds() / time.Since(start).Seconds(), int64(to.Heap) - int64(from.Heap)
	}
	idle, _ := cost(0)
	// Each number is an event, half a line and 0.3 records of requests: about 1000 records.
	busy, grown := cost(550)
	t.Logf("idle %.2f %%, busy %.2f %% of a processor, %d KiB grown", 100*idle, 100*busy, grown>>10)
	// What it may cost is for scripts/bench: a share of a processor depends on
	// what else the machine does. That nothing piles up does not.
	if grown > 4<<20 {
		t.Errorf("the program has grown by %d KiB", grown>>10)
	}
}

// TestH17FullStream: the stream is full and evicts. Producers go on without a
// pause, and everything is acknowledged.
func TestH17FullStream(t *testing.T) {
	t.Parallel()
	const limit = 512 << 10
	srv := startServer(t)
	startStore(t, srv.url(), subjects.Storage{RecordBytes: limit}, subjects.Limits{})
	p, err := producer.Start(producer.Options{Service: "many", Instance: "1", URL: srv.url()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeSoon(p) })
	rnd := rand.New(rand.NewPCG(1, 2))
	text := make([]string, 64)
	for i := range text {
		text[i] = pad(rnd, 4000)
	}
	js := jetStream(t, srv.url())
	start, slowest := time.Now(), time.Duration(0)
	for i := range 2000 {
		from := time.Now()
		p.Record(subjects.PlaneConsole, "message", line(text[i%len(text)]+fmt.Sprint(i)))
		slowest = max(slowest, time.Since(from))
		if i%200 == 199 {
			flushed(t, p)
		}
	}
	flushed(t, p)
	last, first := stream(t, js)
	s := p.Stats().Planes[subjects.PlaneConsole]
	if s.Published != 2000 || s.Dropped != 0 || first < 2 {
		t.Errorf("%+v; the stream has messages %d to %d", s, first, last)
	}
	if slowest > 500*time.Millisecond {
		t.Errorf("one call took %v", slowest)
	}
	t.Logf("2000 records of 4 KB through a stream of 512 KiB in %v, slowest call %v, messages %d to %d", time.Since(start), slowest, first, last)
}

// TestH8GatewayStandsStill: a gateway process that stops reading is no burden
// to anybody, and catches up with everything when it goes on.
func TestH8GatewayStandsStill(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	startStore(t, srv.url(), subjects.Storage{}, subjects.Limits{})
	var address string
	gateway := spawn(t, "gateway", gatewayConfig{URL: srv.url()}, &address)
	v := openView(t, "another reader", srv.url(), subjects.Limits{})
	l := startLoad(t, srv.url(), "busy", 2000)
	explained(t, patience, v.becomes(t, l))
	dt := dial(t, address, "dev/busy-1")
	dt.call("Runtime.enable", nil)
	until(t, patience, "the Console shows lines", func() bool { return len(dt.console()) > 0 })
	gateway.freeze()
	from := l.n.Load()
	until(t, patience, "8000 more numbers", func() bool { return l.n.Load() > from+8000 })
	explained(t, 2*time.Second, v.becomes(t, l))
	gateway.thaw()
	l.finish(t)
	v.verify(t, l)
	want := fmt.Sprint(l.n.Load() / 2 * 2)
	took := explained(t, 5*time.Second, func() (bool, string) {
		lines := dt.console()
		return len(lines) > 0 && lines[len(lines)-1].Text == want, fmt.Sprintf("the Console shows line %s; it has %d lines and its connection %v", want, len(lines), dt.lost())
	})
	// The lines are every second number: one that is missing or doubled breaks the row.
	var numbers []uint64
	for _, x := range dt.console() {
		var n uint64
		if _, err := fmt.Sscan(x.Text, &n); err != nil {
			t.Fatalf("line %q: %v", x.Text, err)
		}
		numbers = append(numbers, n)
	}
	first := numbers[0]
	for i := range numbers {
		numbers[i] -= first - 2
	}
	series(t, "the Console of the gateway that stood still", numbers, 2, numbers[len(numbers)-1], 0)
	t.Logf("caught up %v after it went on, %d lines", took, len(numbers))
}

// TestE1E4ConsoleHistory: what was said before DevTools came is there, once, in
// order and with its time, for each connection; enabling twice says nothing twice.
func TestE1E4ConsoleHistory(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	startStore(t, srv.url(), subjects.Storage{}, subjects.Limits{})
	p, err := producer.Start(producer.Options{Service: "talker", Instance: "1", URL: srv.url()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeSoon(p) })
	var said []float64
	for i := range 5 {
		pass(20 * time.Millisecond)
		said = append(said, float64(time.Now().UnixMicro())/1000)
		p.Record(subjects.PlaneConsole, "message", line(fmt.Sprintf("early %d", i)))
	}
	flushed(t, p)
	for range 2 {
		gateway := startGateway(t, srv.url(), subjects.Limits{})
		for _, target := range []string{"dev", "dev/talker-1"} {
			dt := dial(t, gateway, target)
			dt.call("Log.enable", nil)
			if n := len(dt.console()); n != 0 {
				t.Errorf("%d lines came before Runtime.enable", n)
			}
			dt.call("Runtime.enable", nil)
			dt.call("Runtime.enable", nil)
			dt.call("Log.enable", nil)
			lines := dt.console()
			if len(lines) != 5 {
				t.Fatalf("%s: %d lines: %+v", target, len(lines), lines)
			}
			for i, l := range lines {
				if l.Text != fmt.Sprintf("early %d", i) || l.Time < said[i]-2 || l.Time > said[i]+200 {
					t.Errorf("%s: line %d is %+v, said at %.1f", target, i, l, said[i])
				}
			}
		}
	}
}

// TestH15EndsUnderWrites: natscope up ends by SIGTERM while programs write,
// leaves its directory in order, and has everything that was acknowledged when it starts again.
func TestH15EndsUnderWrites(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ports := freePorts(t, 1)
	up := func() (*process, announced) {
		var a announced
		p := run(t, "up", "--data", dir, "--port", "0", "--nats-port", fmt.Sprint(ports[0]), "--ready-json", "-v")
		p.ready(&a)
		return p, a
	}
	p, a := up()
	v := openView(t, "a reader", a.NATS, subjects.Limits{})
	l := startLoad(t, a.NATS, "writer", 1000)
	for range 2 {
		explained(t, patience, v.becomes(t, l))
		p.terminate(10 * time.Second)
		p, a = up()
		if log := strings.ToLower(p.log.String()); strings.Contains(log, "corrupt") || strings.Contains(log, "recover") && strings.Contains(log, "error") {
			t.Errorf("the data were damaged; log:\n%s", &p.log)
		}
	}
	explained(t, 5*time.Second, v.becomes(t, l))
	l.finish(t)
	v.verify(t, l)
	late := openView(t, "a late reader", a.NATS, subjects.Limits{})
	if d := differ(dumpOf(v.Replica), dumpOf(late.Replica)); d != "" {
		t.Errorf("a late reader holds something else: %s", d)
	}
	p.terminate(10 * time.Second)
}
