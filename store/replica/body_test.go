package replica

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/natscope/natscope/store/internal/natstest"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
)

// chunk publishes one message of a body.
func chunk(t testing.TB, js jetstream.JetStream, s subjects.BodySubject, c subjects.BodyChunk, data string) {
	t.Helper()
	if _, err := js.PublishMsg(t.Context(), &nats.Msg{Subject: s.String(), Header: nats.Header(c.Header()), Data: []byte(data)}); err != nil {
		t.Fatal(err)
	}
}

func TestBody(t *testing.T) {
	srv := natstest.Start(t)
	js := srv.JetStream()
	streams(t, js, subjects.Storage{})
	src := natstest.NewSource(t, js, "t", "shop")
	src.Open()
	l := subjects.Limits{ResponseBodyBytes: 20, Heartbeat: time.Minute}
	of := func(id network.RequestID) subjects.BodySubject {
		return subjects.BodySubject{Space: "t", Source: "shop", Generation: src.Generation, Request: id, Direction: subjects.ResponseBody}
	}
	type piece struct {
		c    subjects.BodyChunk
		data string
	}
	tests := []struct {
		id     network.RequestID
		pieces []piece
		end    *network.End
		want   Body
		err    error
	}{
		{id: "whole", pieces: []piece{{subjects.BodyChunk{}, "hello "}, {subjects.BodyChunk{Offset: 6}, "world"}, {subjects.BodyChunk{Offset: 11, End: subjects.BodyComplete, Total: 11}, ""}},
			want: Body{Data: []byte("hello world"), End: subjects.BodyComplete, Total: 11, Complete: true}},
		{id: "doubled", pieces: []piece{{subjects.BodyChunk{}, "hello "}, {subjects.BodyChunk{}, "hello "}, {subjects.BodyChunk{Offset: 3, End: subjects.BodyComplete, Total: 8}, "lo ab"}},
			want: Body{Data: []byte("hello ab"), End: subjects.BodyComplete, Total: 8, Complete: true}},
		{id: "empty", pieces: []piece{{subjects.BodyChunk{End: subjects.BodyComplete}, ""}},
			want: Body{End: subjects.BodyComplete, Complete: true}},
		{id: "torn", pieces: []piece{{subjects.BodyChunk{}, "abc"}, {subjects.BodyChunk{Offset: 5}, "fgh"}, {subjects.BodyChunk{Offset: 8, End: subjects.BodyComplete, Total: 8}, ""}},
			want: Body{Data: []byte("abc"), End: subjects.BodyTruncated, Total: 8}},
		{id: "large", pieces: []piece{{subjects.BodyChunk{}, "0123456789abcdef"}, {subjects.BodyChunk{Offset: 16, End: subjects.BodyComplete, Total: 26}, "ghijklmnop"}},
			want: Body{Data: []byte("0123456789abcdefghij"), End: subjects.BodyTruncated, Total: 26}},
		{id: "aborted", pieces: []piece{{subjects.BodyChunk{}, "abc"}}, end: &network.End{ID: "aborted", Bytes: 3, Captured: 3, Error: "reset"},
			want: Body{Data: []byte("abc"), End: subjects.BodyAborted, Total: 3}},
		{id: "headless", pieces: []piece{{subjects.BodyChunk{Offset: 6}, "world"}}, err: ErrBodyEvicted},
		{id: "evicted", end: &network.End{ID: "evicted", Bytes: 3, Captured: 3}, err: ErrBodyEvicted},
		{id: "none", end: &network.End{ID: "none"}, err: ErrNoBody},
	}
	for _, tt := range tests {
		src.Send(subjects.PlaneNet, network.TopicStart, network.Start{ID: tt.id, URL: "u"})
		for _, p := range tt.pieces {
			chunk(t, js, of(tt.id), p.c, p.data)
		}
		if tt.end != nil {
			src.Send(subjects.PlaneNet, network.TopicEnd, *tt.end)
		}
	}
	r := open(t, srv, l)
	for _, tt := range tests {
		t.Run(string(tt.id), func(t *testing.T) {
			t.Parallel()
			got, err := r.Body(t.Context(), of(tt.id))
			if !errors.Is(err, tt.err) || err != nil && tt.err == nil {
				t.Fatalf("error %v, want %v", err, tt.err)
			}
			if !bytes.Equal(got.Data, tt.want.Data) || got.End != tt.want.End || got.Total != tt.want.Total || got.Complete != tt.want.Complete {
				t.Errorf("got %q %+v, want %q %+v", got.Data, got, tt.want.Data, tt.want)
			}
		})
	}
}

func TestFollowBodyThroughARestart(t *testing.T) {
	srv := natstest.Start(t)
	js := srv.JetStream()
	streams(t, js, subjects.Storage{})
	src := natstest.NewSource(t, js, "t", "shop")
	src.Open()
	src.Send(subjects.PlaneNet, network.TopicStart, network.Start{ID: "r", URL: "u"})
	r := open(t, srv, subjects.Limits{Heartbeat: time.Minute})
	s := subjects.BodySubject{Space: "t", Source: "shop", Generation: src.Generation, Request: "r", Direction: subjects.ResponseBody}
	parts := make(chan string, 16)
	ended := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	go func() {
		ended <- r.FollowBody(ctx, s, func(p BodyPart) error {
			parts <- fmt.Sprintf("%d:%s%s", p.Offset, p.Data, p.End)
			return nil
		})
	}()
	want := func(text string) {
		t.Helper()
		select {
		case got := <-parts:
			if got != text {
				t.Fatalf("got part %q, want %q", got, text)
			}
		case err := <-ended:
			t.Fatalf("ended before %q: %v", text, err)
		case <-ctx.Done():
			t.Fatalf("no part %q", text)
		}
	}
	chunk(t, js, s, subjects.BodyChunk{}, "one")
	want("0:one")
	srv.Down()
	srv.Up()
	natstest.Until(t, 5*time.Second, "the publisher is back", func() bool { return js.Conn().IsConnected() })
	chunk(t, js, s, subjects.BodyChunk{Offset: 3, End: subjects.BodyComplete, Total: 6}, "two")
	want("3:twocomplete")
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

func TestBodyDeadline(t *testing.T) {
	srv := natstest.Start(t)
	js := srv.JetStream()
	streams(t, js, subjects.Storage{})
	src := natstest.NewSource(t, js, "t", "shop")
	src.Open()
	src.Send(subjects.PlaneNet, network.TopicStart, network.Start{ID: "r", URL: "u"})
	r := open(t, srv, subjects.Limits{Heartbeat: time.Minute})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := r.Body(ctx, subjects.BodySubject{Space: "t", Source: "shop", Generation: src.Generation, Request: "r", Direction: subjects.ResponseBody})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("body of a running request: %v", err)
	}
}

// A body may come after the end of its request, but one whose request ended long
// ago is answered at once: an export asks for thousands that are evicted.
func TestBodyThatIsLateAndBodiesThatAreGone(t *testing.T) {
	srv := natstest.Start(t)
	js := srv.JetStream()
	streams(t, js, subjects.Storage{})
	src := natstest.NewSource(t, js, "t", "shop")
	src.Open()
	subject := func(id network.RequestID) subjects.BodySubject {
		return subjects.BodySubject{Space: "t", Source: "shop", Generation: src.Generation, Request: id, Direction: subjects.ResponseBody}
	}
	for i := range 10 {
		id := network.RequestID(fmt.Sprintf("old%d", i))
		src.Send(subjects.PlaneNet, network.TopicStart, network.Start{ID: id, URL: "u"})
		src.Send(subjects.PlaneNet, network.TopicEnd, network.End{ID: id, Bytes: 3, Captured: 3})
	}
	src.Send(subjects.PlaneNet, network.TopicStart, network.Start{ID: "new", URL: "u"})
	end := src.Record(network.TopicEnd, network.End{ID: "new", Bytes: 3, Captured: 3})
	end.T = float64(time.Now().UnixMilli()) - 1.7e12
	src.Frame(subjects.PlaneNet, 0, end)
	r := open(t, srv, subjects.Limits{Heartbeat: time.Minute})
	late := time.AfterFunc(2*bodyCheck, func() {
		m := &nats.Msg{Subject: subject("new").String(), Header: nats.Header(subjects.BodyChunk{End: subjects.BodyComplete, Total: 3}.Header()), Data: []byte("abc")}
		if _, err := js.PublishMsg(context.Background(), m); err != nil {
			t.Error(err)
		}
	})
	defer late.Stop()
	if b, err := r.Body(t.Context(), subject("new")); err != nil || string(b.Data) != "abc" || !b.Complete {
		t.Errorf("the late body is %q, %+v, %v", b.Data, b, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*bodyPatience)
	defer cancel()
	for i := range 10 {
		if _, err := r.Body(ctx, subject(network.RequestID(fmt.Sprintf("old%d", i)))); !errors.Is(err, ErrBodyEvicted) {
			t.Fatalf("body %d: %v", i, err)
		}
	}
}
