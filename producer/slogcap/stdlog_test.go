package slogcap

import (
	"bytes"
	"log"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/natscope/natscope/subjects/console"
)

// A message is a text and no format, whatever it contains: in a console, "%s"
// would swallow the attributes.
func TestMessageIsNoFormat(t *testing.T) {
	var got []string
	log := slog.New(newHandler(func(_ time.Time, m console.Message) {
		line := ""
		for _, a := range m.Args {
			line += string(a) + " "
		}
		got = append(got, line)
	}, nil, Options{}))
	log.Info("95%d full", "disk", "a")
	log.Info("95%d full")
	log.Info("full", "disk", "95%d")
	want := []string{`"%s" "95%d full" {"disk":"a"} `, `"95%d full" `, `"full" {"disk":"95%d"} `}
	if !slices.Equal(got, want) {
		t.Errorf("recorded %q, want %q", got, want)
	}
}

// TestDefaultBehindItself makes a handler that passes on to slog's own default
// the default, which is what everybody writes first. Neither package may stop
// the program, and lines of both must be recorded and still be written.
func TestDefaultBehindItself(t *testing.T) {
	previous, writer, flags := slog.Default(), log.Writer(), log.Flags()
	t.Cleanup(func() {
		slog.SetDefault(previous)
		log.SetOutput(writer)
		log.SetFlags(flags)
	})
	var out bytes.Buffer
	log.SetOutput(&out)
	log.SetFlags(0)
	var recorded []string
	h := newHandler(func(_ time.Time, m console.Message) { recorded = append(recorded, string(m.Args[0])) }, slog.Default().Handler(), Options{})
	slog.SetDefault(slog.New(h))

	done := make(chan struct{})
	go func() {
		defer close(done)
		slog.Info("by slog", "n", 1)
		slog.With("a", "b c").WithGroup("g").Warn("with attributes", "n", 2)
		slog.Info("bare")
		slog.Debug("not wanted")
		log.Print("by log")
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("a line of a default logger waits for itself")
	}
	want := "INFO by slog n=1\nWARN with attributes a=\"b c\" g.n=2\nINFO bare\nINFO by log\n"
	if out.String() != want {
		t.Errorf("written:\n%swant:\n%s", out.String(), want)
	}
	if got := strings.Join(recorded, " "); got != `"by slog" "with attributes" "bare" "by log"` {
		t.Errorf("recorded %s", got)
	}
}
