package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/natscope/natscope/store/doctor"
	"github.com/natscope/natscope/subjects"
)

// errSick says that a check of the doctor failed; the findings were printed.
var errSick = errors.New("something does not work; see what failed above")

// doctorFlags are the flags of natscope doctor.
type doctorFlags struct {
	connectFlags
	space, output string
	wait          time.Duration
}

func newDoctor() *cobra.Command {
	var f doctorFlags
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Examine NATS, streams, stores and sources, and say what to fix",
		Long: `Looks at the NATS server, at the streams and the state bucket of a space, at the
stores that keep it and at the sources in it. It changes nothing. The exit code is 1
when a check fails.`,
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
	fl.StringVar(&f.space, "space", string(subjects.DefaultSpace), "space to examine")
	fl.StringVarP(&f.output, "output", "o", "table", "how to print: table or json")
	fl.DurationVar(&f.wait, "wait", 3*time.Second, "how long to listen for heartbeats")
	return c
}

func (f *doctorFlags) check() error {
	switch {
	case f.output != "table" && f.output != "json":
		return fmt.Errorf("--output %q: use table or json", f.output)
	case !subjects.IsToken(f.space):
		return fmt.Errorf("--space %q is not a token of a-z, 0-9, _ and -", f.space)
	}
	return f.connectFlags.check()
}

func (f *doctorFlags) run(ctx context.Context, stdout, stderr io.Writer) error {
	conn, err := f.connectOnce("natscope doctor", newLog(stderr, false))
	if err != nil {
		return err
	}
	defer conn.Close()
	found := doctor.Examine(ctx, conn, subjects.Space(f.space), f.wait)
	if err := f.print(stdout, found); err != nil {
		return err
	}
	for _, x := range found {
		if x.Level == doctor.Fail {
			return errSick
		}
	}
	return nil
}

func (f *doctorFlags) print(w io.Writer, found []doctor.Finding) error {
	if f.output == "json" {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(found)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, x := range found {
		fmt.Fprintf(t, "%s\t%s\t%s\n", x.Level, x.Check, x.Text)
		if x.Fix != "" {
			fmt.Fprintf(t, "\t\t-> %s\n", x.Fix)
		}
	}
	return t.Flush()
}
