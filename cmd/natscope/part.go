package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/natscope/natscope/embedded"
	"github.com/natscope/natscope/subjects"
)

// partFlags are the flags of the commands that run one part of natscope against a NATS server elsewhere.
type partFlags struct {
	connectFlags
	parts     embedded.Parts
	space     string
	doors     doorFlags
	storage   storageFlags
	keep      keepFlags
	verbose   bool
	readyJSON bool
	admin     string
}

func newStore() *cobra.Command {
	f := &partFlags{parts: embedded.Parts{Store: true}}
	c := f.command("store", "Run a store: fold records and keep the state of a space", `Creates the streams and the state bucket of a space if they are missing, folds all
records, and keeps the state in the bucket. Any number of stores may run for one
space: all of them fold, and each piece of state is written by exactly one.`)
	f.storage.register(c.Flags())
	f.storage.registerElsewhere(c.Flags())
	f.keep.register(c.Flags())
	return c
}

func newGateway() *cobra.Command {
	f := &partFlags{parts: embedded.Parts{Gateway: true}}
	c := f.command("gateway", "Run a gateway: show a space in DevTools", `Serves DevTools connections, and the list of targets at its root. Gateways keep
nothing that matters: run as many as you like, and reconnect to any.`)
	f.doors.register(c.Flags())
	f.keep.register(c.Flags())
	return c
}

func newIngest() *cobra.Command {
	f := &partFlags{parts: embedded.Parts{Ingest: true}}
	c := f.command("ingest", "Run an ingest: let browser pages in", `Serves the client script and admits the pages that load it. The token that pages need
is taken from $NATSCOPE_TOKEN, or made anew.`)
	f.doors.register(c.Flags())
	return c
}

// command makes the command that all parts have in common.
func (f *partFlags) command(use, short, long string) *cobra.Command {
	c := &cobra.Command{
		Use: use, Short: short, Long: long,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return usageError(err)
			}
			return f.run(c.Context(), c.Name(), c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	fl := c.Flags()
	f.register(fl)
	fl.StringVar(&f.space, "space", string(subjects.DefaultSpace), "space to work on")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "log details")
	fl.StringVar(&f.admin, "admin", "", "address of a listener with /healthz, /readyz and /metrics for operators (default: none)")
	fl.BoolVar(&f.readyJSON, "ready-json", false, "print one line of JSON on standard output once everything answers")
	return c
}

// doorsCheck checks the flags of parts that listen.
func (f *partFlags) doorsCheck() error {
	if f.parts.Store {
		return nil
	}
	return f.doors.check()
}

func (f *partFlags) check() error {
	if !subjects.IsToken(f.space) {
		return fmt.Errorf("--space %q is not a token of a-z, 0-9, _ and -; use for example %q", f.space, subjects.Token(f.space))
	}
	return errors.Join(f.doorsCheck(), f.connectFlags.check(), f.storage.check(), f.keep.check())
}

// run connects, starts the part, and stops when ctx ends.
func (f *partFlags) run(ctx context.Context, name string, stdout, stderr io.Writer) (err error) {
	log := newLog(stderr, f.verbose)
	conn, err := f.connect(ctx, "natscope "+name, log)
	if err != nil {
		return err
	}
	defer conn.Close()
	o := embedded.Options{
		Space: subjects.Space(f.space), Conn: conn, Parts: f.parts, Storage: f.storage.storage(), Limits: f.keep.limits(),
		Admin: f.admin, Token: os.Getenv("NATSCOPE_TOKEN"), Version: version(), Logger: log,
	}
	if !f.parts.Store {
		if err := f.doors.apply(&o); err != nil {
			return err
		}
	}
	i, err := embedded.Start(ctx, o)
	if err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("stopped before the %s was ready: %w", name, err)
		}
		return err
	}
	defer func() {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
		defer cancel()
		err = errors.Join(err, i.Close(stop))
	}()
	f.say(log, stdout, i)
	<-ctx.Done()
	log.Info("stopping")
	return nil
}

// say tells people and programs that the part is ready, and where.
func (f *partFlags) say(log *slog.Logger, stdout io.Writer, i *embedded.Instance) {
	r := ready{Listen: i.Addr(), Admin: i.Admin(), NATS: i.NATS(), Space: i.Space()}
	switch {
	case f.parts.Gateway:
		r.HTTP, r.DevTools = i.HTTP(), i.DevTools()
		log.Info("the gateway is ready", "sources", r.HTTP, "devtools", r.DevTools)
	case f.parts.Ingest:
		r.HTTP, r.Client = i.HTTP(), i.ClientScript()
		// The token is a secret, so it is in no log; whoever gave it in $NATSCOPE_TOKEN knows it.
		script, _, _ := strings.Cut(r.Client, "?")
		log.Info("the ingest is ready", "script", script)
		if os.Getenv("NATSCOPE_TOKEN") == "" && !f.readyJSON {
			fmt.Fprintf(stdout, "The pages' line, with a token that lasts until this process ends ($NATSCOPE_TOKEN sets one that stays):\n  <script type=\"module\" src=\"%s\"></script>\n", r.Client)
		}
	default:
		log.Info("the store is ready", "space", r.Space, "nats", r.NATS)
	}
	if f.readyJSON {
		enc := json.NewEncoder(stdout)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(r)
	}
}

// newLog makes the log of a command.
func newLog(w io.Writer, verbose bool) *slog.Logger {
	level := slog.LevelInfo
	if verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
}

// quietLog is the log of a command that shares its terminal with another program.
func quietLog(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelWarn}))
}
