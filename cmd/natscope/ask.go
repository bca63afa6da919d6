package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/natscope/natscope/query"
	"github.com/natscope/natscope/subjects"
)

// The groups of commands in the help.
const (
	groupRun = "run"
	groupAsk = "ask"
)

// The exit codes of commands that ask, beside the usual ones.
const (
	// exitNotFound means that what was named is not there, or that a search found nothing.
	exitNotFound = 3
	// exitUnavailable means that nobody answered.
	exitUnavailable = 4
)

// errNothing says that a search found nothing; it needs no words.
var errNothing = errors.New("nothing found")

// askFlags are the flags of every command that asks the query service.
type askFlags struct {
	connectFlags
	space, output, color string
	timeout              time.Duration
}

func (f *askFlags) register(fl *pflag.FlagSet) {
	f.connectFlags.register(fl)
	fl.StringVar(&f.space, "space", string(subjects.DefaultSpace), "space to ask about")
	fl.StringVarP(&f.output, "output", "o", "table", "how to print: table for people, json for programs")
	fl.StringVar(&f.color, "color", "auto", "colours: auto (on a terminal, unless $NO_COLOR is set), always or never")
	fl.DurationVar(&f.timeout, "timeout", 12*time.Second, "how long to wait for an answer")
}

func (f *askFlags) check() error {
	switch {
	case f.output != "table" && f.output != "json":
		return fmt.Errorf("--output %q: use table or json", f.output)
	case f.color != "auto" && f.color != "always" && f.color != "never":
		return fmt.Errorf("--color %q: use auto, always or never", f.color)
	case !subjects.IsToken(f.space):
		return fmt.Errorf("--space %q is not a token of a-z, 0-9, _ and -", f.space)
	case f.timeout <= 0:
		return fmt.Errorf("--timeout %s: use a positive duration", f.timeout)
	}
	return f.connectFlags.check()
}

// asker is what a command asks with and prints on.
type asker struct {
	query.API
	*printer
	ctx     context.Context
	timeout time.Duration
	// progress tells of questions that take long; nil where nobody looks.
	progress *progress
}

// command makes a command that asks. args names its arguments for the usage line.
func (f *askFlags) command(use, short, long string, args cobra.PositionalArgs, run func(a *asker, args []string) error) *cobra.Command {
	c := &cobra.Command{
		Use: use, Short: short, Long: long, GroupID: groupAsk,
		Args: usageArgs(args),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return usageError(err)
			}
			return f.run(c, args, run)
		},
	}
	f.register(c.Flags())
	return c
}

func (f *askFlags) run(c *cobra.Command, args []string, run func(a *asker, args []string) error) error {
	conn, err := f.connectOnce("natscope "+c.Name(), newLog(c.ErrOrStderr(), false))
	if err != nil {
		return fmt.Errorf("%w%w", hidden{query.ErrUnavailable}, err)
	}
	defer conn.Close()
	a := &asker{API: query.NewClient(conn, subjects.Space(f.space)).As(f.who("natscope " + c.Name())), printer: f.printer(c.OutOrStdout()), ctx: c.Context(), timeout: f.timeout, progress: progressOn(c.ErrOrStderr())}
	err = run(a, args)
	if err == nil {
		err = a.err
	}
	if c.Context().Err() != nil {
		// Ctrl+C is how people end what follows.
		return nil
	}
	return err
}

// ask asks one question within the command's time.
func ask[Q, A any](a *asker, question func(context.Context, Q) (A, error), q Q) (A, error) {
	ctx, cancel := context.WithTimeout(a.ctx, a.timeout)
	defer cancel()
	defer a.progress.during("waiting for the answer")()
	return question(ctx, q)
}

// exitCode is the code that an error ends the process with.
func exitCode(err error) int {
	switch {
	case errors.Is(err, errUsage), errors.Is(err, query.ErrMalformed):
		return exitUsage
	case errors.Is(err, errNothing), errors.Is(err, query.ErrNotFound), errors.Is(err, query.ErrGone):
		return exitNotFound
	case errors.Is(err, query.ErrUnavailable), errors.Is(err, query.ErrTimeout), errors.Is(err, query.ErrBusy):
		return exitUnavailable
	}
	return exitError
}

// sayError is an error as people read it, without the names of sentinels; empty for one that needs no words.
func sayError(err error) string {
	if errors.Is(err, errNothing) || errors.Is(err, errThrew) {
		return ""
	}
	text := oneLine(err)
	for _, s := range []error{query.ErrMalformed, query.ErrNotFound, query.ErrGone, query.ErrRefused, query.ErrUnsupported, query.ErrBusy, query.ErrTimeout, query.ErrUnavailable, query.ErrFailed} {
		text = strings.TrimPrefix(text, s.Error()+": ")
	}
	return text
}

// sourceNames completes the names of sources.
func (f *askFlags) sourceNames(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	// A shell waits while this runs, so it gives up soon.
	opts, err := f.options()
	if err != nil || f.context != "" {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	conn, err := nats.Connect(f.url(), append(opts, nats.Timeout(time.Second))...)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(c.Context(), time.Second)
	defer cancel()
	a, err := query.NewClient(conn, subjects.Space(f.space)).Sources(ctx, query.SourcesRequest{})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []string
	for _, s := range a.Sources {
		out = append(out, string(s.ID)+"\t"+s.Name+", "+s.State)
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// printer prints answers, as tables for people or as JSON for programs.
type printer struct {
	w      io.Writer
	json   bool
	colors bool
	// terminal says that a person looks at the output; width is how wide it is, 0 if unknown.
	terminal bool
	width    int
	err      error
}

func (f *askFlags) printer(w io.Writer) *printer {
	p := &printer{w: w, json: f.output == "json"}
	if file, ok := w.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		p.terminal = true
		if width, _, err := term.GetSize(int(file.Fd())); err == nil {
			p.width = width
		}
	}
	p.colors = f.color == "always" || f.color == "auto" && p.terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return p
}

// printf prints, and remembers the first error: who reads may leave.
func (p *printer) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

// value prints an answer as JSON, over several lines.
func (p *printer) value(v any) error {
	enc := json.NewEncoder(p.w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// line prints a thing as JSON on one line.
func (p *printer) line(v any) error {
	enc := json.NewEncoder(p.w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
