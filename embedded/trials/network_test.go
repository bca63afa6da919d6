package trials

import (
	"fmt"
	"testing"
	"time"

	"github.com/natscope/natscope/subjects"
)

// TestNetworkBreaks: the way between a producer or a reader and the server
// freezes, breaks and slows down. Nothing is lost, doubled or out of order, and
// readers are current within five seconds after the network is well again.
func TestNetworkBreaks(t *testing.T) {
	srv := startServer(t, func(o *natsOptions) { o.PingInterval, o.MaxPingsOut = 2*time.Second, 2 })
	startStore(t, srv.url(), subjects.Storage{}, subjects.Limits{})
	toProducer, toReader := newProxy(t, srv.opt.Port), newProxy(t, srv.opt.Port)
	views := []*view{openView(t, "a reader near the server", srv.url(), subjects.Limits{}), openView(t, "a reader behind the network", toReader.url(), subjects.Limits{})}
	l := startLoad(t, toProducer.url(), "far", 500)
	near := startLoad(t, srv.url(), "near", 100)
	current := func(after string) {
		t.Helper()
		start := time.Now()
		for _, v := range views {
			for _, x := range []*load{l, near} {
				explained(t, 5*time.Second-time.Since(start), v.becomes(t, x))
			}
		}
		t.Logf("current %v after %s", time.Since(start), after)
	}
	current("the start")
	for _, c := range []struct {
		what      string
		bad, well func(*proxy)
		last      time.Duration
	}{
		{"a short freeze", func(p *proxy) { p.freeze(true) }, func(p *proxy) { p.freeze(false) }, time.Second},
		{"a freeze that outlasts the pings", func(p *proxy) { p.freeze(true) }, func(p *proxy) { p.freeze(false) }, 7 * time.Second},
		{"broken connections", func(p *proxy) { p.cut() }, func(*proxy) {}, 0},
		{"a network that is down", func(p *proxy) { p.refuse(true) }, func(p *proxy) { p.refuse(false) }, 2 * time.Second},
	} {
		for _, p := range []*proxy{toProducer, toReader} {
			c.bad(p)
		}
		pass(c.last)
		for _, p := range []*proxy{toProducer, toReader} {
			c.well(p)
		}
		current(c.what)
	}
	for _, x := range []*load{l, near} {
		x.finish(t)
		for _, v := range views {
			v.verify(t, x)
		}
	}
	t.Logf("slowest call %v, %s", time.Duration(l.slowest.Load()), jsonOf(l.p.Stats()))
}

// TestAcknowledgementsAreSlow: a disk or a way that takes 300 ms for each
// acknowledgement slows down nobody but the sender, whose frames grow instead.
func TestAcknowledgementsAreSlow(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	startStore(t, srv.url(), subjects.Storage{}, subjects.Limits{})
	slow := newProxy(t, srv.opt.Port)
	v := openView(t, "a reader", srv.url(), subjects.Limits{})
	l := startLoad(t, slow.url(), "slow", 2000)
	explained(t, patience, v.becomes(t, l))
	slow.slow(300 * time.Millisecond)
	from := l.n.Load()
	until(t, patience, "6000 more numbers", func() bool { return l.n.Load() > from+6000 })
	behind := l.n.Load() - v.newest(l.p.ID())
	// A frame that waits and one that is on its way, at this rate.
	if behind > 4000 {
		t.Errorf("the reader is %d numbers behind: %s", behind, jsonOf(l.p.Stats()))
	}
	l.finish(t)
	v.verify(t, l)
	stats := l.p.Stats()
	if e := stats.Planes[subjects.PlaneEvent]; e.Dropped != 0 || e.Resent != 0 {
		t.Errorf("acknowledgements that are slow count as lost: %+v", e)
	}
	t.Log(fmt.Sprintf("%d numbers behind; slowest call %v; ", behind, time.Duration(l.slowest.Load())), jsonOf(stats.Planes))
}
