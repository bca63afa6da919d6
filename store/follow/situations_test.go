package follow_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/store/follow"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/source"
	"github.com/natscope/natscope/subjects/tree"
)

// reader is everything that decides what a view shows of a space, and what a
// store says to programs, without a server: the fold, presence and holders. The
// real readers are these parts on a stream.
type reader struct {
	t        *testing.T
	space    *fold.Space
	seq      subjects.StreamSeq
	next     map[string]subjects.Seq
	presence map[subjects.SourceID]follow.Presence
	holders  map[subjects.SourceID]follow.Holder
	start    time.Time
	now      time.Time
	// did lists what the events led to.
	did []string
}

// patience is how long a source of these tables may be silent.
const patience = 6 * time.Second

func newReader(t *testing.T) *reader {
	start := time.Unix(1000, 0)
	return &reader{
		t: t, space: fold.New("dev", subjects.Limits{}), next: make(map[string]subjects.Seq), start: start, now: start,
		presence: make(map[subjects.SourceID]follow.Presence), holders: make(map[subjects.SourceID]follow.Holder),
	}
}

// event does what one line says:
//
//	open ID GENERATION REALM        snapshot ID GENERATION REVISION NODES
//	update ID GENERATION TITLE      ops ID GENERATION REVISION NODE
//	hide ID GENERATION              request ID GENERATION NAME
//	close ID GENERATION             skip ID GENERATION PLANE
//	beat ID GENERATION              wait SECONDS
//	lives|silent ID GENERATION      moved ID GENERATION
//	join                            bad ID GENERATION
func (r *reader) event(line string) {
	w := append(strings.Fields(line), "", "", "")
	id, g, arg := subjects.SourceID(w[1]), subjects.Generation(w[2]), w[3]
	switch w[0] {
	case "open":
		r.publish(id, g, subjects.PlaneLife, source.TopicOpen, source.Descriptor{Name: string(id), Kind: source.KindClient, Realm: source.RealmID(arg), Origin: 1000})
	case "update":
		r.publish(id, g, subjects.PlaneLife, source.TopicUpdate, source.Update{Title: &arg})
	case "hide":
		hidden := false
		r.publish(id, g, subjects.PlaneLife, source.TopicUpdate, source.Update{Visible: &hidden})
	case "close":
		r.publish(id, g, subjects.PlaneLife, source.TopicClose, source.Close{})
	case "request":
		r.publish(id, g, subjects.PlaneNet, "start", map[string]string{"id": arg, "url": "/"})
	case "snapshot", "bad":
		root := &tree.Node{ID: 1, Name: "app"}
		for i, name := range strings.Split(w[4], "+") {
			if name != "" {
				root.Children = append(root.Children, tree.Node{ID: tree.NodeID(i + 2), Name: name})
			}
		}
		if w[0] == "bad" {
			root.Children = []tree.Node{{ID: 1, Name: "twice"}}
			arg = "9"
		}
		r.publish(id, g, subjects.PlaneTree, tree.TopicSnapshot, tree.Snapshot{Version: tree.SchemaVersion, Profile: tree.ProfileComponent, Revision: number(arg), Root: root})
	case "ops":
		r.publish(id, g, subjects.PlaneTree, tree.TopicOps, tree.Ops{Revision: number(arg), Commit: number(arg), Ops: []tree.Op{{Op: tree.OpAdd, Parent: 1, Node: &tree.Node{ID: tree.NodeID(100 + number(arg)), Name: w[4]}}}})
	case "skip":
		r.next[w[1]+w[2]+arg] = max(r.next[w[1]+w[2]+arg], 1) + 1
	case "wait":
		seconds, err := strconv.ParseFloat(w[1], 64)
		if err != nil {
			r.t.Fatal(err)
		}
		r.now = r.now.Add(time.Duration(seconds * float64(time.Second)))
		for _, src := range r.space.Sources() {
			r.sign(src, follow.Sign{Kind: follow.SignTick})
		}
	case "beat":
		if src := r.space.Source(id); src != nil {
			r.sign(src, follow.Sign{Kind: follow.SignBeat, Generation: g})
		}
		r.hold(id, follow.Event{Kind: follow.EventBeat, Generation: g})
	case "lives", "silent":
		r.hold(id, follow.Event{Kind: follow.EventAnswer, Generation: g, Lives: w[0] == "lives"})
	case "moved":
		r.hold(id, follow.Event{Kind: follow.EventMoved, Generation: g})
	default:
		r.t.Fatalf("what is %q?", line)
	}
}

func number(s string) uint64 { n, _ := strconv.ParseUint(s, 10, 64); return n }

// publish writes one record and reads it.
func (r *reader) publish(id subjects.SourceID, g subjects.Generation, plane subjects.Plane, topic string, payload any) {
	r.t.Helper()
	data, err := json.Marshal(payload)
	if err != nil {
		r.t.Fatal(err)
	}
	body, err := subjects.AppendRecord(nil, subjects.Record{T: float64(r.now.Sub(r.start).Milliseconds()), Topic: topic, Data: data})
	if err != nil {
		r.t.Fatal(err)
	}
	key := string(id) + string(g) + string(plane)
	n := max(r.next[key], 1)
	r.next[key] = n + 1
	h, body := subjects.EncodeFrame(subjects.FrameInfo{Seq: n, Count: 1}, body)
	r.seq++
	changes := r.space.Apply(subjects.RecordSubject{Space: "dev", Source: id, Generation: g, Plane: plane}.String(), r.seq, h, body)
	src := r.space.Source(id)
	for _, c := range changes {
		r.change(c)
	}
	if src.Generation != g {
		return
	}
	kind := follow.SignRecord
	if src.Life.Closed {
		kind = follow.SignClose
	}
	r.sign(src, follow.Sign{Kind: kind, Generation: g})
}

// change notes what a view would show, and lets the holder see it.
func (r *reader) change(c fold.Change) {
	life := follow.Life{Generation: c.Source.Generation, Realm: c.Source.Life.Descriptor.Realm, Who: c.Source.Life.Descriptor.Who(), Closed: c.Source.Life.Closed}
	switch c.Kind {
	case fold.SourceAdded:
		r.note("new %s", c.Source.ID)
	case fold.SourceOpened:
		same := ""
		if c.SameRealm {
			same = " in the same realm"
		}
		r.note("%s opens%s", life.Generation, same)
		r.hold(c.Source.ID, follow.Event{Kind: follow.EventOpened, Life: life})
	case fold.SourceClosed:
		r.hold(c.Source.ID, follow.Event{Kind: follow.EventClosed, Generation: life.Generation})
	case fold.SourceUpdated:
		r.note("updated")
	case fold.TreeChanged:
		r.note("tree")
	case fold.FaultAdded:
		r.note("fault %s", c.Fault.Kind)
	case fold.RequestChanged:
		if c.Request.Request.Ending != "" {
			r.note("request %s", c.Request.Request.Ending)
		}
	}
}

func (r *reader) hold(id subjects.SourceID, e follow.Event) {
	h, effects := r.holders[id].Step(e)
	r.holders[id] = h
	for _, f := range effects {
		if f.Message == nil {
			r.note("ask %s", f.Generation)
		} else {
			r.note("%s %s", f.Message.Kind, f.Generation)
		}
	}
}

func (r *reader) sign(src *fold.Source, s follow.Sign) {
	s.At = r.now
	p, o := r.presence[src.ID].Step(s, patience)
	r.presence[src.ID] = p
	switch o {
	case follow.CameAlive:
		r.note("alive")
	case follow.Left:
		r.note("left")
	case follow.Died:
		for _, c := range src.Gone("silent") {
			r.change(c)
		}
		r.note("died")
	}
}

func (r *reader) note(format string, args ...any) {
	r.did = append(r.did, fmt.Sprintf(format, args...))
}

// shows tells what a view shows: each source with the generation that is followed, its life and its tree.
func (r *reader) shows() string {
	var out []string
	for _, src := range r.space.Sources() {
		line := fmt.Sprintf("%s=%s", src.ID, src.Generation)
		if !r.presence[src.ID].Connected {
			line += " gone"
		}
		if src.Life.Descriptor.Title != "" {
			line += " " + src.Life.Descriptor.Title
		}
		if src.Tree.Root != nil {
			var names []string
			for _, c := range src.Tree.Root.Children {
				names = append(names, c.Name)
			}
			line += " [" + strings.Join(names, " ") + "]"
		}
		out = append(out, line)
	}
	return strings.Join(out, "; ")
}

// situation is one row: what happens, what it leads to from the last "|" on, and what views show then.
type situation struct {
	name, events, did, shows string
}

func (s situation) run(t *testing.T) {
	r := newReader(t)
	before, after, _ := strings.Cut(s.events, "|")
	for _, line := range strings.Split(before, ";") {
		if strings.TrimSpace(line) != "" {
			r.event(line)
		}
	}
	r.did = nil
	for _, line := range strings.Split(after, ";") {
		if strings.TrimSpace(line) != "" {
			r.event(line)
		}
	}
	if got := strings.Join(r.did, ", "); got != s.did {
		t.Errorf("led to: %s\nwanted: %s", got, s.did)
	}
	if got := r.shows(); got != s.shows {
		t.Errorf("shows:  %s\nwanted: %s", got, s.shows)
	}
}

// page is a page x of realm a that lives as generation g1 and has a tree.
const page = "open x g1 a; snapshot x g1 1 nav+list; "

// panelSituations is the table "Which page the panel follows" of the page
// panel whose situations this project takes over, one row for each of its rows
// (two where a row tells of two things), under its name. The panel there is a view
// here; it follows a source, and the page of the table is a generation of it. Two
// rows are about carriers that do not exist here, the browser extension and the
// hot-reload socket; their comments say what stands in their place.
var panelSituations = []situation{
	{"The panel is open before the page loads", "| open x g1 a; snapshot x g1 1 nav",
		"new x, g1 opens, alive, tree", "x=g1 [nav]"},
	// A view that comes later folds the same stream, so it shows the same: see TestLateView.
	{"The page loaded before the panel opened", page + "open y g1 b; | beat x g1; beat y g1",
		"", "x=g1 [nav list]; y=g1"},
	// Here a view is opened for one source, or shows all; what another source sends does not move it.
	{"The user picks another page", page + "| open y g1 b; snapshot y g1 1 cart; update y g1 Cart",
		"new y, g1 opens, alive, tree, updated", "x=g1 [nav list]; y=g1 Cart [cart]"},
	{"The followed page reloads", page + "| close x g1; open x g2 b; snapshot x g2 1 nav+cart",
		"left, g2 opens, alive, tree, tree", "x=g2 [nav cart]"},
	{"A reload whose bye was lost", page + "| open x g2 b; silent x g1; snapshot x g2 1 nav+cart",
		"g2 opens, ask g1, tree, tree", "x=g2 [nav cart]"},
	// The panel of one tab does not ping. No view does here: it follows the newest
	// generation from its first record, whatever the store still asks.
	{"The extension's panel (one tab)", page + "| open x g2 b; snapshot x g2 1 nav+cart",
		"g2 opens, ask g1, tree, tree", "x=g2 [nav cart]"},
	{"bye and no new page within the wait", page + "| close x g1; wait 60",
		"left", "x=g1 gone [nav list]"},
	{"bye and no new page within the wait: a reload that arrives late", page + "close x g1; wait 60; | open x g2 b",
		"g2 opens, alive", "x=g2 [nav list]"},
	{"The followed page navigates on the client, or its title changes", page + "| update x g1 Cart",
		"updated", "x=g1 Cart [nav list]"},
	{"A tab is shown or hidden", page + "open y g1 b; | hide x g1",
		"updated", "x=g1 [nav list]; y=g1"},
	{"The page goes into the back/forward cache, and comes back", page + "close x g1; wait 60; | open x g2 a; snapshot x g2 1 nav+list; ops x g2 2 cart",
		"g2 opens in the same realm, alive, tree", "x=g2 [cart nav list]"},
	{"The page goes into the back/forward cache, and comes back: nothing is said meanwhile", page + "close x g1; wait 2; | beat x g1; wait 60",
		"", "x=g1 gone [nav list]"},
	{"A tab is copied (two pages, one remembered id)", page + "| open x g2 b; lives x g1; moved x g2; open x-2 g3 b; open x g4 a; snapshot x g4 2 nav+list",
		"g2 opens, ask g1, id-taken g2, reopen g1, new x-2, g3 opens, alive, g4 opens, tree, tree", "x=g4 [nav list]; x-2=g3"},
	{"A message from the page is lost", page + "| skip x g1 tree; ops x g1 3 cart",
		"fault gap, fault tree", "x=g1 [nav list]"},
	{"A message from the page is lost: the tree that was asked for comes", page + "skip x g1 tree; ops x g1 3 cart; | snapshot x g1 4 nav+cart; ops x g1 5 foot",
		"tree, tree, tree", "x=g1 [foot nav cart]"},
	{"A message from the page is lost: one that stands on its own is shown", page + "skip x g1 life; | update x g1 Cart",
		"fault gap, updated", "x=g1 Cart [nav list]"},
	// A request for a tree that is lost is sent again by the store: TestRepair.
	{"The panel's request by name is lost", page + "skip x g1 tree; ops x g1 3 cart; | ops x g1 4 foot; wait 3",
		"fault tree", "x=g1 [nav list]"},
	{"The panel reconnects (a new transport to the same page)", page + "| open x g2 a; snapshot x g2 1 nav+list",
		"g2 opens in the same realm", "x=g2 [nav list]"},
	{"The page is disconnected", page + "request x g1 r1; | wait 7; wait 7",
		"request gone, died", "x=g1 gone [nav list]"},
	// Senders without an agent answer nothing; here that costs them their id only if somebody else wants it.
	{"A capture or the extension's Names only walk", page + "| silent x g1; beat x g1; wait 5; beat x g1; wait 5",
		"", "x=g1 [nav list]"},
}

func TestPanelSituations(t *testing.T) {
	for _, s := range panelSituations {
		t.Run(s.name, s.run)
	}
}

// connectionRules are the rules about sources and their connections of the
// inspector whose design this project takes over, a row for each sentence.
var connectionRules = []situation{
	{"automatic transport reconnects and page refreshes reuse the source id", page + "| close x g1; open x g2 b; close x g2; open x g3 b",
		"left, g2 opens, alive, left, g3 opens in the same realm, alive", "x=g3 [nav list]"},
	{"a simultaneously live tab copied from the same storage state cannot claim the id", page + "| open x g2 b; lives x g1; beat x g2",
		"g2 opens, ask g1, id-taken g2", "x=g2 [nav list]"},
	// Without Web Locks the inspector cannot tell copies apart; here the server and the store can.
	{"browsers without Web Locks cannot arbitrate copied live tabs", page + "| open x g2 b; silent x g1; beat x g1; beat x g1; lives x g2",
		"g2 opens, ask g1, ask g2, superseded g1", "x=g2 [nav list]"},
	{"generation identifies one admission and always rotates: what an older one says changes nothing", page + "close x g1; open x g2 b; snapshot x g2 1 cart; | update x g1 Old; ops x g1 2 old; close x g1; beat x g1",
		"", "x=g2 [cart]"},
	{"reconnection does not imply that the realm was recreated", page + "close x g1; | open x g2 a",
		"g2 opens in the same realm, alive", "x=g2 [nav list]"},
	{"closing a source changes its stored tree to disconnected instead of deleting it", page + "| close x g1",
		"left", "x=g1 gone [nav list]"},
	{"a replacement from the same source id and a new generation atomically restores the connected state", page + "close x g1; | open x g2 b; snapshot x g2 1 cart",
		"g2 opens, alive, tree, tree", "x=g2 [cart]"},
	{"a silent source is disconnected, and returns with what it had", page + "wait 7; | beat x g1; ops x g1 2 cart",
		"alive, tree", "x=g1 [cart nav list]"},
	{"malformed replacements do not replace the last valid snapshot", page + "| bad x g1",
		"fault malformed", "x=g1 [nav list]"},
	{"unchanged snapshots emit no mutation", page + "| snapshot x g1 2 nav+list; snapshot x g1 2 other; snapshot x g1 1 other",
		"", "x=g1 [nav list]"},
	{"a source that fell silent is not closed again by its late goodbye", page + "wait 7; | close x g1",
		"", "x=g1 gone [nav list]"},
}

func TestConnectionRules(t *testing.T) {
	for _, s := range connectionRules {
		t.Run(s.name, s.run)
	}
}

// TestLateView: a view that comes after all that shows what one shows that was there.
func TestLateView(t *testing.T) {
	for _, s := range append(append([]situation(nil), panelSituations...), connectionRules...) {
		there := newReader(t)
		for _, line := range strings.FieldsFunc(s.events, func(r rune) bool { return r == ';' || r == '|' }) {
			if strings.TrimSpace(line) != "" {
				there.event(line)
			}
		}
		late := newReader(t)
		for _, line := range strings.FieldsFunc(s.events, func(r rune) bool { return r == ';' || r == '|' }) {
			w := strings.Fields(line)
			if len(w) > 0 && w[0] != "beat" && w[0] != "wait" && w[0] != "lives" && w[0] != "silent" && w[0] != "moved" {
				late.event(line)
			}
		}
		// Who lives is for the late one to hear.
		here, then := strings.ReplaceAll(there.shows(), " gone", ""), strings.ReplaceAll(late.shows(), " gone", "")
		if here != then {
			t.Errorf("%s: it shows %s, a late one shows %s", s.name, here, then)
		}
		for i, src := range there.space.Sources() {
			other := late.space.Sources()[i]
			if other.Element != src.Element || (other.Tree.Root == nil) != (src.Tree.Root == nil) || src.Tree.Root != nil && other.Tree.Root.Backend != src.Tree.Root.Backend {
				t.Errorf("%s: source %s has other ids at a late view", s.name, src.ID)
			}
		}
	}
}
