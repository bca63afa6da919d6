package goreal

import (
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/natscope/natscope/producer/goreal/internal/graph"
	"github.com/natscope/natscope/producer/goreal/internal/mirror"
	"github.com/natscope/natscope/subjects/realm"
)

const (
	// maxSnapshot is how many values a heap snapshot has, maxQuery how many
	// queryObjects looks at. One takes about 250 bytes meanwhile, and 60 of a
	// snapshot's stay with the session, by which its objects can be asked for.
	maxSnapshot, maxQuery = 300_000, 300_000
	// chunk is how many bytes of a snapshot one event carries.
	chunk = 256 << 10
)

// walk finds everything that can be reached from what is exposed.
func (r *Realm) walk(limit int, stop func() bool) *graph.Graph {
	r.mu.Lock()
	roots := append([]root(nil), r.roots...)
	r.mu.Unlock()
	var from []graph.Root
	for _, x := range roots {
		if v, err := x.value(); err == nil {
			from = append(from, graph.Root{Name: x.name, Value: v})
		}
	}
	return graph.Walk(from, limit, stop)
}

type snapshotParams struct {
	ReportProgress bool `json:"reportProgress"`
}

type snapshotProgress struct {
	Done     int  `json:"done"`
	Total    int  `json:"total"`
	Finished bool `json:"finished"`
}

type snapshotChunk struct {
	Chunk string `json:"chunk"`
}

// takeHeapSnapshot is heap.takeHeapSnapshot: not of the heap, but of what can be
// reached from what the program exposed, and it says so in its root.
func takeHeapSnapshot(c *command, p snapshotParams) {
	c.read(func() {
		stop := func() bool { return c.ctx.Err() != nil || c.s.closed.Load() }
		g := c.s.r.walk(maxSnapshot, stop)
		if p.ReportProgress {
			c.s.out.Emit("heap.reportHeapSnapshotProgress", snapshotProgress{len(g.Nodes), len(g.Nodes), true})
		}
		w := &chunks{c: c}
		err := g.Write(w)
		if err == nil {
			err = w.flush()
		}
		if err != nil {
			c.reply(nil, fmt.Errorf("%w: the snapshot was not sent whole: %w", realm.ErrFailed, err))
			return
		}
		g.Slim()
		c.s.mu.Lock()
		c.s.snapshot = g
		c.s.mu.Unlock()
		c.ok()
	})
}

// chunks sends what is written to it as events, each after the one before was taken.
type chunks struct {
	c   *command
	buf []byte
}

func (w *chunks) Write(p []byte) (int, error) {
	w.buf = append(w.buf, p...)
	for len(w.buf) > chunk {
		n := chunk
		for n > 0 && !utf8.RuneStart(w.buf[n]) {
			n--
		}
		if err := w.send(n); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

func (w *chunks) send(n int) error {
	text := string(w.buf[:n])
	w.buf = append(w.buf[:0], w.buf[n:]...)
	return w.c.s.out.EmitWait(w.c.ctx, "heap.addHeapSnapshotChunk", snapshotChunk{text})
}

func (w *chunks) flush() error {
	if len(w.buf) == 0 {
		return nil
	}
	return w.send(len(w.buf))
}

// snapshotValue finds a value of the session's newest snapshot.
func (c *command) snapshotValue(id string) (mirror.Value, bool) {
	c.s.mu.Lock()
	g := c.s.snapshot
	c.s.mu.Unlock()
	n, err := strconv.Atoi(id)
	if g != nil && err == nil {
		if i := graph.NodeOfID(n); i > 1 && i < len(g.Nodes) {
			return g.Nodes[i].Value, true
		}
	}
	c.reply(nil, fmt.Errorf("%w: the newest snapshot of this session has no object %.20q", realm.ErrNotFound, id))
	return mirror.Value{}, false
}

type snapshotObjectParams struct {
	ObjectID     string `json:"objectId"`
	HeapObjectID string `json:"heapObjectId"`
	ObjectGroup  string `json:"objectGroup"`
}

type snapshotObject struct {
	Result any `json:"result"`
}

// objectOfSnapshot is heap.getObjectByHeapObjectId: the live value of a node of the newest snapshot.
func objectOfSnapshot(c *command, p snapshotObjectParams) {
	if v, ok := c.snapshotValue(p.ObjectID); ok {
		c.read(func() { c.reply(snapshotObject{v.Remote(c.s.lens(p.ObjectGroup), true)}, nil) })
	}
}

// inspectSnapshotObject is heap.addInspectedHeapObject: the value becomes $0.
func inspectSnapshotObject(c *command, p snapshotObjectParams) {
	if v, ok := c.snapshotValue(p.HeapObjectID); ok {
		c.s.look(v)
		c.ok()
	}
}

// snapshotIDOf is heap.getHeapObjectId.
func snapshotIDOf(c *command, _ nothing) {
	c.reply(nil, fmt.Errorf("%w: take a heap snapshot and search in it", realm.ErrUnsupported))
}

type queryParams struct {
	PrototypeObjectID string `json:"prototypeObjectId"`
	ObjectGroup       string `json:"objectGroup"`
}

type queryResult struct {
	Objects any `json:"objects"`
}

// queryObjects is runtime.queryObjects: the values of a Go type, given by its
// prototype, that can be reached from what is exposed.
func queryObjects(c *command, p queryParams) {
	o, _, ok := c.object(p.PrototypeObjectID)
	if !ok {
		return
	}
	c.evaluate(0, func(e engine) {
		if !c.owned(e, o) {
			return
		}
		var out []mirror.Value
		if t, ok := e.TypeOf(o); ok {
			g := c.s.r.walk(maxQuery, func() bool { return c.ctx.Err() != nil })
			for _, n := range g.Nodes[2:] {
				if v := n.Value; v.Reflect().IsValid() && v.Reflect().Type() == t {
					out = append(out, v)
				}
			}
		}
		c.reply(queryResult{e.List(out).Remote(c.s.lens(p.ObjectGroup), true)}, nil)
	})
}
