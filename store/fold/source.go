package fold

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/console"
	"github.com/natscope/natscope/subjects/network"
	"github.com/natscope/natscope/subjects/source"
	"github.com/natscope/natscope/subjects/tree"
)

// Plane is what is known of the records of one plane of the current generation.
type Plane struct {
	// Next is the number of the next record.
	Next subjects.Seq `json:"next"`
	// Records counts the records that were folded.
	Records uint64 `json:"records"`
	// Dropped counts the records that the producer lost, Missed those that were lost after it.
	Dropped uint64 `json:"dropped,omitempty"`
	Missed  uint64 `json:"missed,omitempty"`
}

// Source is the state of one source.
type Source struct {
	// ID is the source's id.
	ID subjects.SourceID
	// Element is the id of the element that stands for the source.
	Element tree.BackendNodeID
	// Generation is the newest generation.
	Generation subjects.Generation
	// Covered is the stream sequence of the last message folded.
	Covered subjects.StreamSeq
	// LastT is the time of the newest record of the generation, in milliseconds on the source's clock.
	LastT float64
	// Planes holds the sequences of the current generation.
	Planes map[subjects.Plane]*Plane
	// Late counts frames of older generations, which change nothing.
	Late uint64
	// Unknown counts frames of planes that this version does not know.
	Unknown uint64

	// Life is what the newest generation said of itself.
	Life source.State
	// Tree is the newest tree; it outlives its generation.
	Tree tree.State
	// Net holds the requests of all generations.
	Net network.State
	// Console holds the console entries of all generations.
	Console console.State

	// Faults holds the newest faults; FaultCount counts all.
	Faults     []Fault
	FaultCount uint64

	// Connected says whether the source lives, as its reader observed it; it is no part of the fold.
	Connected bool
	// GoneAt is when the source went, while it is not connected; like Connected it is no part of the fold.
	GoneAt time.Time

	limits subjects.Limits
}

// SetLimits sets the retention limits of a source that was rebuilt from storage.
func (s *Source) SetLimits(l subjects.Limits) { s.limits = l.WithDefaults() }

// Name returns the name that people gave the source, or its id while it has not said one.
func (s *Source) Name() string {
	if n := s.Life.Descriptor.Name; n != "" {
		return n
	}
	return string(s.ID)
}

// Lost sums the records of the current generation that were dropped or missed.
func (s *Source) Lost() uint64 {
	var n uint64
	for _, p := range s.Planes {
		n += p.Dropped + p.Missed
	}
	return n
}

// Gone ends the running requests of the current generation, because its source
// died or left, and returns the changes.
func (s *Source) Gone(reason string) []Change {
	var out []Change
	for _, c := range s.Net.Gone(string(s.Generation), s.LastT, reason) {
		out = append(out, Change{Kind: RequestChanged, Source: s, Request: c})
	}
	return out
}

func (s *Source) apply(changes []Change, name subjects.RecordSubject, f subjects.Frame, ids *tree.IDs) []Change {
	if name.Generation < s.Generation {
		s.Late++
		return changes
	}
	if name.Generation > s.Generation {
		changes = s.turn(changes, name, f)
	}
	if !name.Plane.Known() {
		s.Unknown++
		return changes
	}
	p := s.plane(name.Plane)
	changes, f = s.sequence(changes, p, name.Plane, f)
	for _, r := range f.Records {
		p.Records++
		p.Next++
		s.LastT = max(s.LastT, r.T)
		changes = s.record(changes, name.Plane, r, ids)
	}
	return changes
}

// turn begins a new generation.
func (s *Source) turn(changes []Change, name subjects.RecordSubject, f subjects.Frame) []Change {
	if s.Generation != "" {
		changes = append(changes, s.Gone("the source began a new generation")...)
	}
	s.Generation, s.Planes, s.LastT = name.Generation, nil, 0
	if name.Plane == subjects.PlaneLife && len(f.Records) > 0 && opens(f.Records[0]) {
		return changes
	}
	// The open is gone from the stream, or malformed: what follows is still worth showing.
	kind := s.Life.Descriptor.Kind
	if kind == "" {
		kind = source.KindHost
	}
	s.Life = source.State{Descriptor: source.Descriptor{Name: s.Name(), Kind: kind, Realm: source.RealmID(name.Generation)}}
	s.Tree.Reset(false)
	changes = append(changes, Change{Kind: SourceOpened, Source: s})
	return append(changes, s.fault(FaultUnopened, name.Plane, fmt.Sprintf("generation %s begins with plane %s, its open is missing", name.Generation, name.Plane)))
}

// opens reports whether a record opens a generation.
func opens(r subjects.Record) bool {
	if r.Topic != source.TopicOpen {
		return false
	}
	_, err := source.ParseDescriptor(r.Data)
	return err == nil
}

// sequence compares a frame with what was expected: it trims what was folded
// before and reports what is missing.
func (s *Source) sequence(changes []Change, p *Plane, plane subjects.Plane, f subjects.Frame) ([]Change, subjects.Frame) {
	if f.Seq < p.Next {
		n := min(uint64(p.Next-f.Seq), uint64(len(f.Records)))
		f.Records, f.Seq, f.Dropped = f.Records[n:], f.Seq+subjects.Seq(n), 0
		return changes, f
	}
	if !s.Life.Opened && p.Records == 0 {
		// Where the open is missing, so is what came before the first frame: the
		// stream evicted it, and a fault has said so.
		p.Next = f.Seq
		return changes, f
	}
	if skipped := uint64(f.Seq - p.Next); skipped > 0 {
		dropped := min(f.Dropped, skipped)
		p.Dropped += dropped
		if dropped > 0 {
			changes = append(changes, s.fault(FaultDropped, plane, fmt.Sprintf("%d records of plane %s were dropped at the source: its queue was full", dropped, plane)))
		}
		if missed := skipped - dropped; missed > 0 {
			p.Missed += missed
			changes = append(changes, s.fault(FaultGap, plane, fmt.Sprintf("%d records of plane %s are missing before number %d", missed, plane, f.Seq)))
		}
		p.Next = f.Seq
	}
	return changes, f
}

// record folds one record.
func (s *Source) record(changes []Change, plane subjects.Plane, r subjects.Record, ids *tree.IDs) []Change {
	var err error
	switch plane {
	case subjects.PlaneLife:
		changes, err = s.life(changes, r)
	case subjects.PlaneTree:
		changes, err = s.tree(changes, r, ids)
	case subjects.PlaneNet:
		var c *network.Change
		if c, err = s.Net.Apply(string(s.Generation), r.T, r.Topic, r.Data, network.Keep{Requests: s.limits.Requests, Bytes: s.limits.RequestsBytes}); c != nil {
			if c.Topic == network.TopicStart {
				c.Request.Origin = s.Life.Descriptor.Origin
			}
			changes = append(changes, Change{Kind: RequestChanged, Source: s, Request: c})
		}
	case subjects.PlaneConsole:
		var e *console.Entry
		if e, err = s.Console.Apply(string(s.Generation), r.T, s.Life.Wall(r.T), r.Topic, r.Data, s.limits.ConsoleEntries); e != nil {
			changes = append(changes, Change{Kind: ConsoleAdded, Source: s, Console: e})
		}
	case subjects.PlaneEvent:
		changes = append(changes, Change{Kind: EventPublished, Source: s, Event: &r})
	}
	if err != nil {
		kind := FaultMalformed
		if errors.Is(err, tree.ErrRevision) {
			kind = FaultTree
		}
		changes = append(changes, s.fault(kind, plane, err.Error()))
	}
	return changes
}

func (s *Source) life(changes []Change, r subjects.Record) ([]Change, error) {
	realm := s.Life.Descriptor.Realm
	opened := s.Life.Opened
	if err := s.Life.Apply(r.T, r.Topic, r.Data); err != nil {
		return changes, err
	}
	switch r.Topic {
	case source.TopicOpen:
		same := opened && realm == s.Life.Descriptor.Realm
		s.Tree.Reset(same)
		changes = append(changes, Change{Kind: SourceOpened, Source: s, SameRealm: same})
	case source.TopicUpdate:
		changes = append(changes, Change{Kind: SourceUpdated, Source: s})
	case source.TopicNotice:
		// Life.Apply has refused what cannot be parsed.
		n, _ := source.ParseNotice(r.Data)
		changes = append(changes, s.fault(FaultNotice, subjects.PlaneLife, n.Text))
	case source.TopicClose:
		changes = append(changes, Change{Kind: SourceClosed, Source: s})
		reason := s.Life.Reason
		if reason == "" {
			reason = "the source closed"
		}
		changes = append(changes, s.Gone(reason)...)
	}
	return changes, nil
}

func (s *Source) tree(changes []Change, r subjects.Record, ids *tree.IDs) ([]Change, error) {
	limits := tree.Limits{Nodes: s.limits.ComponentNodes, CordisNodes: s.limits.CordisNodes, Depth: s.limits.TreeDepth, Commits: s.limits.Commits}
	at := 0.0
	if s.Life.Opened {
		at = s.Life.Wall(r.T)
	}
	truncated := s.Tree.Truncated
	cs, err := s.Tree.Apply(r.Topic, r.Data, ids, limits, at)
	for _, c := range cs {
		changes = append(changes, Change{Kind: TreeChanged, Source: s, Tree: c})
	}
	if s.Tree.Truncated != truncated {
		changes = append(changes, Change{Kind: SourceUpdated, Source: s})
	}
	return changes, err
}

func (s *Source) plane(name subjects.Plane) *Plane {
	if s.Planes == nil {
		s.Planes = make(map[subjects.Plane]*Plane)
	}
	p := s.Planes[name]
	if p == nil {
		p = &Plane{Next: 1}
		s.Planes[name] = p
	}
	return p
}

// maxFaultText is how many bytes of a fault's text are kept: it may quote what was malformed.
const maxFaultText = 500

// fault records a fault and returns the change that tells of it.
func (s *Source) fault(kind FaultKind, plane subjects.Plane, text string) Change {
	s.FaultCount++
	if text = strings.ToValidUTF8(text, "\ufffd"); len(text) > maxFaultText {
		text = strings.ToValidUTF8(text[:maxFaultText], "") + "…"
	}
	f := Fault{Number: s.FaultCount, Kind: kind, Plane: plane, Text: text}
	if s.Life.Opened {
		f.T = s.Life.Wall(s.LastT)
	}
	s.Faults = append(s.Faults, f)
	for s.limits.Faults > 0 && len(s.Faults) > s.limits.Faults {
		s.Faults = s.Faults[1:]
	}
	return Change{Kind: FaultAdded, Source: s, Fault: &f}
}
