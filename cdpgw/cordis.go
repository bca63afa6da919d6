package cdpgw

import (
	"time"

	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/source"
	"github.com/natscope/natscope/subjects/tree"
)

// cordisMethods are what the inspector of a Cordis application answers beside
// Chrome's domains, for the tools that ask that one: the sources, and their trees.
var cordisMethods = map[string]method{
	"DSHInspector.enable":        on((*session).cordisEnable),
	"DSHInspector.disable":       on((*session).cordisDisable),
	"DSHInspector.getSources":    on((*session).cordisGetSources),
	"DSHInspector.getCordisTree": on((*session).cordisGetTree),
}

// sourcesEvery is the least time between two DSHInspector.sourcesChanged.
const sourcesEvery = 100 * time.Millisecond

// cordisState is what the client was told of the DSHInspector domain.
type cordisState struct {
	enabled bool
	// told is when the sources were told last.
	told time.Time
	// due is not nil while an event waits for its time.
	due *time.Timer
	// ended says that the connection is over.
	ended bool
}

// sourceRow is one source of DSHInspector.getSources.
type sourceRow struct {
	SourceID     subjects.SourceID   `json:"sourceId"`
	Generation   subjects.Generation `json:"generation"`
	Kind         source.Kind         `json:"kind"`
	Label        string              `json:"label"`
	Connected    bool                `json:"connected"`
	Capabilities []string            `json:"capabilities"`
	// ExpectedSequence is the number of the generation's next record, those of all planes counted together.
	ExpectedSequence uint64 `json:"expectedSequence"`
	// Dropped counts the records of the generation that were lost on the way.
	Dropped uint64 `json:"dropped"`
	// Topics counts the records of the generation that came, by plane.
	Topics map[subjects.Plane]uint64 `json:"topics"`
}

type sourcesParams struct {
	Sources []sourceRow `json:"sources"`
}

type cordisTreeResult struct {
	Tree tree.CordisTree `json:"tree"`
}

// cordisEnable answers with the sources; from then on the client hears of their changes.
func (s *session) cordisEnable(empty) (any, error) {
	s.cordis.enabled, s.cordis.told = true, time.Now()
	return s.cordisGetSources(empty{})
}

func (s *session) cordisDisable(empty) (any, error) {
	s.cordis.enabled = false
	s.cordis.cancel()
	return nil, nil
}

func (s *session) cordisGetSources(empty) (any, error) {
	out := sourcesParams{Sources: []sourceRow{}}
	for _, src := range s.sources() {
		out.Sources = append(out.Sources, rowOf(src))
	}
	return out, nil
}

// cordisGetTree returns the trees of the target's Cordis runtimes.
func (s *session) cordisGetTree(empty) (any, error) {
	return cordisTreeResult{fold.CordisTree(s.sources()...)}, nil
}

func rowOf(src *fold.Source) sourceRow {
	row := sourceRow{
		SourceID: src.ID, Generation: src.Generation, Kind: kindOf(src), Label: src.Name(), Connected: src.Connected,
		Capabilities: append([]string{}, src.Life.Descriptor.Capabilities...), ExpectedSequence: 1, Dropped: src.Lost(),
		Topics: make(map[subjects.Plane]uint64),
	}
	for name, p := range src.Planes {
		row.ExpectedSequence += uint64(p.Next) - 1
		if p.Records > 0 {
			row.Topics[name] = p.Records
		}
	}
	return row
}

// syncSources tells of changed sources, or makes sure that it will be told: the
// whole list goes out at most every sourcesEvery, however much changes.
func (s *session) syncSources(b *batch) {
	c := &s.cordis
	if !c.enabled || c.ended || c.due != nil {
		return
	}
	concerned := b.replaced
	for i := 0; i < len(b.changes) && !concerned; i++ {
		concerned = s.target.includes(b.changes[i].Source)
	}
	if !concerned {
		return
	}
	if wait := time.Until(c.told.Add(sourcesEvery)); wait > 0 {
		c.due = time.AfterFunc(wait, func() { s.live(s.tellSources) })
		return
	}
	s.tellSources()
}

// tellSources sends the list of sources as it is now.
func (s *session) tellSources() {
	c := &s.cordis
	c.due = nil
	if !c.enabled || c.ended {
		return
	}
	c.told = time.Now()
	rows, _ := s.cordisGetSources(empty{})
	s.event("DSHInspector.sourcesChanged", rows)
}

// cancel takes back an event that waits.
func (c *cordisState) cancel() {
	if c.due != nil {
		c.due.Stop()
		c.due = nil
	}
}

// endSources makes sure that no event waits for a connection that is over.
func (s *session) endSources() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cordis.ended = true
	s.cordis.cancel()
}
