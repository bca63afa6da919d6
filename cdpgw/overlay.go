package cdpgw

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/realm"
	"github.com/natscope/natscope/subjects/tree"
)

// overlayMethods bring highlights and picks to the sources that can show them,
// and take everything else that DevTools says of overlays.
var overlayMethods = map[string]method{
	"Overlay.enable":                        on((*session).overlayEnable),
	"Overlay.disable":                       on((*session).overlayDisable),
	"Overlay.highlightNode":                 on((*session).overlayHighlightNode),
	"Overlay.hideHighlight":                 on((*session).overlayHideHighlight),
	"Overlay.setInspectMode":                on((*session).overlaySetInspectMode),
	"Overlay.highlightFrame":                constant(empty{}),
	"Overlay.highlightRect":                 constant(empty{}),
	"Overlay.highlightQuad":                 constant(empty{}),
	"Overlay.setShowViewportSizeOnResize":   constant(empty{}),
	"Overlay.setShowGridOverlays":           constant(empty{}),
	"Overlay.setShowFlexOverlays":           constant(empty{}),
	"Overlay.setShowScrollSnapOverlays":     constant(empty{}),
	"Overlay.setShowContainerQueryOverlays": constant(empty{}),
	"Overlay.setShowIsolatedElements":       constant(empty{}),
	"Overlay.setShowInspectedElementAnchor": constant(empty{}),
	"Overlay.setShowHinge":                  constant(empty{}),
	"Overlay.setShowDisplayCutout":          constant(empty{}),
	"Overlay.setShowAdHighlights":           constant(empty{}),
	"Overlay.setShowDebugBorders":           constant(empty{}),
	"Overlay.setShowFPSCounter":             constant(empty{}),
	"Overlay.setShowLayoutShiftRegions":     constant(empty{}),
	"Overlay.setShowPaintRects":             constant(empty{}),
	"Overlay.setShowScrollBottleneckRects":  constant(empty{}),
	"Overlay.setShowWebVitals":              constant(empty{}),
	"Overlay.setPausedInDebuggerMessage":    constant(empty{}),
}

// The times of overlays.
const (
	// overlayWait is how long a source has to show something before the next wish is sent.
	overlayWait = 2 * time.Second
	// overlayRenew is the time between two repetitions of what is shown or watched: sources stop by themselves after 30 s.
	overlayRenew = 10 * time.Second
	// overlayEnd bounds the taking back of everything when the connection ends.
	overlayEnd = time.Second
)

// overlayState is what the client was told, and asked for, of the Overlay domain.
type overlayState struct {
	enabled bool
	// picking says that the client waits for a node to be picked.
	picking bool
	// pending is a node for each source that the client should be shown once it is there.
	pending map[subjects.SourceID]tree.NodeID
	// lanes are guarded by their own lock: commands run without that of the session.
	lanes *overlayLanes
}

type inspectNodeEvent struct {
	BackendNodeID tree.BackendNodeID `json:"backendNodeId"`
}

type nodeHighlightEvent struct {
	NodeID NodeID `json:"nodeId"`
}

func (s *session) overlayEnable(empty) (any, error) {
	s.overlay.enabled = true
	return nil, nil
}

func (s *session) overlayDisable(empty) (any, error) {
	s.overlay.enabled, s.overlay.picking, s.overlay.pending = false, false, nil
	s.overlay.lanes.highlight(realmOf{}, 0)
	s.overlay.lanes.pick(nil)
	return nil, nil
}

// overlayHighlightNode shows a component on its page. It never waits: while one
// is being shown, only the newest wish counts.
func (s *session) overlayHighlightNode(p nodeParams) (any, error) {
	n, err := s.lookup(p)
	if err != nil {
		return nil, err
	}
	if n.place != placeTree || n.source.Tree.Detached {
		s.overlay.lanes.highlight(realmOf{}, 0)
		return nil, nil
	}
	at, err := s.reachable(n.source, realm.MethodHighlight)
	if err != nil {
		// Most sources have nothing to show, and the pointer only passes by.
		s.overlay.lanes.highlight(realmOf{}, 0)
		return nil, nil
	}
	s.overlay.lanes.highlight(at, n.entry.ID)
	return nil, nil
}

func (s *session) overlayHideHighlight(empty) (any, error) {
	s.overlay.lanes.highlight(realmOf{}, 0)
	return nil, nil
}

type inspectModeParams struct {
	Mode string `json:"mode"`
}

// overlaySetInspectMode begins or ends a pick in every page that can pick.
func (s *session) overlaySetInspectMode(p inspectModeParams) (any, error) {
	s.overlay.picking = p.Mode == "searchForNode" || p.Mode == "searchForUAShadowDOM"
	s.syncPick()
	return nil, nil
}

// syncPick brings the pages that pick to what the client wants. Where no page
// can pick, or none is left, the client hears that nothing will come.
func (s *session) syncPick() {
	var pages []realmOf
	if s.overlay.picking {
		for _, src := range s.sources() {
			if at, err := s.reachable(src, realm.MethodPick); err == nil {
				pages = append(pages, at)
			}
		}
	}
	s.overlay.lanes.pick(pages)
	if s.overlay.picking && len(pages) == 0 {
		s.overlay.picking = false
		if s.overlay.enabled {
			s.event("Overlay.inspectModeCanceled", empty{})
		}
	}
}

// pickEvent takes what a page tells of a pick.
func (s *session) pickEvent(src subjects.SourceID, e realm.Event) {
	if !s.overlay.enabled || !s.overlay.picking {
		return
	}
	var p realm.Picked
	if json.Unmarshal(e.Data, &p) != nil {
		return
	}
	switch e.Event {
	case realm.EventHighlighted:
		known := (*pushed)(nil)
		if entry := s.source(src).Tree.Node(p.ID); entry != nil {
			known = s.pushPath(node{placeTree, s.source(src), entry})
		}
		if known != nil {
			s.event("Overlay.nodeHighlightRequested", nodeHighlightEvent{NodeID: known.id})
		}
	case realm.EventPicked:
		s.overlay.picking = false
		s.syncPick()
		if p.ID == 0 {
			s.event("Overlay.inspectModeCanceled", empty{})
			return
		}
		s.reveal(s.source(src), p.ID)
	}
}

// reveal makes the client show a node. One that is not there yet is shown when it
// comes: planes do not wait for each other.
func (s *session) reveal(src *fold.Source, id tree.NodeID) {
	if !s.overlay.enabled || id == 0 {
		return
	}
	if e := src.Tree.Node(id); e != nil {
		delete(s.overlay.pending, src.ID)
		s.event("Overlay.inspectNodeRequested", inspectNodeEvent{BackendNodeID: e.Backend})
		return
	}
	if s.overlay.pending == nil {
		s.overlay.pending = make(map[subjects.SourceID]tree.NodeID)
	}
	s.overlay.pending[src.ID] = id
}

// syncOverlay follows a batch: sources that come join a pick, and nodes that were awaited are shown.
func (s *session) syncOverlay(b *batch) {
	if s.overlay.picking && len(b.sources) > 0 {
		s.syncPick()
	}
	for _, c := range b.changes {
		if !s.target.includes(c.Source) {
			continue
		}
		switch c.Kind {
		case fold.EventPublished:
			var r realm.Reveal
			if c.Event.Topic == realm.RevealTopic && json.Unmarshal(c.Event.Data, &r) == nil {
				s.reveal(c.Source, r.ID)
			}
		case fold.TreeChanged:
			if id := s.overlay.pending[c.Source.ID]; id != 0 && c.Source.Tree.Node(id) != nil {
				s.reveal(c.Source, id)
			}
		case fold.SourceOpened, fold.SourceRemoved:
			delete(s.overlay.pending, c.Source.ID)
		}
	}
}

// overlayLanes bring wishes to sources, one command at a time for each source,
// so that they arrive in order and a source that hangs holds up no other.
type overlayLanes struct {
	send func(ctx context.Context, at realmOf, m realm.Method, params any)
	run  func(func())

	mu    sync.Mutex // guards all below; it is a leaf
	lanes map[laneKey]*overlayLane
	renew *time.Timer
	ended bool
}

// laneKey names a lane: that of a source, or of a node of it that is watched.
type laneKey struct {
	realmOf
	node tree.NodeID
}

// overlayWish is what a source should show, or know.
type overlayWish struct {
	highlight   tree.NodeID
	pick, watch bool
}

// overlayLane is the wish for one source, and what it was told.
type overlayLane struct {
	want, told overlayWish
	// again says that the source has to be told once more.
	again, busy bool
}

// newOverlayLanes makes lanes whose goroutines are started by run.
func newOverlayLanes(run func(func()), send func(context.Context, realmOf, realm.Method, any)) *overlayLanes {
	return &overlayLanes{run: run, send: send, lanes: make(map[laneKey]*overlayLane)}
}

// highlight makes one source show a node and all others none.
func (l *overlayLanes) highlight(at realmOf, id tree.NodeID) {
	l.change(func(r laneKey, w *overlayWish) {
		w.highlight = 0
		if r.realmOf == at && r.node == 0 {
			w.highlight = id
		}
	}, laneKey{at, 0})
}

// pick makes the given sources pick and all others not.
func (l *overlayLanes) pick(pages []realmOf) {
	keys := make([]laneKey, len(pages))
	for i, at := range pages {
		keys[i] = laneKey{at, 0}
	}
	l.change(func(r laneKey, w *overlayWish) { w.pick = slices.Contains(keys, r) }, keys...)
}

// watch makes the given nodes know that somebody looks, and all others that nobody does.
func (l *overlayLanes) watch(nodes []laneKey) {
	l.change(func(r laneKey, w *overlayWish) { w.watch = slices.Contains(nodes, r) }, nodes...)
}

// change changes the wishes of all lanes, and of the sources that need one.
func (l *overlayLanes) change(f func(laneKey, *overlayWish), at ...laneKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	for _, r := range at {
		if l.lanes[r] == nil && r != (laneKey{}) {
			l.lanes[r] = &overlayLane{}
		}
	}
	for r, x := range l.lanes {
		f(r, &x.want)
		l.start(r, x)
	}
	if len(l.lanes) > 0 && l.renew == nil {
		l.renew = time.AfterFunc(overlayRenew, l.repeat)
	}
}

// start lets a lane work if it has something to do; l.mu is held.
func (l *overlayLanes) start(r laneKey, x *overlayLane) {
	if x.busy || x.want == x.told && !x.again {
		return
	}
	x.busy = true
	l.run(func() { l.work(r, x) })
}

// repeat tells the sources again what they show: they forget it by themselves.
func (l *overlayLanes) repeat() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	l.renew = nil
	if len(l.lanes) == 0 {
		return
	}
	for r, x := range l.lanes {
		x.again = x.want != overlayWish{}
		l.start(r, x)
	}
	l.renew = time.AfterFunc(overlayRenew, l.repeat)
}

// work tells one source until it knows the newest wish.
func (l *overlayLanes) work(r laneKey, x *overlayLane) {
	for {
		want, told, again, wait, done := l.next(r, x)
		if done {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		if want.highlight != told.highlight || again && want.highlight != 0 {
			l.send(ctx, r.realmOf, realm.MethodHighlight, realm.HighlightParams{ID: want.highlight})
		}
		if want.pick != told.pick || again && want.pick {
			l.send(ctx, r.realmOf, realm.MethodPick, realm.PickParams{Active: want.pick})
		}
		if want.watch != told.watch || again && want.watch {
			l.send(ctx, r.realmOf, realm.MethodWatch, realm.WatchParams{ID: r.node, Active: want.watch})
		}
		cancel()
	}
}

// next returns what a lane has to tell; done when there is nothing.
func (l *overlayLanes) next(r laneKey, x *overlayLane) (want, told overlayWish, again bool, wait time.Duration, done bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	want, told, again = x.want, x.told, x.again
	if want == told && !again {
		x.busy = false
		if want == (overlayWish{}) {
			delete(l.lanes, r)
		}
		return want, told, again, 0, true
	}
	x.told, x.again = want, false
	wait = overlayWait
	if l.ended {
		wait = overlayEnd
	}
	return want, told, again, wait, false
}

// end takes back everything that sources show. No lane starts after it.
func (l *overlayLanes) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	if l.renew != nil {
		l.renew.Stop()
	}
	for _, r := range slices.Collect(maps.Keys(l.lanes)) {
		x := l.lanes[r]
		x.want, x.again = overlayWish{}, false
		l.start(r, x)
	}
	l.ended = true
}
