package producer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/producer/internal/natstest"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/console"
	"github.com/natscope/natscope/subjects/source"
)

// incompressible is n bytes of text that only grow when they are compressed.
func incompressible(n int) string {
	rnd := rand.New(rand.NewPCG(3, 3))
	b := make([]byte, n)
	for i := range b {
		b[i] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"[rnd.IntN(64)]
	}
	return string(b)
}

// mixed records what needs frames of every size, and returns the body that belongs to it.
func mixed(p *producer.Producer) []byte {
	rnd := rand.New(rand.NewPCG(5, 5))
	noise := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = 'a' + byte(rnd.IntN(26))
		}
		return string(b)
	}
	for i := range 300 {
		args, _ := json.Marshal([]string{noise(rnd.IntN(400))})
		var raw []json.RawMessage
		_ = json.Unmarshal(args, &raw)
		p.Record(subjects.PlaneConsole, console.TopicMessage, console.Message{Type: "log", Args: raw})
		if i == 150 {
			big, _ := json.Marshal(noise(600 << 10))
			p.Record(subjects.PlaneConsole, console.TopicMessage, console.Message{Type: "error", Args: []json.RawMessage{big}})
		}
	}
	data := []byte(noise(60000))
	b := p.Body("r1", subjects.ResponseBody)
	b.Write(data[:3])
	b.Write(data[3:])
	b.End(subjects.BodyComplete, int64(len(data)))
	return data
}

func checkMixed(t *testing.T, s *natstest.Server, body []byte) {
	t.Helper()
	src := only(t, folded(t, s))
	if len(src.Console.Entries) != 301 {
		t.Fatalf("%d console entries", len(src.Console.Entries))
	}
	if m := src.Console.Entries[151].Message; m.Type != "error" || !strings.Contains(string(m.Args[0]), "__natscope") {
		t.Errorf("the large message became %.200s", m.Args)
	}
	got, last := joinBody(t, s.Read(subjects.BodyStreamName(space)))
	if got != string(body) || last.End != subjects.BodyComplete {
		t.Errorf("the body has %d bytes and ends %+v", len(got), last)
	}
}

func TestSmallServer(t *testing.T) {
	s := natstest.Start(t, func(o *server.Options) { o.MaxPayload = 8 << 10 })
	s.Streams(space, subjects.Storage{Memory: true})
	p := start(t, producer.Options{URL: s.URL(), Name: strings.Repeat("long ", 2000)})
	body := mixed(p)
	flush(t, p)
	checkMixed(t, s, body)
	if name := folded(t, s).Sources()[0].Name(); !strings.HasPrefix(name, "long long") {
		t.Errorf("name %.40q", name)
	}
}

func TestSmallStream(t *testing.T) {
	s := natstest.Start(t)
	s.Streams(space, subjects.Storage{Memory: true}, func(c *jetstream.StreamConfig) { c.MaxMsgSize = 3 << 10 })
	p := start(t, producer.Options{URL: s.URL(), Name: incompressible(8 << 10)})
	body := mixed(p)
	flush(t, p)
	checkMixed(t, s, body)
	if name := folded(t, s).Sources()[0].Name(); len(name) < 256 || !strings.HasPrefix(incompressible(8<<10), name) {
		t.Errorf("name %.40q of %d bytes", name, len(name))
	}
}

func TestServerBecomesSmaller(t *testing.T) {
	s := natstest.Start(t)
	s.Streams(space, subjects.Storage{})
	p := start(t, producer.Options{URL: s.URL()})
	flush(t, p)
	s.Stop()
	body := mixed(p) // Queued for a large server …
	s.Change(func(o *server.Options) { o.MaxPayload = 8 << 10 })
	s.Run() // … and sent to a small one.
	flush(t, p)
	checkMixed(t, s, body)
}

func TestNotPermitted(t *testing.T) {
	allow := []string{"natscope.test.rec.svc.*.life", "natscope.test.rec.svc.*.event.>", "natscope.test.hb.svc"}
	s := natstest.Start(t, func(o *server.Options) {
		o.Users = []*server.User{
			{Username: "admin", Password: "admin"},
			{Username: "svc", Password: "svc", Permissions: &server.Permissions{Publish: &server.SubjectPermission{Allow: allow}}},
		}
	})
	s.As("admin", "admin")
	s.Streams(space, subjects.Storage{Memory: true})
	// The same with a connection of the producer's own and with one of the application.
	nc := s.Connect(nats.UserInfo("svc", "svc"), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	for _, o := range []producer.Options{{URL: s.URL(), NATS: []nats.Option{nats.UserInfo("svc", "svc")}}, {Conn: nc}} {
		o.ID = "svc"
		p := start(t, o)
		p.Record(subjects.PlaneConsole, "message", 1)
		count(p, 0, 10)
		natstest.Until(t, "the forbidden record is given up", func() bool { return p.Stats().Planes[subjects.PlaneConsole].Dropped == 1 })
		flush(t, p)
		if st := p.Stats(); st.Planes[subjects.PlaneEvent].Published != 10 || !strings.Contains(st.LastError, "permit") {
			t.Errorf("%+v", st)
		}
		end(t, p)
	}
}

func TestWrongPasswordThenRight(t *testing.T) {
	s := natstest.Start(t, func(o *server.Options) { o.Username, o.Password = "u", "p" })
	s.As("u", "p")
	s.Streams(space, subjects.Storage{})
	var mu sync.Mutex
	password := "wrong"
	p := start(t, producer.Options{URL: s.URL(), NATS: []nats.Option{nats.UserInfoHandler(func() (string, string) {
		mu.Lock()
		defer mu.Unlock()
		return "u", password
	})}})
	count(p, 0, 5)
	natstest.Until(t, "the refusal shows", func() bool { return strings.Contains(strings.ToLower(p.Stats().LastError), "authorization") })
	mu.Lock()
	password = "p"
	mu.Unlock()
	flush(t, p)
	wantCount(t, numbers(t, s, p.ID()), 5)
}

func TestGivenConnectionIsClosed(t *testing.T) {
	s := natstest.Start(t)
	s.Streams(space, subjects.Storage{Memory: true})
	nc := s.Connect()
	p := start(t, producer.Options{Conn: nc})
	flush(t, p)
	nc.Close()
	natstest.Until(t, "it shows", func() bool { st := p.Stats(); return !st.Connected && strings.Contains(st.LastError, "Options.Conn") })
	count(p, 0, 5)
	if err := p.Close(within(t, 50*time.Millisecond)); !errors.Is(err, producer.ErrUnflushed) {
		t.Errorf("error %v", err)
	}
}

func TestBodiesWhileTheServerIsAway(t *testing.T) {
	s := natstest.Start(t)
	s.Streams(space, subjects.Storage{})
	s.Stop()
	p := start(t, producer.Options{URL: s.URL(), Limits: subjects.Limits{QueueBytes: 100000, BodyQueueBytes: 100000}})
	full := bytes.Repeat([]byte("0123456789"), 20000)
	b := p.Body("r1", subjects.ResponseBody)
	b.Write(full)
	b.End(subjects.BodyComplete, int64(len(full)))
	count(p, 0, 10)
	s.Run()
	flush(t, p)
	got, last := joinBody(t, s.Read(subjects.BodyStreamName(space)))
	if len(got) != 100000 || !bytes.HasPrefix(full, []byte(got)) || last.End != subjects.BodyTruncated || last.Total != int64(len(full)) {
		t.Errorf("%d bytes, end %+v", len(got), last)
	}
	if st := p.Stats(); st.CutBodies != 1 {
		t.Errorf("%+v", st)
	}
	wantCount(t, numbers(t, s, p.ID()), 10)
}

func TestUpdatesMerge(t *testing.T) {
	s := natstest.Start(t)
	s.Streams(space, subjects.Storage{Memory: true})
	p := start(t, producer.Options{URL: s.URL(), Kind: source.KindClient})
	flush(t, p)
	yes := true
	p.Update(source.Update{Visible: &yes})
	for i := range 1000 {
		title := strings.Repeat("x", i)
		p.Update(source.Update{Title: &title})
	}
	p.RecordAt(subjects.PlaneLife, source.TopicUpdate, 0, json.RawMessage(`{"url":"http://page/"}`))
	p.RecordAt(subjects.PlaneLife, source.TopicClose, 0, json.RawMessage(`{}`))
	p.RecordAt(subjects.PlaneLife, "custom", 0, json.RawMessage(`{}`))
	flush(t, p)
	end(t, p)
	src := only(t, folded(t, s))
	d := src.Life.Descriptor
	if len(d.Title) != 999 || d.Visible == nil || !*d.Visible || d.URL != "http://page/" || d.PID != 0 || src.Planes[subjects.PlaneLife].Records > 500 {
		t.Errorf("%+v after %d records", d, src.Planes[subjects.PlaneLife].Records)
	}
}

func TestManyGoroutinesAndCloseInTheMiddle(t *testing.T) {
	s := natstest.Start(t)
	s.Streams(space, subjects.Storage{Memory: true})
	p := start(t, producer.Options{URL: s.URL()})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 2000 {
				p.Record(subjects.PlaneConsole, "message", map[string]int{"i": i})
				_ = p.Publish("t", i)
				if i%100 == 0 {
					body(p, "r", "text")
					p.Stats()
					p.Resnapshot()
				}
			}
		})
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	wg.Go(func() { _ = p.Flush(ctx) })
	if err := p.Close(ctx); err != nil {
		t.Error(err)
	}
	wg.Wait()
	src := only(t, folded(t, s))
	if !src.Life.Closed {
		t.Error("not closed")
	}
	st := p.Stats()
	for plane, ps := range st.Planes {
		if ps.Recorded != ps.Published+ps.Dropped+ps.Coalesced || ps.Queued != 0 {
			t.Errorf("%s: %+v", plane, ps)
		}
	}
}

func TestOptions(t *testing.T) {
	for name, o := range map[string]producer.Options{
		"space":    {Space: "A B"},
		"id":       {ID: "a.b"},
		"scheme":   {URL: "http://127.0.0.1:4222"},
		"url":      {URL: "nats://:secret@\x00"},
		"host":     {URL: "nats://"},
		"describe": {Describe: func(d *source.Descriptor) { panic("no") }},
		"realm":    {Describe: func(d *source.Descriptor) { d.Realm = "" }},
		"origin":   {Describe: func(d *source.Descriptor) { d.Origin = -1 }},
	} {
		p, err := producer.Start(o)
		if !errors.Is(err, producer.ErrOptions) || p != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error tells a password: %v", name, err)
		}
	}
	p := start(t, producer.Options{URL: "127.0.0.1:1, tls://host:2", Limits: subjects.Limits{FrameBytes: 1, FrameRecords: 1 << 30}})
	if l := p.Limits(); l.FrameBytes < 1024 || l.FrameRecords != 2048 {
		t.Errorf("%+v", l)
	}
}

// TestExit starts this test binary as a program whose server is away, and that
// ends without closing its producer.
func TestExit(t *testing.T) {
	if os.Getenv("NATSCOPE_TEST_EXIT") != "" {
		p, err := producer.Start(producer.Options{URL: "nats://127.0.0.1:1"})
		if err != nil {
			t.Fatal(err)
		}
		count(p, 0, 1000)
		_ = p.Close(within(t, time.Millisecond))
		os.Exit(0)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestExit$")
	cmd.Env = append(os.Environ(), "NATSCOPE_TEST_EXIT=1")
	began := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if d := time.Since(began); d > 5*time.Second {
		t.Errorf("the program took %v to end", d)
	}
}

// TestRolledBack takes the newest record away from the stream, as a server does
// that loses what it had not written to disk.
func TestRolledBack(t *testing.T) {
	s := natstest.Start(t)
	s.Streams(space, subjects.Storage{Memory: true}, func(c *jetstream.StreamConfig) { c.DenyDelete = false })
	var log lockedBuffer
	p := start(t, producer.Options{URL: s.URL(), Logger: slog.New(slog.NewTextHandler(&log, nil))})
	snapshots := make(chan struct{}, 10)
	p.OnSnapshot(func() []subjects.Record {
		snapshots <- struct{}{}
		return []subjects.Record{{Topic: "snapshot", Data: json.RawMessage(`{"version":1,"profile":"component","revision":1,"root":{"id":1,"name":"app"}}`)}}
	})
	for i := range 3 {
		count(p, i, i+1)
		flush(t, p)
	}
	all := s.Read(subjects.RecordStreamName(space))
	js, err := jetstream.New(s.Connect())
	if err != nil {
		t.Fatal(err)
	}
	st, err := js.Stream(within(t, 5*time.Second), subjects.RecordStreamName(space))
	if err != nil {
		t.Fatal(err)
	}
	if err := st.DeleteMsg(within(t, 5*time.Second), all[len(all)-1].Seq); err != nil {
		t.Fatal(err)
	}
	count(p, 3, 5)
	flush(t, p)
	select {
	case <-snapshots:
	case <-time.After(10 * time.Second):
		t.Error("no snapshot was asked for")
	}
	if got := numbers(t, s, p.ID()); len(got) != 4 || got[3] != 4 {
		t.Errorf("records %v", got)
	}
	if stats := p.Stats(); stats.Gaps != 1 || stats.Reopened != 0 {
		t.Errorf("%+v", stats)
	}
	if !strings.Contains(log.String(), "lost acknowledged records") {
		t.Errorf("the log says %q", log.String())
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
