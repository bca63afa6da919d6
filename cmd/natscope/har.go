package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/natscope/natscope/query/har"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/store/replica"
	"github.com/natscope/natscope/subjects"
)

// harFlags are the flags of natscope har.
type harFlags struct {
	connectFlags
	space, output string
	sources       []string
	noBodies      bool
	wait          time.Duration
	requests      int
}

func newHAR() *cobra.Command {
	var f harFlags
	c := &cobra.Command{
		Use:   "har",
		Short: "Write the captured requests as an HTTP Archive",
		Long: `Writes the requests that a space keeps, with their bodies, timings, redirects,
server-sent events and WebSocket messages, as HTTP Archive 1.2. The Network panel of
DevTools imports it, as do other tools. Requests that still run are marked as
incomplete. The archive holds what was captured, cookies and tokens included, unless
the sources redact them.`,
		Example: `  natscope har -o requests.har
  natscope har --source 'orders*' | jq '.log.entries[].request.url'`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return usageError(err)
			}
			return f.run(c.Context(), c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	fl := c.Flags()
	f.register(fl)
	fl.StringVar(&f.space, "space", string(subjects.DefaultSpace), "space to read")
	fl.StringSliceVar(&f.sources, "source", nil, "source to write, by its id or its name, with * for any characters; repeatable (default: all)")
	fl.StringVarP(&f.output, "output", "o", "-", "file to write; - is standard output")
	fl.BoolVar(&f.noBodies, "no-bodies", false, "leave out the bodies")
	fl.DurationVar(&f.wait, "wait", 15*time.Second, "how long to wait for the state of the space")
	fl.IntVar(&f.requests, "keep-requests", subjects.DefaultLimits().Requests, "requests kept for each source, as the stores of the space have it")
	return c
}

func (f *harFlags) check() error {
	if !subjects.IsToken(f.space) {
		return fmt.Errorf("--space %q is not a token of a-z, 0-9, _ and -", f.space)
	}
	for _, p := range f.sources {
		if _, err := path.Match(p, ""); err != nil {
			return fmt.Errorf("--source %q: %w", p, err)
		}
	}
	return f.connectFlags.check()
}

func (f *harFlags) run(ctx context.Context, stdout, stderr io.Writer) error {
	conn, err := f.connectOnce("natscope har", newLog(stderr, false))
	if err != nil {
		return err
	}
	defer conn.Close()
	limits := subjects.Limits{Requests: f.requests}
	open, cancel := context.WithTimeout(ctx, f.wait)
	defer cancel()
	loaded := progressOn(stderr).during("reading the state of the space")
	r, err := replica.Open(open, replica.Options{Conn: conn, Space: subjects.Space(f.space), Limits: limits})
	loaded()
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	var list []har.Request
	r.View(func(s *fold.Space) { list = har.Collect(s, f.chooses) })
	o := har.Options{Version: version(), Body: r.FollowBody, Limits: limits}
	if f.noBodies {
		o.Body = nil
	}
	p, n := progressOn(stderr), len(list)
	o.Progress = func(written int) { p.say("%d of %d requests", written, n) }
	err = f.write(ctx, stdout, list, o)
	p.done()
	if errors.Is(err, har.ErrNoRequests) {
		return fmt.Errorf("space %s holds no requests of the sources asked for; natscope doctor lists the sources", f.space)
	}
	if err == nil && f.output != "-" {
		fmt.Fprintf(stderr, "wrote %d requests to %s\n", n, f.output)
	}
	return err
}

// chooses reports whether a source is asked for.
func (f *harFlags) chooses(src *fold.Source) bool {
	for _, p := range f.sources {
		for _, name := range []string{string(src.ID), src.Name()} {
			if ok, err := path.Match(p, name); ok && err == nil {
				return true
			}
		}
	}
	return len(f.sources) == 0
}

// write writes the archive. A file appears under its name only when it is whole.
func (f *harFlags) write(ctx context.Context, stdout io.Writer, list []har.Request, o har.Options) error {
	if f.output == "-" {
		return har.Write(ctx, stdout, list, o)
	}
	part, err := os.CreateTemp(filepath.Dir(f.output), filepath.Base(f.output)+".*.part")
	if err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	defer func() { _ = os.Remove(part.Name()) }()
	if err := errors.Join(har.Write(ctx, part, list, o), part.Close()); err != nil {
		return err
	}
	if err := os.Rename(part.Name(), f.output); err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	return nil
}
