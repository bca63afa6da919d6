package bench

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/producer/httpcap"
	"github.com/natscope/natscope/subjects"
)

// instant is a RoundTripper that answers at once, so that nothing but the capture costs time.
type instant struct{ body []byte }

func (t instant) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r, ContentLength: int64(len(t.body)),
		Header: http.Header{"Content-Type": {"application/json"}, "Date": {"Thu, 01 Jan 2026 00:00:00 GMT"}},
		Body:   io.NopCloser(bytes.NewReader(t.body)),
	}, nil
}

// seenRequests notes when DevTools is told of the end of each request.
type seenRequests struct {
	mu    sync.Mutex // guards all below
	clock *clock
	by    map[string]int
}

// see takes one message of a DevTools connection.
func (s *seenRequests) see(data []byte) {
	started := bytes.Contains(data, []byte(`"Network.requestWillBeSent"`))
	if !started && !bytes.Contains(data, []byte(`"Network.loadingFinished"`)) {
		return
	}
	_, rest, _ := bytes.Cut(data, []byte(`"requestId":"`))
	id, _, _ := bytes.Cut(rest, []byte(`"`))
	s.mu.Lock()
	defer s.mu.Unlock()
	if started {
		s.by[string(id)] = number(data, "/item?n=")
		return
	}
	s.clock.arrive(s.by[string(id)])
	delete(s.by, string(id))
}

// BenchmarkRequests captures 5000 requests a second in one process, bodies of
// 1 KiB included, while a DevTools client of a gateway is shown all of them, each
// with its start, response, data and end. The time is from the call until DevTools
// has the end of the request. "behind" is what is still to be shown when the last
// request has been made: it would grow with the length of the run if the gateway
// could not follow. The processor time is that of everything together: program,
// capture, NATS server, store, gateway and client; a machine with other work to do
// makes fewer requests than it is asked to, and that figure says how many it could.
func BenchmarkRequests(b *testing.B) {
	const perSecond, seconds, burst = 5000, 3, 25
	addr := startServer(b)
	js := jetStream(b, addr)
	streams(b, js, subjects.Storage{})
	startStore(b, addr, subjects.Storage{}, subjects.Limits{})
	p := startProducer(b, producer.Options{Service: "bench", URL: addr})
	client := &http.Client{Transport: httpcap.Transport(p, instant{[]byte(`{"pad":"` + strings.Repeat("x", 1014) + `"}`)})}
	seen := &seenRequests{clock: newClock(), by: make(map[string]int)}
	ws := dial(b, gateway(b, addr, subjects.Limits{}), seen.see)
	if err := ws.WriteMessage(websocket.TextMessage, []byte(`{"id":1,"method":"Network.enable"}`)); err != nil {
		b.Fatal(err)
	}
	var made, behind, rest, cost sample
	for b.Loop() {
		began, spent := time.Now(), processTime()
		pulse(perSecond*seconds/burst, burst*time.Second/perSecond, func() {
			for range burst {
				resp, err := client.Get("http://api.test/item?n=" + strconv.Itoa(seen.clock.leave()))
				if err != nil {
					b.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		})
		made.add(rate(perSecond*seconds, time.Since(began)))
		last := time.Now()
		seen.clock.mu.Lock()
		behind.add(float64(len(seen.clock.left)))
		seen.clock.mu.Unlock()
		seen.clock.wait(b)
		rest.add(float64(time.Since(last)) / float64(time.Millisecond))
		cost.add(float64(processTime()-spent) / float64(time.Microsecond) / (perSecond * seconds))
	}
	b.ReportMetric(made.median(), "requests/s")
	b.ReportMetric(seen.clock.took.quantile(0.5)/1000, "p50-ms")
	b.ReportMetric(seen.clock.took.quantile(0.99)/1000, "p99-ms")
	b.ReportMetric(behind.median(), "behind")
	b.ReportMetric(cost.median(), "cpu-µs/request")
	b.ReportMetric(rest.median(), "last-ms")
	s := p.Stats()
	b.ReportMetric(float64(s.Planes[subjects.PlaneNet].Dropped), "dropped")
	b.ReportMetric(float64(s.CutBodies), "cut-bodies")
	silent(b)
}
