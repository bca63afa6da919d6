package main

import (
	"encoding/base64"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/natscope/natscope/query"
)

func newBody() *cobra.Command {
	var f askFlags
	var q query.BodyRequest
	var request bool
	c := f.command("body id", "Print a captured body", `Prints what was captured of the body of a response, or with --request of the body that
was sent: decompressed and as UTF-8, or with --raw byte by byte as it was captured.
Ids are those that net prints, such as orders-1#12. With --range-bytes it prints a range.`, cobra.ExactArgs(1), func(a *asker, args []string) error {
		q := q
		q.ID = query.RequestID(args[0])
		if request {
			q.Direction = "request"
		}
		return a.printBody(q)
	})
	fl := c.Flags()
	fl.BoolVar(&request, "request", false, "the body that was sent, not the one that came back")
	fl.BoolVar(&q.Raw, "raw", false, "the bytes as they were captured")
	fl.BoolVar(&q.Wait, "wait", false, "wait for the end of a body that still runs")
	fl.Int64Var(&q.Offset, "offset", 0, "first byte to print")
	fl.Int64Var(&q.Limit, "range-bytes", 0, "how many bytes to print (default: all)")
	return c
}

// printBody prints a body range by range.
func (a *asker) printBody(q query.BodyRequest) error {
	if a.json {
		b, err := ask(a, a.Body, q)
		if err != nil {
			return err
		}
		return a.value(b)
	}
	rest := q.Limit
	ends := true
	// The progress of all of it is of more use than that of its parts, unless the body itself is on the screen.
	p := a.progress
	if a.terminal {
		p = nil
	} else {
		a.progress = nil
	}
	defer p.done()
	for {
		q.Limit = query.MaxBodyBytes
		if rest > 0 {
			q.Limit = min(rest, q.Limit)
		}
		b, err := ask(a, a.Body, q)
		if err != nil {
			return err
		}
		data := []byte(b.Text)
		if b.Base64 != "" {
			if data, err = base64.StdEncoding.DecodeString(b.Base64); err != nil {
				return err
			}
			if a.terminal {
				return fmt.Errorf("the body is %s of binary data (%s); send it to a file, as in natscope body %s > file", bytesText(b.Size), b.MIMEType, q.ID)
			}
		}
		if a.terminal {
			data = []byte(harmless(string(data), true))
		}
		if _, err := a.w.Write(data); err != nil {
			return err
		}
		if len(data) > 0 {
			ends = data[len(data)-1] == '\n'
		}
		q.Offset = b.Offset + b.Length
		p.say("%s of %s", bytesText(q.Offset), bytesText(max(b.Size, q.Offset)))
		if rest > 0 {
			if rest -= b.Length; rest <= 0 {
				break
			}
		}
		if !b.More || b.Length == 0 {
			a.bodyNote(&b)
			break
		}
	}
	if a.terminal && !ends {
		_, _ = io.WriteString(a.w, "\n")
	}
	return nil
}

// bodyNote tells a person what is missing.
func (a *asker) bodyNote(b *query.BodyAnswer) {
	if !a.terminal {
		return
	}
	switch {
	case b.Size == 0 && b.Total == 0:
		a.printf("%s", a.paint(dim, "(no body)"))
	case b.Truncated:
		a.printf("\n%s", a.paint(yellow, "-- "+bytesText(b.Captured)+" of "+bytesText(b.Total)+" were captured --"))
	case b.Running:
		a.printf("\n%s", a.paint(yellow, "-- the body has not ended --"))
	}
}
