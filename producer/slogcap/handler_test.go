package slogcap

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/slogtest"
	"time"

	"go.uber.org/goleak"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/producer/internal/natstest"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/console"
	"github.com/natscope/natscope/subjects/value"
)

func TestMain(m *testing.M) {
	// The examples connect to the usual server; they must not appear in a natscope that runs on this machine.
	_ = os.Setenv("NATS_URL", "nats://127.0.0.1:1")
	goleak.VerifyTestMain(m)
}

// plain turns a value into what slogtest compares.
func plain(v value.Value) any {
	if v.Kind != value.Object {
		return v.Text
	}
	m := make(map[string]any)
	for _, f := range v.Fields {
		m[f.Name] = plain(f.Value)
	}
	return m
}

func parsed(t testing.TB, raw json.RawMessage) value.Value {
	t.Helper()
	v, err := value.Parse(raw)
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return v
}

func TestFollowsTheRulesOfSlog(t *testing.T) {
	var got map[string]any
	newOne := func(t *testing.T) slog.Handler {
		return newHandler(func(at time.Time, m console.Message) {
			got = make(map[string]any)
			if len(m.Args) > 1 {
				got = plain(parsed(t, m.Args[1])).(map[string]any)
			}
			if !at.IsZero() {
				got[slog.TimeKey] = at
			}
			got[slog.LevelKey] = m.Type
			got[slog.MessageKey] = parsed(t, m.Args[0]).Text
		}, nil, Options{})
	}
	slogtest.Run(t, newOne, func(*testing.T) map[string]any { return got })
}

// collect returns a logger and what it emits.
func collect(o Options, next slog.Handler) (*slog.Logger, *[]console.Message) {
	var out []console.Message
	return slog.New(newHandler(func(_ time.Time, m console.Message) { out = append(out, m) }, next, o)), &out
}

func TestLevelsAndPlace(t *testing.T) {
	log, out := collect(Options{Level: slog.LevelDebug - 4, Logger: "app"}, nil)
	log.Log(context.Background(), slog.LevelDebug-4, "a")
	log.Debug("a")
	log.Info("a")
	log.WithGroup("http").WithGroup("in").Warn("a")
	log.Error("a")
	log.Log(context.Background(), slog.LevelError+4, "a")
	var types, loggers []string
	for _, m := range *out {
		types, loggers = append(types, m.Type), append(loggers, m.Logger)
		if len(m.Stack) != 1 || filepath.Base(m.Stack[0].URL) != "handler_test.go" || m.Stack[0].Line == 0 || !strings.HasSuffix(m.Stack[0].Function, "TestLevelsAndPlace") {
			t.Errorf("stack %+v", m.Stack)
		}
	}
	if s := strings.Join(types, " "); s != "debug debug info warning error error" {
		t.Error(s)
	}
	if s := strings.Join(loggers, " "); s != "app app app app.http.in app app" {
		t.Error(s)
	}
	log, out = collect(Options{}, nil)
	log.Debug("too low")
	if len(*out) != 0 || log.Enabled(context.Background(), slog.LevelDebug) {
		t.Error("debug lines are recorded by default")
	}
}

type secret struct{}

func (secret) LogValue() slog.Value { return slog.StringValue("redacted") }

type bad struct{}

func (bad) LogValue() slog.Value { panic("no value") }

func TestValues(t *testing.T) {
	log, out := collect(Options{}, nil)
	log = log.With("password", secret{}, "a", 1).WithGroup("g").With("a", 2, slog.Group("empty"))
	log.Info("text", "bad", bad{}, "err", errors.New("no"), "d", 2*time.Second, "a", 3,
		slog.Group("sub", "x", 1, slog.Group("", "y", "z"), slog.Group("deep", "k", true)), "bytes\xff", "\xfe")
	m := (*out)[0]
	if got := string(m.Args[0]); got != `"text"` {
		t.Error(got)
	}
	raw := string(m.Args[1])
	for _, s := range []string{`"password":"redacted","a":1,"g":{`, `"a":3`, "LogValue panicked", `"message":"no"`, `"sub":{"x":1,"y":"z","deep":{"k":true}}`, "2s"} {
		if !strings.Contains(raw, s) {
			t.Errorf("%s is missing in %s", s, raw)
		}
	}
	if strings.Contains(raw, `"empty"`) || strings.Contains(raw, `"a":2`) {
		t.Errorf("%s", raw)
	}
	parsed(t, m.Args[1])
}

func TestPassesOn(t *testing.T) {
	var b bytes.Buffer
	next := slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelWarn})
	log, out := collect(Options{}, next)
	log = log.With("a", 1).WithGroup("g")
	log.Info("quiet")
	log.Warn("loud", "b", 2)
	if len(*out) != 2 || strings.Contains(b.String(), "quiet") || !strings.Contains(b.String(), "msg=loud a=1 g.b=2") {
		t.Errorf("%d recorded, passed on: %s", len(*out), b.String())
	}
	log, out = collect(Options{Level: slog.LevelError}, next)
	log.Warn("only next")
	if len(*out) != 0 || !strings.Contains(b.String(), "only next") {
		t.Error("a line below the level did not reach the next handler alone")
	}
	want := errors.New("full")
	h := newHandler(func(time.Time, console.Message) {}, failing{want}, Options{})
	if err := h.Handle(context.Background(), slog.Record{}); !errors.Is(err, want) {
		t.Error(err)
	}
}

type failing struct{ err error }

func (failing) Enabled(context.Context, slog.Level) bool    { return true }
func (f failing) Handle(context.Context, slog.Record) error { return f.err }
func (f failing) WithAttrs([]slog.Attr) slog.Handler        { return f }
func (f failing) WithGroup(string) slog.Handler             { return f }

// TestReachesTheStream logs through a real producer, whose own logger is the handler too.
func TestReachesTheStream(t *testing.T) {
	s := natstest.Start(t)
	var late lateHandler
	p, err := producer.Start(producer.Options{URL: s.URL(), Space: "test", ID: "svc", Logger: slog.New(&late)})
	if err != nil {
		t.Fatal(err)
	}
	h := New(p, nil, Options{})
	late.h.Store(&h)
	before := p.Now()
	log := slog.New(h)
	log.Info("hello", "user", map[string]int{"id": 7}, "big", strings.Repeat("x", 3<<20))
	log.Warn(strings.Repeat("y", 3<<20))
	s.Streams("test", subjects.Storage{Memory: true})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := p.Close(ctx); err != nil {
		t.Fatal(err)
	}
	sp := fold.New("test", subjects.Limits{})
	for _, m := range s.Read(subjects.RecordStreamName("test")) {
		sp.Apply(m.Subject, subjects.StreamSeq(m.Seq), m.Header, m.Data)
	}
	src := sp.Source("svc")
	if src.FaultCount != 0 {
		t.Fatalf("%+v", src.Faults)
	}
	var texts []string
	for _, e := range src.Console.Entries {
		texts = append(texts, fmt.Sprintf("%s %.60s", e.Message.Type, e.Message.Args[0]))
		if e.T < before-1 || e.T > p.Now() {
			t.Errorf("time %v is not between %v and %v", e.T, before, p.Now())
		}
	}
	all := strings.Join(texts, "\n")
	if !strings.Contains(all, `info "hello"`) || !strings.Contains(all, `warning {"__natscope":"string"`) {
		t.Errorf("%s", all)
	}
}

// lateHandler lets a producer have a handler that is made from the producer.
type lateHandler struct{ h atomic.Pointer[slog.Handler] }

func (l *lateHandler) Enabled(ctx context.Context, v slog.Level) bool {
	return l.h.Load() != nil && (*l.h.Load()).Enabled(ctx, v)
}

func (l *lateHandler) Handle(ctx context.Context, r slog.Record) error {
	return (*l.h.Load()).Handle(ctx, r)
}

func (l *lateHandler) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l *lateHandler) WithGroup(string) slog.Handler      { return l }

func BenchmarkHandle(b *testing.B) {
	h := newHandler(func(time.Time, console.Message) {}, nil, Options{})
	log := slog.New(h)
	b.ReportAllocs()
	for b.Loop() {
		log.Info("order placed", "id", 42, "user", "ada", "total", 12.5)
	}
}
