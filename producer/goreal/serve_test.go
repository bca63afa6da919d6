package goreal

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/producer/internal/natstest"
	"github.com/natscope/natscope/producer/slogcap"
	"github.com/natscope/natscope/producer/treecap"
	asking "github.com/natscope/natscope/store/command"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/console"
	"github.com/natscope/natscope/subjects/realm"
	"github.com/natscope/natscope/subjects/tree"
)

// remoteClient asks a realm over a real NATS server.
type remoteClient struct {
	t        testing.TB
	server   *natstest.Server
	producer *producer.Producer
	sessions *asking.Sessions
	at       asking.At

	mu     sync.Mutex
	events []realm.Event
}

// overNATS starts a producer with a realm, and an asker.
func overNATS(t testing.TB) *remoteClient {
	t.Helper()
	s := natstest.Start(t)
	s.Streams("test", subjects.Storage{Memory: true})
	p, err := producer.Start(producer.Options{URL: s.URL(), Space: "test", ID: "svc"})
	if err != nil {
		t.Fatal(err)
	}
	c := &remoteClient{t: t, server: s, producer: p}
	cmd, err := asking.New(s.Connect(), "test", "gw")
	if err != nil {
		t.Fatal(err)
	}
	stop, err := cmd.Listen(func(e asking.Event) {
		c.mu.Lock()
		c.events = append(c.events, e.Event)
		c.mu.Unlock()
		e.Acknowledge()
	})
	if err != nil {
		t.Fatal(err)
	}
	natstest.Until(t, "the source is open", func() bool { return p.Generation() != "" })
	c.at = asking.At{Source: "svc", Generation: p.Generation()}
	c.sessions = asking.NewSessions(cmd, "gw", nil)
	t.Cleanup(func() {
		c.sessions.Close()
		stop()
		cmd.Close()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = p.Close(ctx)
	})
	return c
}

func (c *remoteClient) try(session, method string, params, result any) error {
	c.t.Helper()
	raw, _ := json.Marshal(params)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	data, err := c.sessions.Do(ctx, c.at, subjects.SessionID(session), realm.Request{Method: realm.Method(method), Params: raw})
	if err == nil && result != nil {
		err = json.Unmarshal(data, result)
	}
	return err
}

func (c *remoteClient) must(session, method string, params, result any) {
	c.t.Helper()
	natstest.Until(c.t, method, func() bool {
		err := c.try(session, method, params, result)
		if err != nil && realm.CodeOf(err) != realm.CodeGone {
			c.t.Fatalf("%s: %v", method, err)
		}
		return err == nil
	})
}

func (c *remoteClient) eval(session, expression string) evaluated {
	c.t.Helper()
	var out evaluated
	c.must(session, "runtime.evaluate", m{"expression": expression, "objectGroup": "console", "replMode": true, "generatePreview": true}, &out)
	return out
}

func closeRealm(t testing.TB, r *Realm) {
	t.Cleanup(func() {
		natstest.Until(t, "its sessions are closed", func() bool { return !r.inUse() })
		r.mu.Lock()
		if r.letGo != nil {
			r.letGo.Stop()
		}
		r.mu.Unlock()
		r.release()
	})
}

// Two sessions at one process share its globals and its values, and nothing else.
func TestServe(t *testing.T) {
	c := overNATS(t)
	defer c.sessions.Close()
	r := New(c.producer, Options{})
	closeRealm(t, r)
	if err := r.Expose("store", testStore(), nil); err != nil {
		t.Fatal(err)
	}
	if got := text(c.eval("a", "store.Orders[7].Total()")); got != "7" {
		t.Error(got)
	}
	c.eval("a", "let shared = 5")
	if got := text(c.eval("b", "shared + 1")); got != "6" {
		t.Error(got)
	}
	if got := text(c.eval("b", "$_")); got != "6" {
		t.Errorf("$_ of the other session: %s", got)
	}
	id := c.eval("a", "store").Result.ObjectID
	if err := c.try("b", "runtime.getProperties", m{"objectId": id, "ownProperties": true}, nil); realm.CodeOf(err) != realm.CodeNotFound {
		t.Error(err)
	}
	// Stop is heard while the evaluator is busy, and values can be expanded meanwhile.
	stuck := make(chan evaluated, 1)
	go func() {
		var out evaluated
		_ = c.try("a", "runtime.evaluate", m{"expression": "while (true) {}"}, &out)
		stuck <- out
	}()
	natstest.Until(t, "it loops", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.world == nil {
			return false
		}
		r.world.mu.Lock()
		defer r.world.mu.Unlock()
		return r.world.current != nil
	})
	if err := c.try("a", "runtime.getProperties", m{"objectId": id, "ownProperties": true}, nil); err != nil {
		t.Error(err)
	}
	// What ran may have been another job, before the loop began: Stop ends what runs when it is heard.
	var ended evaluated
	for stopped := false; !stopped; {
		c.must("b", "runtime.terminateExecution", m{}, nil)
		select {
		case ended = <-stuck:
			stopped = true
		case <-time.After(300 * time.Millisecond):
		}
	}
	if got := text(ended); !strings.HasPrefix(got, "!Error: Execution was terminated") {
		t.Error(got)
	}
	for method, code := range map[string]realm.Code{"debugger.setBreakpointByUrl": realm.CodeUnsupported, "debugger.pause": realm.CodeUnsupported, "runtime.nonsense": realm.CodeUnsupported, "sources.getScriptSource": realm.CodeNotFound} {
		if err := c.try("a", method, m{"scriptId": "77777"}, nil); realm.CodeOf(err) != code {
			t.Errorf("%s: %v", method, err)
		}
	}
	if err := unsupported("debugger.setBreakpointByUrl"); !strings.Contains(err.Error(), "delve") {
		t.Error(err)
	}
}

// What the Console of the realm logs is a record as every other line, and its
// arguments can be opened live.
func TestConsoleIsRecorded(t *testing.T) {
	c := overNATS(t)
	defer c.sessions.Close()
	r := New(c.producer, Options{})
	closeRealm(t, r)
	if err := r.Expose("store", testStore(), nil); err != nil {
		t.Fatal(err)
	}
	c.eval("a", "console.warn('look', store.Orders[7], {a: [1]}, 7n, [1, 2]); console.table(goroutines)")
	c.eval("a", "setTimeout(() => { throw new Error('later') }, 1)")
	sp := fold.New("test", subjects.Limits{})
	var entries []*console.Entry
	read := 0
	natstest.Until(t, "the lines are stored", func() bool {
		all := c.server.Read(subjects.RecordStreamName("test"))
		for _, m := range all[read:] {
			sp.Apply(m.Subject, subjects.StreamSeq(m.Seq), m.Header, m.Data)
		}
		read = len(all)
		if src := sp.Source("svc"); src != nil {
			entries = src.Console.Entries
		}
		return len(entries) == 3
	})
	first := entries[0].Message
	if first.Type != "warning" || first.Ref == 0 || len(first.Args) != 5 || !strings.Contains(string(first.Args[1]), `"ID":7`) || !strings.Contains(string(first.Args[1]), "goreal.order") {
		t.Errorf("%+v %s", first, first.Args)
	}
	if table := string(entries[1].Message.Args[0]); !strings.Contains(table, `"Top":"`) || !strings.Contains(table, `"fields":{"ID":`) {
		t.Errorf("the rows of the table have no columns: %s", table)
	}
	if entries[1].Message.Type != "table" || entries[2].Exception == nil || !strings.Contains(string(entries[2].Exception.Value), "later") {
		t.Errorf("%+v, %+v", entries[1].Message, entries[2])
	}
	var out objectResult
	c.must("a", "console.resolve", m{"ref": first.Ref, "arg": 1}, &out)
	if out.Object.Description != "*goreal.order" || out.Object.ObjectID == "" {
		t.Errorf("%+v", out.Object)
	}
	if err := c.try("a", "console.resolve", m{"ref": 999, "arg": 0}, nil); realm.CodeOf(err) != realm.CodeNotFound {
		t.Error(err)
	}
	ref := r.Keep("text", testStore())
	c.must("a", "console.resolve", m{"ref": ref, "arg": 1}, &out)
	if out.Object.Description != "*goreal.store" {
		t.Errorf("%+v", out.Object)
	}
}

// An object of the component tree is the live object of its node, both ways.
func TestNodes(t *testing.T) {
	c := overNATS(t)
	defer c.sessions.Close()
	tr := treecap.New(c.producer, treecap.Options{})
	defer tr.Close()
	r := New(c.producer, Options{Tree: tr})
	closeRealm(t, r)
	b := newBusy()
	tr.Register(nil, "busy", b, treecap.Locked(&b.mu))
	if err := r.Expose("b", b, nil); err != nil {
		t.Fatal(err)
	}
	id := tr.NodeOf(b)
	if id == 0 {
		t.Fatal("the value has no node")
	}
	o := c.eval("a", "b").Result
	if o.Subtype != "node" {
		t.Errorf("%+v", o)
	}
	var node struct{ ID tree.NodeID }
	c.must("a", "tree.nodeOf", m{"objectId": o.ObjectID}, &node)
	if node.ID != id {
		t.Errorf("node %d, want %d", node.ID, id)
	}
	c.must("a", "tree.nodeOf", m{"objectId": c.eval("a", "({})").Result.ObjectID}, &node)
	if node.ID != 0 {
		t.Errorf("node %d", node.ID)
	}
	var out objectResult
	c.must("a", "tree.resolve", m{"id": id}, &out)
	if out.Object.ClassName != "*goreal.busy" {
		t.Errorf("%+v", out.Object)
	}
	c.must("a", "tree.inspected", m{"id": id}, nil)
	if got := text(c.eval("a", "$0 === b && $1 === undefined")); got != "true" {
		t.Error(got)
	}
	if got := text(c.eval("b", "$0")); got != "undefined" {
		t.Errorf("$0 of another session: %s", got)
	}
	if err := c.try("a", "tree.resolve", m{"id": 4711}, nil); realm.CodeOf(err) != realm.CodeNotFound {
		t.Error(err)
	}
}

// A heap snapshot, a CPU profile and sampled allocations have the form that DevTools reads.
func TestProfiles(t *testing.T) {
	c := overNATS(t)
	defer c.sessions.Close()
	r := New(c.producer, Options{})
	closeRealm(t, r)
	if err := r.Expose("store", testStore(), nil); err != nil {
		t.Fatal(err)
	}
	c.must("a", "heap.takeHeapSnapshot", m{"reportProgress": true}, nil)
	var file bytes.Buffer
	c.mu.Lock()
	for _, e := range c.events {
		var chunk struct{ Chunk string }
		if e.Event == "heap.addHeapSnapshotChunk" && json.Unmarshal(e.Data, &chunk) == nil {
			file.WriteString(chunk.Chunk)
		}
	}
	c.mu.Unlock()
	var snap struct {
		Snapshot struct {
			NodeCount int `json:"node_count"`
			EdgeCount int `json:"edge_count"`
		}
		Nodes, Edges []int
		Strings      []string
	}
	if err := json.Unmarshal(file.Bytes(), &snap); err != nil {
		t.Fatal(err)
	}
	all := strings.Join(snap.Strings, "\n")
	if len(snap.Nodes) != 6*snap.Snapshot.NodeCount || len(snap.Edges) != 3*snap.Snapshot.EdgeCount || !strings.Contains(all, "reachable from what the program exposed") || !strings.Contains(all, "goreal.order") || strings.Contains(all, "secret") {
		t.Errorf("%d nodes, %d edges, %d strings", len(snap.Nodes), len(snap.Edges), len(snap.Strings))
	}
	for i := 2; i < len(snap.Edges); i += 3 {
		if snap.Edges[i]%6 != 0 || snap.Edges[i] >= len(snap.Nodes) {
			t.Fatalf("edge %d leads to %d", i/3, snap.Edges[i])
		}
	}
	found := 0
	for i := 0; i < len(snap.Nodes); i += 6 {
		if snap.Strings[snap.Nodes[i+1]] != "goreal.order" {
			continue
		}
		found++
		var live struct{ Result struct{ Description string } }
		c.must("a", "heap.getObjectByHeapObjectId", m{"objectId": jsonNumber(snap.Nodes[i+2])}, &live)
		if live.Result.Description != "*goreal.order" {
			t.Errorf("%+v", live)
		}
	}
	if found != 10 {
		t.Errorf("%d orders in the snapshot", found)
	}

	c.must("a", "heap.startSampling", m{}, nil)
	var cpu struct {
		Profile struct {
			Nodes []struct {
				CallFrame struct{ FunctionName, URL, ScriptID string }
			}
			Samples            []int
			TimeDeltas         []int64
			StartTime, EndTime int64
		}
	}
	names, script := "", ""
	// A busy machine may give the function no processor for a while.
	for n := time.Duration(1); n <= 10 && script == ""; n++ {
		c.must("a", "profiler.start", m{}, nil)
		if err := c.try("b", "profiler.start", m{}, nil); realm.CodeOf(err) != realm.CodeRefused {
			t.Errorf("two at once: %v", err)
		}
		burn(n * 300 * time.Millisecond)
		c.must("a", "profiler.stop", m{}, &cpu)
		names = ""
		for _, n := range cpu.Profile.Nodes {
			names += n.CallFrame.FunctionName + "\n"
			if strings.HasSuffix(n.CallFrame.FunctionName, "goreal.burn") {
				script = n.CallFrame.ScriptID
			}
		}
	}
	if len(cpu.Profile.Samples) != len(cpu.Profile.TimeDeltas) || cpu.Profile.EndTime <= cpu.Profile.StartTime || script == "" {
		t.Errorf("%d samples, %d nodes:\n%s", len(cpu.Profile.Samples), len(cpu.Profile.Nodes), names)
	}
	var src sourceResult
	c.must("a", "sources.getScriptSource", m{"scriptId": script}, &src)
	if !strings.Contains(src.Source, "func burn(") {
		t.Errorf("%.200s", src.Source)
	}
	var heap struct {
		Profile struct {
			Head    struct{ Children []json.RawMessage }
			Samples []struct{ Size float64 }
		}
	}
	c.must("a", "heap.stopSampling", m{}, &heap)
	if len(heap.Profile.Head.Children) == 0 || len(heap.Profile.Samples) == 0 {
		t.Error("no allocations were sampled")
	}
	var usage struct{ UsedSize, TotalSize uint64 }
	c.must("a", "runtime.getHeapUsage", m{}, &usage)
	if usage.UsedSize < 1<<18 || usage.TotalSize < usage.UsedSize {
		t.Errorf("%+v", usage)
	}
	// A session that ends does not leave the profiler running.
	c.must("a", "profiler.start", m{}, nil)
	c.sessions.CloseSession("a")
	natstest.Until(t, "the profiler is free", func() bool { return c.try("b", "profiler.start", m{}, nil) == nil })
}

func jsonNumber(n int) string { b, _ := json.Marshal(n); return string(b) }

var sink [][]byte

// burn uses the processor and allocates.
func burn(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		sink = append(sink[:len(sink)%100], make([]byte, 64<<10))
		for i := range sink[len(sink)-1] {
			sink[len(sink)-1][i] = byte(i * i)
		}
	}
}

func TestSources(t *testing.T) {
	c := overNATS(t)
	defer c.sessions.Close()
	r := New(c.producer, Options{})
	closeRealm(t, r)
	var out struct {
		Scripts []struct{ ScriptID, URL string }
	}
	c.must("a", "sources.enable", m{}, &out)
	found := false
	for _, s := range out.Scripts {
		if strings.HasSuffix(s.URL, "/producer/goreal/lane.go") && strings.HasPrefix(s.URL, "file:///") {
			found = true
		}
		if strings.Contains(s.URL, "/goja@") || strings.Contains(s.URL, "/src/runtime/") {
			t.Errorf("%s is not of the main module", s.URL)
		}
	}
	if !found {
		t.Errorf("lane.go is not among %d files", len(out.Scripts))
	}
	c.eval("a", "throw new Error('x')")
	natstest.Until(t, "the source of the evaluation is told", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, e := range c.events {
			if e.Event == "sources.scriptParsed" {
				return true
			}
		}
		return false
	})
}

// What a log line holds can be expanded as it is now, and maps in it that nothing guards are not read.
func TestKeptLogLines(t *testing.T) {
	r, c := shopRealm(t, Options{})
	st := testStore()
	ref := r.Keep("placed", slogcap.Attrs{"order": st.Orders[7], "group": slogcap.Attrs{"store": st}})
	var out objectResult
	c.must("console.resolve", m{"ref": ref, "arg": 1}, &out)
	p := c.props(out.Object.ObjectID)
	group := c.props(find(p, "group").Value.ObjectID)
	if listing(group) != "store: *goreal.store\n" {
		t.Error(listing(group))
	}
	order := c.props(find(p, "order").Value.ObjectID)
	if got := objectText(find(order, "ID").Value); got != "7" {
		t.Error(got)
	}
	if labels := c.props(find(order, "Labels").Value.ObjectID); !strings.Contains(internalText(labels, "[[Unreadable]]"), "nothing guards") {
		t.Errorf("%+v", labels)
	}
	if orders := c.props(find(c.props(find(group, "store").Value.ObjectID), "Orders").Value.ObjectID); len(orders.Result) != 10 {
		t.Errorf("%s", listing(orders))
	}
	c.s.Close(nil)
	if r.Keep("x") != 0 || len(r.calls.calls) != 0 {
		t.Error("lines are kept while nobody looks")
	}
}
