package httpcap_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/producer/httpcap"
	"github.com/natscope/natscope/producer/internal/natstest"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
)

// TestThroughNATS captures with a real producer and folds what has reached the streams.
func TestThroughNATS(t *testing.T) {
	nats := natstest.Start(t)
	storage := subjects.Storage{Memory: true}
	nats.Streams(subjects.DefaultSpace, storage)
	p, err := producer.Start(producer.Options{Service: "buyer", Instance: "test", URL: nats.URL()})
	if err != nil {
		t.Fatal(err)
	}
	web := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		io.WriteString(w, strings.ToUpper(string(body)))
	})
	c := http.Client{Transport: httpcap.Transport(p, bare(t))}
	large := strings.Repeat("many words ", 20_000)
	for _, body := range []string{"small", large} {
		resp, err := c.Post(web.URL, "text/plain", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	if _, err := c.Get("http://127.0.0.1:1/"); err == nil {
		t.Fatal("port 1 answers")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := p.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	generation := string(p.Generation())
	if err := p.Close(ctx); err != nil {
		t.Fatal(err)
	}

	state := foldStream(t, nats.Read(streamName(subjects.RecordStream(subjects.DefaultSpace, storage))))
	if len(state.Requests) != 3 {
		t.Fatalf("%d requests, want 3", len(state.Requests))
	}
	bodies := joinBodies(t, nats.Read(streamName(subjects.BodyStream(subjects.DefaultSpace, storage))))
	for i, want := range []string{"small", large} {
		r := state.Requests[i]
		if r.Generation != generation || r.Ending != network.Finished || r.End.Captured != int64(len(want)) {
			t.Errorf("request %d: %s %s %+v", i, r.Generation, r.Ending, r.End)
		}
		if got := bodies[string(r.ID())+".req"]; got != want {
			t.Errorf("request %d: %d bytes of its request body", i, len(got))
		}
		if got := bodies[string(r.ID())+".res"]; got != strings.ToUpper(want) {
			t.Errorf("request %d: %d bytes of its response body", i, len(got))
		}
	}
	if r := state.Requests[2]; r.Ending != network.Failed || !strings.Contains(r.Error.Text, "refused") {
		t.Errorf("the refused request: %s %+v", r.Ending, r.Error)
	}
}

func streamName(c jetstream.StreamConfig) string { return c.Name }

// foldStream folds the net records of a stream as every reader does.
func foldStream(t *testing.T, messages []natstest.Message) *network.State {
	t.Helper()
	var s network.State
	for _, m := range messages {
		subject, err := subjects.ParseRecord(m.Subject)
		if err != nil {
			t.Fatal(err)
		}
		if subject.Plane != subjects.PlaneNet {
			continue
		}
		f, err := subjects.DecodeFrame(m.Header, m.Data)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range f.Records {
			if c, err := s.Apply(string(subject.Generation), r.T, r.Topic, r.Data, network.Keep{}); err != nil || c == nil {
				t.Errorf("%s %s: change %v, %v", r.Topic, r.Data, c, err)
			}
		}
	}
	return &s
}

// joinBodies joins the chunks of every body that ends complete.
func joinBodies(t *testing.T, messages []natstest.Message) map[string]string {
	t.Helper()
	out := make(map[string]string)
	for _, m := range messages {
		subject, err := subjects.ParseBody(m.Subject)
		if err != nil {
			t.Fatal(err)
		}
		c, err := subjects.ParseBodyChunk(m.Header)
		if err != nil {
			t.Fatal(err)
		}
		key := string(subject.Request) + "." + string(subject.Direction)
		if c.Offset != int64(len(out[key])) {
			t.Errorf("%s: a chunk at %d after %d bytes", key, c.Offset, len(out[key]))
		}
		out[key] += string(m.Data)
		if c.End != "" && c.End != subjects.BodyComplete && len(out[key]) > 0 {
			t.Errorf("%s ended %s", key, c.End)
		}
	}
	return out
}
