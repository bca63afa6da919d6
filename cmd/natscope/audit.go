package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/realm"
)

// auditFlags are the flags of natscope audit.
type auditFlags struct {
	connectFlags
	space  string
	since  time.Duration
	follow bool
	output string
}

func newAudit() *cobra.Command {
	var f auditFlags
	c := &cobra.Command{
		Use:   "audit",
		Short: "Show who changed what: evaluations, edits and debugger commands",
		Long: `Shows the audit of a space: each command that could change a program, with the time,
who asked for it, through which gateway, and for which source. A command is in the
audit before it is sent, whether or not it succeeded.`,
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
	fl.StringVar(&f.space, "space", string(subjects.DefaultSpace), "space to look at")
	fl.DurationVar(&f.since, "since", 24*time.Hour, "how far back to look; 0 means to the beginning")
	fl.BoolVarP(&f.follow, "follow", "f", false, "go on as commands come")
	fl.StringVarP(&f.output, "output", "o", "table", "table or json (one object a line)")
	return c
}

func (f *auditFlags) check() error {
	switch {
	case !subjects.IsToken(f.space):
		return fmt.Errorf("--space %q is not a token of a-z, 0-9, _ and -; use for example %q", f.space, subjects.Token(f.space))
	case f.output != "table" && f.output != "json":
		return fmt.Errorf("--output %q is unknown; use table or json", f.output)
	case f.since < 0:
		return errors.New("--since must not be negative")
	}
	return f.connectFlags.check()
}

func (f *auditFlags) run(ctx context.Context, stdout, stderr io.Writer) error {
	conn, err := f.connectOnce("natscope audit", newLog(stderr, false))
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	stream, err := js.Stream(ctx, subjects.AuditStreamName(subjects.Space(f.space)))
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return fmt.Errorf("the space %s has no audit at %s; is a natscope store running for it?", f.space, f.where())
	}
	if err != nil {
		return fmt.Errorf("audit of space %s: %w", f.space, err)
	}
	last := stream.CachedInfo().State.LastSeq
	config := jetstream.OrderedConsumerConfig{FilterSubjects: []string{subjects.AuditsOf(subjects.Space(f.space))}}
	if f.since > 0 {
		from := time.Now().Add(-f.since)
		config.DeliverPolicy, config.OptStartTime = jetstream.DeliverByStartTimePolicy, &from
	}
	consumer, err := stream.OrderedConsumer(ctx, config)
	if err != nil {
		return fmt.Errorf("audit of space %s: %w", f.space, err)
	}
	return f.print(ctx, consumer, last, stdout)
}

// print prints what the consumer brings: all up to last, or until ctx ends.
func (f *auditFlags) print(ctx context.Context, consumer jetstream.Consumer, last uint64, stdout io.Writer) error {
	out := newAuditWriter(stdout, f.output)
	pending := consumer.CachedInfo().NumPending
	for seq := uint64(0); f.follow || pending > 0 && seq < last; {
		if pending == 0 {
			// What comes from now on comes one by one.
			if err := out.flush(); err != nil {
				return err
			}
		}
		m, err := consumer.Next(jetstream.FetchMaxWait(time.Second))
		switch {
		case ctx.Err() != nil:
			return out.flush()
		case errors.Is(err, jetstream.ErrMsgIteratorClosed):
			return err
		case errors.Is(err, nats.ErrTimeout) && f.follow:
			continue
		case errors.Is(err, nats.ErrTimeout):
			// The rest left the stream by its age meanwhile.
			return out.flush()
		case err != nil:
			return errors.Join(out.flush(), fmt.Errorf("audit of space %s: %w; start again to go on", f.space, err))
		}
		meta, err := m.Metadata()
		if err != nil {
			return err
		}
		seq, pending = meta.Sequence.Stream, meta.NumPending
		if err := out.write(m.Data()); err != nil {
			return err
		}
		if pending == 0 && !f.follow {
			break
		}
	}
	return out.flush()
}

// auditWriter prints records as a table or as they are.
type auditWriter struct {
	json  bool
	plain io.Writer
	table *tabwriter.Writer
	lines int
}

func newAuditWriter(w io.Writer, format string) *auditWriter {
	return &auditWriter{json: format == "json", plain: w, table: tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)}
}

// maxShown is how many characters of parameters a line of the table shows.
const maxShown = 80

// write prints one record.
func (a *auditWriter) write(data []byte) error {
	if a.json {
		_, err := fmt.Fprintf(a.plain, "%s\n", data)
		return err
	}
	var r realm.Audit
	if err := json.Unmarshal(data, &r); err != nil {
		// Something was done, and whoever reads an audit has to know.
		r = realm.Audit{Method: "(cannot be read; see -o json)"}
	}
	if a.lines == 0 {
		if _, err := fmt.Fprintln(a.table, "TIME\tWHO\tGATEWAY\tSOURCE\tCOMMAND\tPARAMETERS"); err != nil {
			return err
		}
	}
	a.lines++
	params := []rune(strings.Join(strings.Fields(printable(string(r.Params))), " "))
	if r.Omitted > 0 {
		params = []rune(fmt.Sprintf("(%d bytes)", r.Omitted))
	}
	if len(params) > maxShown {
		params = append(params[:maxShown-1], '…')
	}
	_, err := fmt.Fprintf(a.table, "%s\t%s\t%s\t%s\t%s\t%s\n", time.UnixMilli(int64(r.Time)).Format("2006-01-02 15:04:05.000"),
		printable(r.Who), printable(r.Gateway), printable(r.Source), printable(string(r.Method)), string(params))
	return err
}

// flush prints what waits for its column's width.
func (a *auditWriter) flush() error {
	return a.table.Flush()
}

// printable keeps what strangers wrote from moving the cursor of a terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
}
