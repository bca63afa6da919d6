package trials

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/natscope/natscope/subjects"
)

// cluster is three servers, each a process of its own.
type cluster struct {
	t       testing.TB
	configs map[string]nodeConfig
	nodes   map[string]*process
	url     string
	nc      *nats.Conn
	js      jetstream.JetStream
}

// startCluster runs three servers until the test ends and waits until they have JetStream together.
func startCluster(t testing.TB) *cluster {
	t.Helper()
	c := &cluster{t: t, configs: make(map[string]nodeConfig), nodes: make(map[string]*process)}
	ports := freePorts(t, 6)
	var urls []string
	for i := range 3 {
		name := fmt.Sprintf("n%d", i+1)
		c.configs[name] = nodeConfig{Name: name, Dir: t.TempDir(), Port: ports[i], Cluster: ports[3+i], Routes: ports[3:]}
		urls = append(urls, fmt.Sprintf("nats://127.0.0.1:%d", ports[i]))
		c.nodes[name] = begin(t, "node", c.configs[name])
	}
	for _, p := range c.nodes {
		p.ready(nil)
	}
	c.url = strings.Join(urls, ",")
	c.nc = connect(t, c.url)
	js, err := jetstream.New(c.nc)
	if err != nil {
		t.Fatal(err)
	}
	c.js = js
	until(t, patience, "the cluster has JetStream", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := js.AccountInfo(ctx)
		return err == nil
	})
	return c
}

// leader waits until the record stream has a leader, which is not one of those
// who are gone, and the cluster has one too: only both together are a server that
// is back. It names the stream's.
func (c *cluster) leader(not ...string) (name string) {
	c.t.Helper()
	explained(c.t, patience, func() (bool, string) {
		ctx, cancel := context.WithTimeout(c.t.Context(), time.Second)
		defer cancel()
		s, err := c.js.Stream(ctx, subjects.RecordStreamName(subjects.DefaultSpace))
		if err != nil {
			return false, fmt.Sprintf("the record stream answers: %v", err)
		}
		if s.CachedInfo().Cluster != nil {
			name = s.CachedInfo().Cluster.Leader
		}
		for _, n := range not {
			if n == name {
				name = ""
			}
		}
		if name == "" {
			return false, "the record stream has a leader"
		}
		_, err = c.js.AccountInfo(ctx)
		return err == nil, fmt.Sprintf("the cluster has a leader: %v", err)
	})
	return name
}

// stepDown makes the leader of the record stream give up its office.
func (c *cluster) stepDown() {
	c.t.Helper()
	m, err := c.nc.Request("$JS.API.STREAM.LEADER.STEPDOWN."+subjects.RecordStreamName(subjects.DefaultSpace), nil, 5*time.Second)
	if err != nil {
		c.t.Fatalf("step down: %v", err)
	}
	if !strings.Contains(string(m.Data), `"success":true`) {
		c.t.Fatalf("step down: %s", m.Data)
	}
}

// back starts a node again and waits until the whole record stream is on all nodes.
func (c *cluster) back(name string) {
	c.t.Helper()
	c.nodes[name] = spawn(c.t, "node", c.configs[name], nil)
	explained(c.t, patience, func() (bool, string) {
		ctx, cancel := context.WithTimeout(c.t.Context(), time.Second)
		defer cancel()
		s, err := c.js.Stream(ctx, subjects.RecordStreamName(subjects.DefaultSpace))
		if err != nil {
			return false, err.Error()
		}
		info := s.CachedInfo().Cluster
		current := 0
		for _, r := range info.Replicas {
			if r.Current && !r.Offline {
				current++
			}
		}
		return info.Leader != "" && current == 2, "all nodes have the stream: " + jsonOf(info)
	})
}

// TestClusterLosesItsLeaders: producers publish into streams of three replicas
// while leaders step down, end and are killed. Nothing that was acknowledged is
// lost, doubled or out of order at any reader, and readers are current again
// within five seconds after the stream has a leader.
func TestClusterLosesItsLeaders(t *testing.T) {
	c := startCluster(t)
	st := startStore(t, c.url, subjects.Storage{Replicas: 3}, subjects.Limits{})
	views := []*view{watch("the store", st.Replica()), openView(t, "a gateway", c.url, subjects.Limits{}), openView(t, "another gateway", c.url, subjects.Limits{})}
	loads := []*load{startLoad(t, c.url, "orders", 400), startLoad(t, c.url, "billing", 100), startLoad(t, c.url, "mail", 20)}
	current := func(after string) {
		t.Helper()
		c.leader()
		start := time.Now()
		for _, v := range views {
			for _, l := range loads {
				explained(t, 5*time.Second-time.Since(start), v.becomes(t, l))
			}
		}
		t.Logf("current %v after the stream had a leader again, after %s", time.Since(start).Round(time.Millisecond), after)
	}
	current("the start")
	for range 4 {
		c.stepDown()
		current("a step-down")
	}
	gone := c.leader()
	c.nodes[gone].terminate(15 * time.Second)
	c.leader(gone)
	current("the graceful end of its leader")
	c.back(gone)
	gone = c.leader()
	c.nodes[gone].kill()
	c.leader(gone)
	current("the death of its leader")
	// A store of another space comes while there are too few servers for its streams: it waits for them.
	early := begin(t, "store", storeConfig{URL: c.url, Space: "early", Storage: subjects.Storage{Replicas: 3}})
	c.back(gone)
	early.ready(nil)
	early.terminate(10 * time.Second)
	current("the return of a node")
	for _, l := range loads {
		l.finish(t)
	}
	for _, v := range views {
		for _, l := range loads {
			v.verify(t, l)
		}
		if s := v.Status(); s.Resets != 0 || s.Skipped != 0 {
			t.Errorf("%s started over or passed over something: %+v", v.name, s)
		}
		if d := differ(dumpOf(st.Replica()), dumpOf(v.Replica)); d != "" {
			t.Errorf("%s differs from the store: %s", v.name, d)
		}
	}
	for _, l := range loads {
		t.Logf("%s: %d numbers, slowest call %v, %+v", l.p.ID(), l.n.Load(), time.Duration(l.slowest.Load()), l.p.Stats())
	}
}
