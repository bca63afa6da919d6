// Command consume prints what programs publish, straight from the subjects, with
// nothing but NATS and package subjects: a beginning for consumers of your own.
//
//	go run ./examples/consume nats://127.0.0.1:4222 'natscope.dev.rec.*.*.event.>'
//
// What was published before it started stays in the stream NATSCOPE_REC_<space>,
// from which a JetStream consumer reads it in the same way. Programs that want
// state and not records ask the query service instead; docs/query.md says how.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/nats-io/nats.go"

	"github.com/natscope/natscope/subjects"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	url, filter := nats.DefaultURL, subjects.RecordsOf(subjects.DefaultSpace)
	if len(os.Args) > 1 {
		url = os.Args[1]
	}
	if len(os.Args) > 2 {
		filter = os.Args[2]
	}
	if err := consume(ctx, url, filter); err != nil {
		fmt.Fprintln(os.Stderr, "consume:", err)
		os.Exit(1)
	}
}

// consume prints a line for each record until ctx ends.
func consume(ctx context.Context, url, filter string) error {
	conn, err := nats.Connect(url, nats.MaxReconnects(-1))
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.Subscribe(filter, func(m *nats.Msg) {
		name, err := subjects.ParseRecord(m.Subject)
		if err != nil {
			return // not a subject of records
		}
		frame, err := subjects.DecodeFrame(subjects.Header(m.Header), m.Data)
		if err != nil {
			fmt.Fprintln(os.Stderr, "consume:", m.Subject, err)
			return
		}
		for i, r := range frame.Records {
			fmt.Printf("%s %s %d %s %s\n", name.Source, name.Plane, uint64(frame.Seq)+uint64(i), r.Topic, r.Data)
		}
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "listening on", filter)
	<-ctx.Done()
	return nil
}
