package state

import (
	"fmt"
	"runtime"
	"sync"

	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/console"
	"github.com/natscope/natscope/subjects/network"
	"github.com/natscope/natscope/subjects/tree"
)

// Decode rebuilds a source from its parts, which are keyed by their names. Parts
// that the head does not name are ignored. The error wraps ErrDamaged.
func Decode(id subjects.SourceID, parts map[string][]byte, l subjects.Limits) (*fold.Source, Head, error) {
	h, err := ParseHead(parts[HeadPart])
	if err != nil {
		return nil, h, fmt.Errorf("source %s: %w", id, err)
	}
	s := &fold.Source{
		ID: id, Element: h.Element, Generation: h.Generation, Covered: h.Covered, LastT: h.LastT,
		Late: h.Late, Unknown: h.Unknown, Life: h.Life, Faults: h.Faults, FaultCount: h.FaultCount, Connected: h.Connected, GoneAt: h.GoneAt,
	}
	s.SetLimits(l)
	for name, p := range h.Planes {
		if s.Planes == nil {
			s.Planes = make(map[subjects.Plane]*fold.Plane, len(h.Planes))
		}
		s.Planes[name] = &p
	}
	for _, f := range []func(*fold.Source, *Head, map[string][]byte) error{decodeTree, decodeRequests, decodeConsole, decodeHistory} {
		if err := f(s, &h, parts); err != nil {
			return nil, h, fmt.Errorf("source %s: %w", id, err)
		}
	}
	return s, h, nil
}

func decodeTree(s *fold.Source, h *Head, parts map[string][]byte) error {
	t := &h.Tree
	s.Tree.Profile, s.Tree.Revision, s.Tree.Registry = t.Profile, t.Revision, t.Registry
	s.Tree.Truncated, s.Tree.Commit = t.Truncated, t.Commit
	nodes, err := unpackTree(t, parts)
	if err != nil {
		return err
	}
	if t.Root != 0 {
		if err := plant(&s.Tree, t.Root, nodes); err != nil {
			return err
		}
	}
	if s.Tree.Len() != t.Nodes || len(nodes) != t.Nodes {
		return fmt.Errorf("%w: the shards hold %d nodes, %d of them in the tree, the head names %d", ErrDamaged, len(nodes), s.Tree.Len(), t.Nodes)
	}
	s.Tree.Detached = t.Detached
	return nil
}

// unpackTree unpacks all tree shards, several at a time.
func unpackTree(t *Tree, parts map[string][]byte) (map[tree.NodeID]*placed, error) {
	lines := make([][]*placed, len(t.Parts))
	errs := make([]error, len(t.Parts))
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	for i, n := range t.Parts {
		slots <- struct{}{}
		wg.Go(func() {
			errs[i] = unpack(parts, "t", i, n, func(p *placed) error {
				lines[i] = append(lines[i], p)
				return nil
			})
			<-slots
		})
	}
	wg.Wait()
	total := 0
	for i := range lines {
		if errs[i] != nil {
			return nil, errs[i]
		}
		total += len(lines[i])
	}
	nodes := make(map[tree.NodeID]*placed, total)
	for _, l := range lines {
		for _, p := range l {
			if nodes[p.Node.ID] != nil {
				return nil, fmt.Errorf("%w: node %d is in two shards", ErrDamaged, p.Node.ID)
			}
			nodes[p.Node.ID] = p
		}
	}
	return nodes, nil
}

// plant links the nodes below a root, parents first and children in order.
func plant(s *tree.State, root tree.NodeID, nodes map[tree.NodeID]*placed) error {
	type place struct{ parent, id tree.NodeID }
	stack := []place{{0, root}}
	for len(stack) > 0 {
		at := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		p := nodes[at.id]
		if p == nil {
			return fmt.Errorf("%w: node %d is in no shard", ErrDamaged, at.id)
		}
		e, err := s.Restore(at.parent, p.Node, p.Backend)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		if len(p.Children) > 0 {
			e.Children = make([]*tree.Entry, 0, len(p.Children))
		}
		children := make([]place, len(p.Children))
		last := int64(0)
		for i, d := range p.Children {
			last += d
			children[len(children)-1-i] = place{at.id, tree.NodeID(last)}
		}
		stack = append(stack, children...)
	}
	return nil
}

func decodeRequests(s *fold.Source, h *Head, parts map[string][]byte) error {
	r := &h.Requests
	s.Net.Started, s.Net.Evicted = r.Count, r.Evicted
	return r.walk("requests", requestsPerShard, func(slot int, next *uint64, end uint64) error {
		return unpack(parts, "n", slot, r.Parts[slot], func(q *network.Request) error {
			if q.Order == *next && *next <= end {
				*next++
				s.Net.Restore(q)
			}
			return nil
		})
	})
}

func decodeConsole(s *fold.Source, h *Head, parts map[string][]byte) error {
	r := &h.Console
	s.Console.Count, s.Console.Evicted = r.Count, r.Evicted
	return r.walk("console entries", entriesPerShard, func(slot int, next *uint64, end uint64) error {
		return unpack(parts, "c", slot, r.Parts[slot], func(e *console.Entry) error {
			if e.Order == *next && *next <= end {
				*next++
				s.Console.Entries = append(s.Console.Entries, e)
			}
			return nil
		})
	})
}

func decodeHistory(s *fold.Source, h *Head, parts map[string][]byte) error {
	r := &h.History
	s.Tree.History.Count, s.Tree.History.Dropped = r.Count, r.Evicted
	return r.walk("commits", commitsPerShard, func(slot int, next *uint64, end uint64) error {
		return unpack(parts, "h", slot, r.Parts[slot], func(c *tree.HistoryCommit) error {
			if c.Seq == *next && *next <= end {
				*next++
				s.Tree.History.Restore(*c)
			}
			return nil
		})
	})
}

// walk calls read for the slot of every shard that holds kept entries, in
// order. read advances next over the entries that it finds, up to end.
func (r *Ring) walk(what string, size uint64, read func(slot int, next *uint64, end uint64) error) error {
	next := r.Evicted + 1
	for next <= r.Count {
		if len(r.Parts) == 0 {
			return fmt.Errorf("%w: no slots for %d %s", ErrDamaged, r.Count-r.Evicted, what)
		}
		shard := (next - 1) / size
		end := min((shard+1)*size, r.Count)
		if err := read(int(shard%uint64(len(r.Parts))), &next, end); err != nil {
			return err
		}
		if next != end+1 {
			return fmt.Errorf("%w: of the %s up to number %d, number %d is missing", ErrDamaged, what, end, next)
		}
	}
	return nil
}
