package slogcap

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"sync"
)

// stdHandler takes the place of the handler that slog starts with. That one
// writes through the log package, and slog.SetDefault makes the log package
// write to the new default handler: with it behind a default handler, every
// line would wait for itself for ever. stdHandler writes lines of the same form
// to where the log package wrote when the handler was made.
type stdHandler struct {
	out   *log.Logger
	attrs slog.Handler
	// mu guards buf, to which attrs writes. Handlers made of one another share both.
	mu  *sync.Mutex
	buf *bytes.Buffer
}

// newStdHandler returns a handler that writes to w as the log package does with the given prefix and flags.
func newStdHandler(w io.Writer, prefix string, flags int) *stdHandler {
	h := &stdHandler{out: log.New(w, prefix, flags), mu: new(sync.Mutex), buf: new(bytes.Buffer)}
	h.attrs = slog.NewTextHandler(h.buf, &slog.HandlerOptions{ReplaceAttr: onlyAttrs})
	return h
}

// onlyAttrs removes what the line says in front of its attributes.
func onlyAttrs(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey) {
		return slog.Attr{}
	}
	return a
}

// writesToLog reports whether next is the handler that slog starts with, or one made of it.
func writesToLog(next slog.Handler) bool { return fmt.Sprintf("%T", next) == "*slog.defaultHandler" }

// Enabled reports whether slog's own start handler takes the level.
func (h *stdHandler) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }

// Handle writes one line.
func (h *stdHandler) Handle(ctx context.Context, r slog.Record) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.buf.Reset()
	h.buf.WriteString(r.Level.String() + " " + r.Message)
	head := h.buf.Len()
	h.buf.WriteByte(' ')
	if err := h.attrs.Handle(ctx, r); err != nil {
		return err
	}
	line := h.buf.Bytes()
	if len(bytes.TrimSpace(line[head:])) == 0 {
		line = line[:head]
	}
	return h.out.Output(0, string(line))
}

// WithAttrs returns a handler that adds the attributes to every line.
func (h *stdHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	c := *h
	c.attrs = h.attrs.WithAttrs(attrs)
	return &c
}

// WithGroup returns a handler that puts the attributes that follow into a group.
func (h *stdHandler) WithGroup(name string) slog.Handler {
	c := *h
	c.attrs = h.attrs.WithGroup(name)
	return &c
}
