package slogcap

import (
	"context"
	"encoding/json"
	"log"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/console"
	"github.com/natscope/natscope/subjects/network"
	"github.com/natscope/natscope/subjects/value"
)

// Options configures a handler. The zero value works.
type Options struct {
	// Level is the least level that is recorded. Nil means slog.LevelInfo. What
	// the next handler takes is its own affair.
	Level slog.Leveler
	// Logger names the logger in every message, such as "http". Groups opened
	// with WithGroup are appended, separated by dots.
	Logger string
	// Live keeps the values of lines alive for a while, so that they can be
	// expanded as they are now where the line is shown: a goreal.Realm. Nil shows
	// them as they were when they were logged.
	Live Keeper
}

// Keeper keeps values alive for a while, and returns the number by which they
// are found, 0 if nobody could ask for them.
type Keeper interface {
	Keep(args ...any) console.Ref
}

// handler records and passes on. It is immutable.
type handler struct {
	emit   func(t time.Time, m console.Message)
	next   slog.Handler
	o      Options
	groups []string
	// scopes holds the attributes of WithAttrs: scopes[i] belongs inside the first i groups.
	scopes [][]value.Field
	// kept holds the same as scopes, live; it is empty without Options.Live.
	kept [][]slog.Attr
}

// New returns a handler that records each line as a console message of p and
// then calls next, which may be nil. It is safe for concurrent use. p's own
// logger may use the handler. In place of the handler that slog starts with,
// which would wait for itself behind slog.SetDefault, next is one that writes
// the same lines to where the log package writes now; what With added to it
// before is not in them.
func New(p *producer.Producer, next slog.Handler, o Options) slog.Handler {
	return newHandler(func(t time.Time, m console.Message) {
		at := p.Now()
		if !t.IsZero() {
			at -= float64(time.Since(t)) / float64(time.Millisecond)
		}
		data, err := json.Marshal(m)
		if err != nil {
			// The arguments are encoded here and always valid; the texts around them can always be marshalled.
			return
		}
		p.RecordAt(subjects.PlaneConsole, console.TopicMessage, at, data)
	}, next, o)
}

func newHandler(emit func(time.Time, console.Message), next slog.Handler, o Options) *handler {
	if o.Level == nil {
		o.Level = slog.LevelInfo
	}
	if writesToLog(next) {
		next = newStdHandler(log.Writer(), log.Prefix(), log.Flags())
	}
	return &handler{emit: emit, next: next, o: o, scopes: make([][]value.Field, 1), kept: make([][]slog.Attr, 1)}
}

// Enabled reports whether the line is recorded or passed on.
func (h *handler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= h.o.Level.Level() || h.next != nil && h.next.Enabled(ctx, level)
}

// Handle records the line and passes it on. The error is that of the next handler.
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= h.o.Level.Level() {
		m := h.message(r)
		m.Request, m.Trace = producer.RequestOf(ctx)
		if h.o.Live != nil && len(m.Args) > 1 {
			m.Ref = h.keep(r, len(m.Args))
		}
		h.emit(r.Time, m)
	}
	if h.next != nil && h.next.Enabled(ctx, r.Level) {
		return h.next.Handle(ctx, r)
	}
	return nil
}

// WithAttrs returns a handler that adds the attributes to every line.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	if len(attrs) == 0 {
		return h
	}
	c := h.clone()
	at := len(c.groups)
	c.scopes[at] = appendAttrs(slices.Clone(c.scopes[at]), attrs)
	if c.o.Live != nil {
		c.kept[at] = append(slices.Clip(c.kept[at]), attrs...)
	}
	if c.next != nil {
		c.next = c.next.WithAttrs(attrs)
	}
	return c
}

// WithGroup returns a handler that puts the attributes that follow into a group.
func (h *handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	c := h.clone()
	c.groups = append(slices.Clone(c.groups), name)
	c.scopes, c.kept = append(c.scopes, nil), append(c.kept, nil)
	if c.next != nil {
		c.next = c.next.WithGroup(name)
	}
	return c
}

func (h *handler) clone() *handler {
	c := *h
	c.scopes, c.kept = slices.Clone(h.scopes), slices.Clone(h.kept)
	return &c
}

// message makes the console message of a line.
func (h *handler) message(r slog.Record) console.Message {
	m := console.Message{Type: kind(r.Level), Args: []json.RawMessage{value.Encode(r.Message)}, Logger: h.logger(), Stack: stack(r.PC)}
	if o := h.object(r); len(o.Fields) > 0 {
		if strings.Contains(r.Message, "%") {
			// A console takes a first text with more behind it for a format; slog's messages are none.
			m.Args = []json.RawMessage{value.Encode("%s"), m.Args[0]}
		}
		m.Args = append(m.Args, value.Append(nil, o))
	}
	return m
}

// object nests the attributes of the line into its groups. Empty groups stay out.
func (h *handler) object(r slog.Record) value.Value {
	own := make([]value.Field, 0, r.NumAttrs())
	r.Attrs(func(a slog.Attr) bool {
		own = appendAttr(own, a)
		return true
	})
	for i := len(h.groups); ; i-- {
		fields := h.scopes[i]
		if len(own) > 0 {
			fields = unique(append(slices.Clip(fields), own...))
		}
		if i == 0 {
			return object(fields)
		}
		own = nil
		if len(fields) > 0 {
			own = []value.Field{{Name: h.groups[i-1], Value: object(fields)}}
		}
	}
}

// object is an object with at most as many fields as a value may have.
func object(fields []value.Field) value.Value {
	v := value.Value{Kind: value.Object, Fields: fields, Size: len(fields)}
	if len(fields) > value.MaxEntries {
		v.Fields, v.Partial = fields[:value.MaxEntries], true
	}
	return v
}

// unique keeps the last of fields with the same name, as a JavaScript object does.
func unique(fields []value.Field) []value.Field {
	if len(fields) < 2 {
		return fields
	}
	last := make(map[string]int, len(fields))
	for i, f := range fields {
		last[f.Name] = i
	}
	if len(last) == len(fields) {
		return fields
	}
	out := make([]value.Field, 0, len(last))
	for i, f := range fields {
		if last[f.Name] == i {
			out = append(out, f)
		}
	}
	return out
}

func (h *handler) logger() string {
	if len(h.groups) == 0 {
		return h.o.Logger
	}
	groups := strings.Join(h.groups, ".")
	if h.o.Logger == "" {
		return groups
	}
	return h.o.Logger + "." + groups
}

// kind is the console type of a level. Levels between the named ones count as the lower one.
func kind(l slog.Level) string {
	switch {
	case l < slog.LevelInfo:
		return "debug"
	case l < slog.LevelWarn:
		return "info"
	case l < slog.LevelError:
		return "warning"
	}
	return "error"
}

// stack is the place of the call.
func stack(pc uintptr) []network.Frame {
	if pc == 0 {
		return nil
	}
	f, _ := runtime.CallersFrames([]uintptr{pc}).Next()
	if f.File == "" {
		return nil
	}
	return []network.Frame{{Function: f.Function, URL: f.File, Line: f.Line}}
}
