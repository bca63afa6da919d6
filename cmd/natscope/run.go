package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/natscope/natscope/embedded"
	"github.com/natscope/natscope/producer/v8"
	"github.com/natscope/natscope/subjects"
)

// runFlags are the flags of natscope run.
type runFlags struct {
	connectFlags
	injectFlags
	space, instance string
	hold            time.Duration
	verbose         bool
}

// exitStatus is the end of a program that natscope ran, which becomes its own. There is nothing to print.
type exitStatus int

func (e exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

func newRun() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run -- COMMAND [ARGUMENT…]",
		Short: "Run a program; it and every Node process below it become sources",
		Long: `Runs a program with the terminal, the signals and the exit code that it would have
without natscope. Every Node process in it, the program itself or one that it starts,
opens an inspector on a free loopback port and becomes a source. The requests that it
makes and answers, and the tree of a Cordis runtime, are seen too; see --inject.

A process waits at its start until it is observed, for --hold at most, so that its
first lines and an early crash are not missed.`,
		Args: usageArgs(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return usageError(err)
			}
			return f.run(c.Context(), args, c.ErrOrStderr())
		},
	}
	fl := c.Flags()
	fl.SetInterspersed(false)
	f.connectFlags.register(fl)
	f.injectFlags.register(fl)
	fl.StringVar(&f.space, "space", string(subjects.DefaultSpace), "space of the sources")
	fl.StringVar(&f.instance, "instance", "", "what tells programs of one name apart (default: the name of the machine)")
	fl.DurationVar(&f.hold, "hold", 2*time.Second, "how long a process waits at its start until it is observed, at most; 0 for not at all")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "log details")
	return c
}

func (f *runFlags) check() error {
	switch {
	case !subjects.IsToken(f.space):
		return fmt.Errorf("--space %q is not a token of a-z, 0-9, _ and -; use for example %q", f.space, subjects.Token(f.space))
	case f.hold < 0 || f.hold > time.Minute:
		return errors.New("--hold is between 0 and 1m")
	}
	if _, err := f.injectFlags.options(); err != nil {
		return err
	}
	return f.connectFlags.check()
}

// run runs the program and returns its end.
func (f *runFlags) run(ctx context.Context, args []string, stderr io.Writer) error {
	log := newLog(stderr, f.verbose)
	if !f.verbose {
		log = quietLog(stderr) // The terminal is the program's.
	}
	// NATS may come later, or never: the program does not wait for it.
	conn, err := f.dial(append(embedded.ConnOptions("natscope run", log), nats.RetryOnFailedConnect(true)))
	if err != nil {
		return err
	}
	defer conn.Close()
	if !conn.IsConnected() {
		log.Warn("NATS does not answer; the program runs all the same, and is seen once it does: natscope up starts one", "server", f.where())
	}
	inject, err := f.injectFlags.options()
	if err != nil {
		return err
	}
	nursery, err := v8.NewNursery(f.hold)
	if err != nil {
		return err
	}
	defer nursery.Close()
	a, err := v8.Attach(v8.Options{
		Directory: nursery.Directory(), Instance: f.instance, Space: subjects.Space(f.space), Conn: conn,
		Attached: nursery.Attached, HoldWorkers: f.hold > 0, Inject: inject, Logger: log,
	})
	if err != nil {
		return err
	}
	defer func() {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
		defer cancel()
		if err := a.Close(stop); err != nil {
			log.Warn("not everything of the program was published", "error", err)
		}
	}()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = nursery.Environ(os.Environ())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return runForwarding(cmd, term.IsTerminal(int(os.Stdin.Fd())))
}

// runForwarding runs a program, sends it the signals that come, and returns its end.
func runForwarding(cmd *exec.Cmd, terminal bool) error {
	signals, stop := forwardedSignals(terminal)
	defer stop()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("run %s: %w", cmd.Path, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case s := <-signals:
			_ = cmd.Process.Signal(s)
		case err := <-ended:
			return endOf(cmd, err)
		}
	}
}

// endOf turns the end of a program into that of natscope: its exit code, or, as
// shells do it, 128 and the number of the signal that ended it.
func endOf(cmd *exec.Cmd, err error) error {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &exit):
		return fmt.Errorf("run %s: %w", cmd.Path, err)
	}
	if n := signalNumber(exit.ProcessState); n > 0 {
		return exitStatus(128 + n)
	}
	return exitStatus(exit.ExitCode())
}
