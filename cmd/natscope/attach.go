package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/natscope/natscope/producer/v8"
	"github.com/natscope/natscope/subjects"
)

// attachFlags are the flags of natscope attach.
type attachFlags struct {
	connectFlags
	injectFlags
	v8              []string
	space, instance string
	verbose         bool
}

func newAttach() *cobra.Command {
	var f attachFlags
	c := &cobra.Command{
		Use:   "attach --v8 HOST:PORT",
		Short: "Make running Node, Deno and Chromium programs sources, through their inspectors",
		Long: `Finds programs behind the inspectors of their JavaScript engines and makes each a
source: Node (started with --inspect, or told by "kill -USR1 PID") and its worker
threads, Deno, and the pages and workers of a Chromium with --remote-debugging-port.
One that restarts is attached to again. What --inject names is put into Node programs
while they are attached to, and taken out again; otherwise nothing changes in them.

--v8 takes HOST:PORT, a range such as 127.0.0.1:9229-9240, or a directory of files
whose first lines are such addresses; it may be repeated.`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return usageError(err)
			}
			return f.run(c.Context(), c.ErrOrStderr())
		},
	}
	fl := c.Flags()
	f.connectFlags.register(fl)
	f.injectFlags.register(fl)
	fl.StringArrayVar(&f.v8, "v8", nil, "inspector to attach to: HOST:PORT, a range of ports, or a directory of files with addresses (repeatable)")
	fl.StringVar(&f.space, "space", string(subjects.DefaultSpace), "space of the sources")
	fl.StringVar(&f.instance, "instance", "", "what tells programs of one name apart (default: the name of the machine)")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "log details")
	return c
}

func (f *attachFlags) check() error {
	if len(f.v8) == 0 {
		return errors.New("--v8 says what to attach to, as in --v8 127.0.0.1:9229")
	}
	if !subjects.IsToken(f.space) {
		return fmt.Errorf("--space %q is not a token of a-z, 0-9, _ and -; use for example %q", f.space, subjects.Token(f.space))
	}
	if _, _, err := f.places(); err != nil {
		return err
	}
	if _, err := f.injectFlags.options(); err != nil {
		return err
	}
	return f.connectFlags.check()
}

// places tells directories from addresses.
func (f *attachFlags) places() (endpoints, directories []string, err error) {
	for _, x := range f.v8 {
		if st, err := os.Stat(x); err == nil && st.IsDir() {
			directories = append(directories, x)
			continue
		}
		if _, err := v8.ParseEndpoints(x); err != nil {
			return nil, nil, fmt.Errorf("--v8: %w", err)
		}
		endpoints = append(endpoints, x)
	}
	return endpoints, directories, nil
}

// run attaches until ctx ends.
func (f *attachFlags) run(ctx context.Context, stderr io.Writer) (err error) {
	log := newLog(stderr, f.verbose)
	conn, err := f.connect(ctx, "natscope attach", log)
	if err != nil {
		return err
	}
	defer conn.Close()
	endpoints, directories, err := f.places()
	if err != nil {
		return err
	}
	inject, err := f.injectFlags.options()
	if err != nil {
		return err
	}
	o := v8.Options{Endpoints: endpoints, Inject: inject, Instance: f.instance, Space: subjects.Space(f.space), Conn: conn, Logger: log}
	var all []*v8.Attacher
	defer func() {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
		defer cancel()
		for _, a := range all {
			err = errors.Join(err, a.Close(stop))
		}
	}()
	for i := range max(len(directories), 1) {
		if i < len(directories) {
			o.Directory = directories[i]
		}
		a, err := v8.Attach(o)
		if err != nil {
			return err
		}
		all = append(all, a)
		o.Endpoints = nil
	}
	<-ctx.Done()
	log.Info("detaching")
	return nil
}
