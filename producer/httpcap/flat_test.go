package httpcap_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/producer/httpcap"
	"github.com/natscope/natscope/producer/internal/natstest"
	"github.com/natscope/natscope/subjects"
)

// TestFlatMemory streams bodies far beyond every limit through a real producer
// and looks at the memory: it depends on the limits, not on the body.
func TestFlatMemory(t *testing.T) {
	nats := natstest.Start(t)
	nats.Streams(subjects.DefaultSpace, subjects.Storage{})
	p, err := producer.Start(producer.Options{Service: "streamer", Instance: "test", URL: nats.URL(),
		Limits: subjects.Limits{RequestBodyBytes: 1 << 20, ResponseBodyBytes: 1 << 20, BodyQueueBytes: 4 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(httpcap.Handler(p, http.HandlerFunc(streamHandler)))
	defer srv.Close()
	c := &http.Client{Transport: httpcap.Transport(p, bare(t))}
	for _, upload := range []bool{true, false} {
		before := stream(t, c, srv.URL, upload, 16<<20)
		after := stream(t, c, srv.URL, upload, 256<<20)
		if after > before+32<<20 {
			t.Errorf("upload %t: the heap had up to %d MiB for 16 MiB, and %d MiB for 256 MiB", upload, before>>20, after>>20)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := p.Close(ctx); err != nil {
		t.Fatal(err)
	}
}
