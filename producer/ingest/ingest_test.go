package ingest

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/natscope/natscope/producer/internal/natstest"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/source"
)

func TestAPageBecomesASource(t *testing.T) {
	r := newRig(t)
	p, w := r.page("shop-page")
	if w.Source != "shop-page" || w.Generation == "" || w.Resumed || w.Last != 0 || !w.Resnapshot || w.Asked != "" {
		t.Errorf("welcome %+v", w)
	}
	p.acked(p.log("one", "two"))
	s := r.until("the records are there", func(s *fold.Space) bool { return len(texts(s.Source("shop-page"))) == 2 })
	d := s.Source("shop-page").Life.Descriptor
	if d.Kind != source.KindClient || d.Name != "A page" || d.URL != "http://localhost:1234/" || d.PID != 0 || d.Hostname != "" {
		t.Errorf("descriptor %+v", d)
	}
	// A record of the page's clock at the hello is a record of now.
	wall := s.Source("shop-page").Console.Entries[0].Wall
	if age := float64(time.Now().UnixMilli()) - wall; age < -1000 || age > 20000 {
		t.Errorf("the record is %v ms old", age)
	}
}

func TestNoIDGetsAFreshOne(t *testing.T) {
	r := newRig(t)
	_, a := r.page("")
	_, b := r.page("")
	if a.Source == b.Source || !strings.HasPrefix(string(a.Source), "page-") {
		t.Errorf("ids %q and %q", a.Source, b.Source)
	}
	_, c := r.page("A Page, with Spaces.")
	if !subjects.IsToken(string(c.Source)) || c.Asked != "A Page, with Spaces." {
		t.Errorf("welcome %+v", c)
	}
}

func TestWhatIsRefused(t *testing.T) {
	r := newRig(t)
	for _, c := range []struct {
		name, code string
		protocols  []string
		hello      string
	}{
		{"wrong token", CodeToken, []string{"natscope.1", "natscope.token.wrong"}, ""},
		{"token in part", CodeToken, []string{"natscope.1", "natscope.token.test"}, ""},
		{"no token", CodeToken, []string{"natscope.1"}, ""},
		{"other version", CodeVersion, []string{"natscope.2", "natscope.token." + token}, ""},
		{"other version in the hello", CodeVersion, nil, `{"type":"hello","version":2,"realm":"r"}`},
		{"no hello", CodeMessage, nil, `{"type":"ping"}`},
		{"not JSON", CodeMessage, nil, `hello`},
		{"no realm", CodeMessage, nil, `{"type":"hello","version":1}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, _, err := r.dial("http://127.0.0.1:80", c.protocols...)
			if err != nil {
				t.Fatal(err)
			}
			p.t = t
			if c.hello != "" {
				if err := p.ws.WriteMessage(1, []byte(c.hello)); err != nil {
					t.Fatal(err)
				}
			}
			if got := p.rejected(c.code); got.Retry {
				t.Errorf("%+v invites to try again", got)
			}
		})
	}
	if n := r.Stats().Admitted; n != 0 {
		t.Errorf("%d pages were admitted", n)
	}
}

func TestOriginsAreExact(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Origins = []string{"https://shop.example"} })
	for origin, ok := range map[string]bool{
		"":                               true,
		"http://localhost:5173":          true,
		"https://127.0.0.1":              true,
		"http://[::1]:8080":              true,
		"https://shop.example":           true,
		"http://shop.example":            false,
		"https://shop.example:444":       false,
		"https://shop.example.evil.test": false,
		"http://evil.test":               false,
		"http://127.0.0.1.evil.test":     false,
		"http://localhost.evil.test":     false,
		"null":                           false,
		"file://":                        false,
		"devtools://devtools":            false,
	} {
		p, resp, err := r.dial(origin)
		if (err == nil) != ok {
			t.Errorf("origin %q: err %v, wanted admission %v", origin, err, ok)
		}
		if !ok && resp != nil && resp.StatusCode != 403 {
			t.Errorf("origin %q: status %d", origin, resp.StatusCode)
		}
		if p != nil {
			p.ws.Close()
		}
	}
}

func TestAConnectionGoesOnWhereTheLastOneStopped(t *testing.T) {
	r := newRig(t)
	p, w := r.pageOf("page", "realm")
	p.acked(p.log("1"))
	p.acked(p.log("2"))
	p.ws.Close()
	q, again := r.pageOf("page", "realm")
	if !again.Resumed || again.Last != 2 || again.Generation != w.Generation || again.Source != w.Source {
		t.Fatalf("welcome %+v after %+v", again, w)
	}
	// The page repeats the last one, whose acknowledgement it never saw.
	q.n = 1
	q.log("2")
	q.acked(q.log("3"))
	s := r.until("three lines", func(s *fold.Space) bool { return len(texts(s.Source("page"))) >= 3 })
	if got := texts(s.Source("page")); !slices.Equal(got, []string{"1", "2", "3"}) {
		t.Errorf("console %q", got)
	}
	if st := r.Stats(); st.Repeated != 1 || st.Resumed != 1 {
		t.Errorf("stats %+v", st)
	}
}

func TestASecondConnectionOfOneRealmEndsTheFirst(t *testing.T) {
	r := newRig(t)
	p, _ := r.pageOf("page", "realm")
	_, w := r.pageOf("page", "realm")
	if !w.Resumed || w.Source != "page" {
		t.Errorf("welcome %+v", w)
	}
	p.rejected(CodeReplaced)
}

func TestByeClosesAtOnceAndAReloadKeepsTheID(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Resume = time.Hour })
	p, first := r.page("page")
	p.send(map[string]string{"type": "bye", "reason": "left"})
	r.until("the source closes", func(s *fold.Space) bool { return s.Source("page") != nil && s.Source("page").Life.Closed })
	_, w := r.page("page")
	if w.Source != "page" || w.Resumed || w.Generation <= first.Generation {
		t.Errorf("welcome %+v after %+v", w, first)
	}
}

func TestAReloadWhoseByeWasLostKeepsTheID(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Resume = time.Hour })
	p, _ := r.page("page")
	p.ws.Close()
	natstest.Until(t, "the socket's end is noticed", func() bool { return r.Stats().Connections == 0 })
	_, w := r.page("page")
	if w.Source != "page" {
		t.Errorf("welcome %+v", w)
	}
}

func TestASilentHolderLosesItsID(t *testing.T) {
	r := newRig(t)
	_, _ = r.page("page") // never reads, so it never answers
	_, w := r.page("page")
	if w.Source != "page" {
		t.Errorf("welcome %+v", w)
	}
}

func TestACopiedTabGetsAnotherID(t *testing.T) {
	r := newRig(t)
	want := []subjects.SourceID{"page", "page-2", "page-3"}
	for i, id := range want {
		p, w := r.page("page")
		if w.Source != id || i > 0 && w.Asked != "page" {
			t.Errorf("page %d: welcome %+v, wanted %s", i, w, id)
		}
		go p.answer()
	}
	for _, id := range want {
		r.source(string(id))
	}
}

// answer reads for ever and answers pings.
func (p *peer) answer() {
	for {
		kind, _, err := p.next()
		if err != nil {
			return
		}
		if kind == MsgPing && p.ws.WriteJSON(map[string]string{"type": MsgPong}) != nil {
			return
		}
	}
}

func TestAPageThatDoesNotComeBackCloses(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Resume = 50 * time.Millisecond })
	p, _ := r.page("page")
	p.acked(p.log("last words"))
	p.ws.Close()
	s := r.until("the source closes", func(s *fold.Space) bool { return s.Source("page") != nil && s.Source("page").Life.Closed })
	if got := texts(s.Source("page")); !slices.Equal(got, []string{"last words"}) {
		t.Errorf("console %q", got)
	}
	natstest.Until(t, "the session is forgotten", func() bool { return r.Stats().Pages == 0 })
}

func TestMalformedMessagesChangeNothingAndKeepTheConnection(t *testing.T) {
	r := newRig(t)
	p, _ := r.page("page")
	for _, bad := range []string{
		`{"type":"records","n":1,"plane":"life","records":[{"t":0,"topic":"close"}]}`,
		`{"type":"records","n":2,"plane":"console","records":[{"t":0,"topic":""}]}`,
		`{"type":"records","n":3,"plane":7}`,
		`{"type":"body","n":4,"request":"A B","dir":"res","offset":0}`,
		`{"type":"body","n":5,"request":"r","dir":"res","offset":0,"data":"%"}`,
		`{"type":"records","plane":"console","records":[]}`,
		`nonsense`,
		`{"type":"records","n":6,"plane":"console","records":[` + "\xff" + `]}`,
	} {
		if err := p.ws.WriteMessage(1, []byte(bad)); err != nil {
			t.Fatal(err)
		}
		var problem Problem
		p.expect(MsgProblem, &problem)
		if problem.Reason == "" {
			t.Errorf("%s: no reason", bad)
		}
	}
	p.send(map[string]any{"type": "hologram", "n": 9})
	p.n = 6
	p.acked(p.log("fine"))
	s := r.until("the good one is there", func(s *fold.Space) bool { return len(texts(s.Source("page"))) == 1 })
	if s.Source("page").Life.Closed {
		t.Error("a page closed its source by a life record")
	}
	if n := r.Stats().Malformed; n != 8 {
		t.Errorf("%d malformed messages were counted", n)
	}
}

func TestDropsAndGapsAreCounted(t *testing.T) {
	r := newRig(t)
	p, _ := r.page("page")
	p.n = 4 // numbers 1 to 4 never come
	p.acked(p.log("five"))
	p.send(map[string]any{"type": "records", "n": 6, "plane": "console", "dropped": 3, "records": []any{map[string]any{"t": 1, "topic": "message", "data": map[string]any{"type": "log", "args": []string{"after"}}}}})
	p.acked(6)
	s := r.until("both lines", func(s *fold.Space) bool { return len(texts(s.Source("page"))) == 2 })
	if got := s.Source("page").Lost(); got != 3 {
		t.Errorf("%d records are known as lost", got)
	}
	if got := r.Stats().Gaps; got != 1 {
		t.Errorf("%d gaps", got)
	}
}

func TestTooMuchEndsTheConnectionWithAReason(t *testing.T) {
	r := newRig(t)
	p, _ := r.page("page")
	if err := p.ws.WriteMessage(1, []byte(`{"type":"records","pad":"`+strings.Repeat("x", maxMessageBytes)+`"}`)); err != nil {
		t.Fatal(err)
	}
	p.rejected(CodeMessage)
	r.rate = pageRate{records: 1, burstRecords: 5, bytes: 1 << 20, burstBytes: 1 << 20}
	q, _ := r.page("flood")
	q.acked(q.log("1", "2", "3"))
	q.log("4", "5", "6")
	if got := q.rejected(CodeRate); !got.Retry {
		t.Error("a page that was too fast may not come back")
	}
	if n := r.Stats().Rejected[CodeRate]; n != 1 {
		t.Errorf("counted %d", n)
	}
}

func TestTooManyPages(t *testing.T) {
	r := newRig(t, func(o *Options) { o.MaxPages = 1 })
	r.page("page")
	p, _, err := r.dial("")
	if err != nil {
		t.Fatal(err)
	}
	if got := p.rejected(CodeBusy); !got.Retry {
		t.Error("a page may not try again when there is room")
	}
}

func TestBodies(t *testing.T) {
	r := newRig(t)
	p, w := r.page("page")
	part := func(n, offset int, request, data, end string, total int) {
		m := map[string]any{"type": "body", "n": n, "request": request, "dir": "res", "offset": offset, "data": base64.StdEncoding.EncodeToString([]byte(data))}
		if end != "" {
			m["end"], m["total"] = end, total
		}
		p.send(m)
	}
	part(1, 0, "whole", "hello ", "", 0)
	part(2, 6, "whole", "world", "complete", 11)
	part(3, 0, "holed", "abc", "", 0)
	part(4, 6, "holed", "ghi", "complete", 9)
	part(5, 5, "tail", "only the end", "complete", 17)
	p.acked(5)
	read := func(request string) (data, end string) {
		for _, m := range r.nats.Read(subjects.BodyStreamName(space)) {
			s, err := subjects.ParseBody(m.Subject)
			if err != nil || s.Source != w.Source || s.Generation != w.Generation || string(s.Request) != request {
				continue
			}
			c, err := subjects.ParseBodyChunk(subjects.Header(m.Header))
			if err != nil {
				t.Fatal(err)
			}
			data += string(m.Data)
			end = c.End
		}
		return data, end
	}
	for request, want := range map[string][2]string{"whole": {"hello world", subjects.BodyComplete}, "holed": {"abc", subjects.BodyTruncated}, "tail": {"", subjects.BodyTruncated}} {
		natstest.Until(t, "the body "+request, func() bool {
			data, end := read(request)
			return data == want[0] && end == want[1]
		})
	}
}

func TestTreeWaitsForItsSnapshot(t *testing.T) {
	r := newRig(t)
	p, _ := r.page("page")
	tree := func(n uint64, topic string, data any) {
		p.send(map[string]any{"type": "records", "n": n, "plane": "tree", "records": []any{map[string]any{"t": 1, "topic": topic, "data": data}}})
		p.acked(n)
	}
	ops := map[string]any{"revision": 2, "ops": []any{map[string]any{"op": "add", "parent": 1, "node": map[string]any{"id": 2, "name": "Item"}}}}
	tree(1, "ops", ops) // of a tree that nobody has seen
	tree(2, "snapshot", map[string]any{"version": 1, "profile": "component", "revision": 1, "root": map[string]any{"id": 1, "name": "page"}})
	tree(3, "ops", ops)
	s := r.until("the tree is there", func(s *fold.Space) bool { return s.Source("page") != nil && s.Source("page").Tree.Len() == 2 })
	if s.Source("page").FaultCount != 0 {
		t.Errorf("faults %+v", s.Source("page").Faults)
	}
	// A store that lost the tree asks for it; the page is asked in turn.
	r.ask("page", subjects.ControlResnapshot)
	p.expect(MsgResnapshot, nil)
	tree(4, "snapshot", map[string]any{"version": 1, "profile": "component", "revision": 9, "root": map[string]any{"id": 1, "name": "page"}})
	r.until("the new tree is there", func(s *fold.Space) bool { return s.Source("page").Tree.Revision == 9 })
}

// ask sends a control request to a source, as a store does.
func (r *rig) ask(id subjects.SourceID, kind string) {
	r.t.Helper()
	src := r.source(string(id))
	natstest.Until(r.t, "the source answers", func() bool {
		m, err := r.conn.Request(subjects.Control(space, id, src.Generation), []byte(`{"kind":"`+kind+`"}`), time.Second)
		return err == nil && strings.Contains(string(m.Data), `"ok":true`)
	})
}

func TestUpdates(t *testing.T) {
	r := newRig(t)
	p, _ := r.page("page")
	p.send(map[string]any{"type": "update", "n": 1, "title": "Cart (2)", "url": "http://localhost:1234/cart", "visible": false})
	p.acked(1)
	r.until("the update is there", func(s *fold.Space) bool {
		src := s.Source("page")
		return src != nil && src.Life.Descriptor.Title == "Cart (2)" && src.Life.Descriptor.Visible != nil && !*src.Life.Descriptor.Visible
	})
}

func TestCloseTellsPages(t *testing.T) {
	r := newRig(t)
	p, _ := r.page("page")
	p.acked(p.log("before the end"))
	closed := make(chan Rejected, 1)
	go func() { closed <- p.rejected(CodeClosing) }()
	r.closeServer()
	if got := <-closed; !got.Retry {
		t.Error("the page may not come back")
	}
	s := r.state()
	if src := s.Source("page"); src == nil || !src.Life.Closed || len(texts(src)) != 1 {
		t.Errorf("the source is not closed, or its line is missing")
	}
	if _, _, err := r.dial(""); err == nil {
		t.Log("the HTTP server still upgrades, and must close at once")
	}
	if err := r.Close(context.Background()); err != nil {
		t.Errorf("the second close: %v", err)
	}
}

func TestOptions(t *testing.T) {
	r := newRig(t)
	for name, o := range map[string]Options{
		"no connection":           {},
		"token with a space":      {Conn: r.conn, Token: "a b"},
		"origin without a scheme": {Conn: r.conn, Origins: []string{"shop.example"}},
		"origin with a path":      {Conn: r.conn, Origins: []string{"https://shop.example/"}},
		"space that is no token":  {Conn: r.conn, Space: "A B"},
	} {
		if _, err := New(o); !errors.Is(err, ErrOptions) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s, err := New(Options{Conn: r.conn})
	if err != nil || !validToken(s.Token()) || len(s.Token()) < 20 {
		t.Errorf("the default token %q, error %v", s.Token(), err)
	}
}

// TestTwoIngests: pages whose connections end at different ingests, as behind a
// load balancer without stickiness, keep and lose their ids as at one.
func TestTwoIngests(t *testing.T) {
	r := newRig(t)
	first := r.Server
	other := func() {
		t.Helper()
		if r.current.Load() == first {
			r.replace()
			return
		}
		r.current.Store(first)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := first.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	// A page that lives answers, so a copy of it becomes another source.
	page, _ := r.pageOf("tab", "realm-tab")
	r.source("tab")
	stop := page.answering()
	other()
	copied, _ := r.pageOf("tab", "realm-copy")
	r.source("tab-2")
	copied.log("copied")
	r.until("the copy is a source of its own", func(s *fold.Space) bool { return fmt.Sprint(texts(s.Source("tab-2"))) == "[copied]" })
	stop()
	// The page reconnects at the other ingest while the old one still waits for it.
	page.ws.Close()
	page, _ = r.pageOf("tab", "realm-tab")
	page.log("moved")
	s := r.until("the page goes on under its id", func(s *fold.Space) bool { return fmt.Sprint(texts(s.Source("tab"))) == "[moved]" })
	generation := s.Source("tab").Generation
	// It reloads without a goodbye, at the first ingest.
	page.ws.Close()
	r.current.Store(first)
	page, _ = r.pageOf("tab", "realm-reload")
	page.log("reloaded")
	s = r.until("the reload has the id", func(s *fold.Space) bool { return strings.Contains(fmt.Sprint(texts(s.Source("tab"))), "reloaded") })
	if s.Source("tab").Generation <= generation || len(s.Sources()) != 2 {
		t.Errorf("%d sources, generation %s after %s", len(s.Sources()), s.Source("tab").Generation, generation)
	}
}

// A log holds no query, fragment or user of a page's address: they may be secrets.
func TestAddressesInTheLog(t *testing.T) {
	for in, want := range map[string]string{
		"https://bob:hunter2@shop.example:8/a/b?code=hunter2#hunter2": "https://shop.example:8/a/b",
		"http://127.0.0.1:3000/": "http://127.0.0.1:3000/", "data:text/html,hunter2": "", "%zz": "",
	} {
		if got := withoutQuery(in); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}
