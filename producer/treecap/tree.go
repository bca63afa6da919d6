package treecap

import (
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/tree"
)

// defaultInterval is one frame of a screen: faster, nobody could see it.
const defaultInterval = 16 * time.Millisecond

// Options configures a tree. The zero value works.
type Options struct {
	// RootName names the root. The default is "app".
	RootName string
	// Interval is the least time between a change and its sending, in which
	// further changes are gathered. The default is 16 ms.
	Interval time.Duration
}

// Tree is a live tree of one producer. A producer shows one tree: the newest.
type Tree struct {
	p        *producer.Producer
	interval time.Duration
	maxNodes int
	maxDepth int
	// maxNode bounds the texts of one node, and maxRecord the nodes of one record, in bytes.
	maxNode, maxRecord int
	root               *Node
	// registry names the tree as the table that resolves object references.
	registry string
	// edits holds a token for each setter that runs.
	edits chan struct{}
	// serve answers commands, once there is something to edit.
	serve sync.Once
	// inspects answers the command that opens values, once there are some.
	inspects sync.Once
	// watches answers the command that says who looks, once a node wants to know.
	watches sync.Once

	// sending is held while records are made and handed over.
	sending sync.Mutex

	// mu guards all below and the nodes.
	mu sync.Mutex
	// timer is not nil while a flush is due.
	timer  *time.Timer
	closed bool
	lastID tree.NodeID
	count  int
	// cut is how many nodes limits left out; wasCut whether readers know that there are some.
	cut    int
	wasCut bool

	// begun says that a snapshot was made, so that operations may follow.
	begun            bool
	revision, commit uint64
	removed          []tree.NodeID
	added, updated   []*Node
	// components holds the live values that are registered, by their nodes.
	components map[tree.NodeID]*Component
	// pointers finds the node of a registered pointer.
	pointers map[any]tree.NodeID
	// kinds are those of the values that were shown last.
	kinds map[string]string
}

// trees counts the trees of the process, so that no two have references in common.
var trees atomic.Uint64

// New makes a tree that has only a root, and shows it as the producer's.
func New(p *producer.Producer, o Options) *Tree {
	limits := p.Limits()
	t := &Tree{
		p: p, interval: o.Interval,
		maxNodes: limits.ComponentNodes, maxDepth: limits.TreeDepth,
		maxRecord: min(limits.FrameBytes/4, 64<<10),
		lastID:    1, count: 1,
		registry: "tree" + strconv.FormatUint(trees.Add(1), 10), edits: make(chan struct{}, maxEdits),
	}
	t.maxNode = t.maxRecord / 2
	if t.interval <= 0 {
		t.interval = defaultInterval
	}
	t.root = &Node{t: t, id: 1, name: cleanName(o.RootName, "app"), depth: 1}
	p.OnSnapshot(t.snapshot)
	p.Resnapshot()
	return t
}

// Root returns the root, which is there from the start and cannot be removed.
func (t *Tree) Root() *Node { return t.root }

// Flush hands the changes so far to the producer now. There is no need to call
// it; producer.Flush after it waits until they are stored.
func (t *Tree) Flush() {
	t.sending.Lock()
	defer t.sending.Unlock()
	for _, r := range t.take() {
		t.p.Record(subjects.PlaneTree, tree.TopicOps, r)
	}
}

// Close hands over what changed and ends the tree: it stays as it is, and
// further changes are ignored. Close the tree before the producer.
func (t *Tree) Close() {
	t.mu.Lock()
	t.closed = true
	for _, c := range t.components {
		if c.watching != nil {
			t.unwatch(c.watching)
		}
	}
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
	t.mu.Unlock()
	t.Flush()
}

// ref names the live value of a component: a reference is never used twice,
// since node ids are not.
func (t *Tree) ref(id tree.NodeID) tree.ObjectRef {
	return tree.ObjectRef(t.registry + "." + strconv.FormatUint(uint64(id), 10))
}

// parseRef is the reverse of ref; false for a reference of something else.
func (t *Tree) parseRef(ref tree.ObjectRef) (tree.NodeID, bool) {
	digits, ok := strings.CutPrefix(string(ref), t.registry+".")
	if !ok {
		return 0, false
	}
	id, err := strconv.ParseUint(digits, 10, 64)
	return tree.NodeID(id), err == nil && t.ref(tree.NodeID(id)) == ref
}

// changed makes sure that a flush is due. The caller holds t.mu.
func (t *Tree) changed() {
	// Before the first snapshot there is nothing to change for any reader.
	if t.timer == nil && t.begun && !t.closed {
		t.timer = time.AfterFunc(t.interval, t.Flush)
	}
}

// unlink takes n out of its parent's children.
func (t *Tree) unlink(n *Node) {
	p := n.parent
	if n.prev != nil {
		n.prev.next = n.next
	} else {
		p.first = n.next
	}
	if n.next != nil {
		n.next.prev = n.prev
	} else {
		p.last = n.prev
	}
	n.parent, n.prev, n.next = nil, nil, nil
}

// bury marks n and everything below it as gone.
func (t *Tree) bury(n *Node) {
	walk(n, func(x *Node) {
		x.discard(gone)
		t.count--
		t.cut -= x.cut
		x.cut = 0
	})
}

// walk calls f for n and everything below it, parents first, without recursion.
func walk(n *Node, f func(*Node)) {
	for x := n; x != nil; {
		f(x)
		switch {
		case x.first != nil:
			x = x.first
		default:
			for x != n && x.next == nil {
				x = x.parent
			}
			if x == n {
				return
			}
			x = x.next
		}
	}
}
