package httpcap_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"

	"github.com/natscope/natscope/producer/httpcap"
)

// sizes are those of the response bodies that are compared.
var sizes = []struct {
	name string
	n    int
}{{"0B", 0}, {"1KiB", 1 << 10}, {"1MiB", 1 << 20}}

// discard is a fake that counts only: what is left is what capture costs the program.
func discard() *httpcap.Fake {
	f := httpcap.NewFake()
	f.Discard = true
	return f
}

// BenchmarkClient compares calls over loopback: bare net/http, captured, and with
// otelhttp, which records to nobody, as it does without an SDK.
func BenchmarkClient(b *testing.B) {
	for _, size := range sizes {
		body := bytes.Repeat([]byte("x"), size.n)
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/octet-stream")
			w.Header().Set("Content-Length", strconv.Itoa(len(body)))
			w.Write(body)
		}))
		for _, kind := range []string{"bare", "httpcap", "otelhttp"} {
			b.Run(size.name+"/"+kind, func(b *testing.B) {
				tr := http.DefaultTransport.(*http.Transport).Clone()
				tr.Proxy = nil
				defer tr.CloseIdleConnections()
				var rt http.RoundTripper = tr
				switch kind {
				case "httpcap":
					rt = httpcap.NewTransport(discard(), tr)
				case "otelhttp":
					rt = otelhttp.NewTransport(tr)
				}
				b.SetBytes(int64(size.n))
				fetchAll(b, &http.Client{Transport: rt}, srv.URL)
			})
		}
		srv.Close()
	}
}

// BenchmarkServer compares handlers in the same way.
func BenchmarkServer(b *testing.B) {
	for _, size := range sizes {
		body := bytes.Repeat([]byte("x"), size.n)
		h := http.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/octet-stream")
			w.Header().Set("Content-Length", strconv.Itoa(len(body)))
			w.Write(body)
		}))
		for _, kind := range []string{"bare", "httpcap", "otelhttp"} {
			b.Run(size.name+"/"+kind, func(b *testing.B) {
				served := h
				switch kind {
				case "httpcap":
					served = httpcap.NewHandler(discard(), h)
				case "otelhttp":
					served = otelhttp.NewHandler(h, "bench")
				}
				srv := httptest.NewServer(served)
				defer srv.Close()
				tr := http.DefaultTransport.(*http.Transport).Clone()
				tr.Proxy = nil
				defer tr.CloseIdleConnections()
				b.SetBytes(int64(size.n))
				fetchAll(b, &http.Client{Transport: tr}, srv.URL)
			})
		}
	}
}

func fetchAll(b *testing.B, c *http.Client, url string) {
	buf := make([]byte, 64<<10)
	b.ReportAllocs()
	spent := processorTime(b)
	defer func() { b.ReportMetric(float64(processorTime(b)-spent)/float64(b.N)/1e3, "cpu-µs/op") }()
	for b.Loop() {
		resp, err := c.Get(url)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, resp.Body, buf); err != nil {
			b.Fatal(err)
		}
		resp.Body.Close()
	}
}

// processorTime is what the process has used so far. Other than the time on the
// wall it says the same on a machine that is busy with other things.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// endless is a body of n bytes that is nowhere in memory.
type endless struct{ n int64 }

func (e *endless) Read(p []byte) (int, error) {
	if e.n == 0 {
		return 0, io.EOF
	}
	n := int(min(int64(len(p)), e.n))
	e.n -= int64(n)
	return n, nil
}

// stream uploads or downloads n bytes through a client, and returns the most heap that was in use.
func stream(t testing.TB, c *http.Client, url string, upload bool, n int64) (peak uint64) {
	t.Helper()
	var m runtime.MemStats
	look := func() {
		runtime.ReadMemStats(&m)
		peak = max(peak, m.HeapInuse)
	}
	if upload {
		r, w := io.Pipe()
		go func() {
			buf := make([]byte, 64<<10)
			for i, e := 0, (&endless{n}); ; i++ {
				k, err := e.Read(buf)
				if i%1024 == 0 {
					look()
				}
				if _, werr := w.Write(buf[:k]); werr != nil || err != nil {
					w.Close()
					return
				}
			}
		}()
		resp, err := c.Post(url, "application/octet-stream", r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return peak
	}
	resp, err := c.Get(fmt.Sprintf("%s?n=%d", url, n))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	buf := make([]byte, 64<<10)
	var total int64
	for i := 0; ; i++ {
		k, err := resp.Body.Read(buf)
		if total += int64(k); i%1024 == 0 {
			look()
		}
		if err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if total != n {
		t.Fatalf("%d bytes, want %d", total, n)
	}
	return peak
}

// streamHandler drops what is uploaded and sends as much as is asked for.
func streamHandler(w http.ResponseWriter, r *http.Request) {
	buf := make([]byte, 64<<10)
	if r.Method == http.MethodPost {
		io.CopyBuffer(struct{ io.Writer }{io.Discard}, r.Body, buf)
		return
	}
	n, _ := strconv.ParseInt(r.URL.Query().Get("n"), 10, 64)
	io.CopyBuffer(struct{ io.Writer }{w}, &endless{n}, buf)
}

// BenchmarkStream moves 2 GiB in one body, captured on both sides and bare.
func BenchmarkStream(b *testing.B) {
	const size = 2 << 30
	for _, upload := range []bool{true, false} {
		for _, kind := range []string{"bare", "httpcap"} {
			name := "download/" + kind
			if upload {
				name = "upload/" + kind
			}
			b.Run(name, func(b *testing.B) {
				tr := http.DefaultTransport.(*http.Transport).Clone()
				tr.Proxy = nil
				defer tr.CloseIdleConnections()
				var rt http.RoundTripper = tr
				h := http.Handler(http.HandlerFunc(streamHandler))
				if kind == "httpcap" {
					rt, h = httpcap.NewTransport(discard(), tr), httpcap.NewHandler(discard(), h)
				}
				srv := httptest.NewServer(h)
				defer srv.Close()
				b.SetBytes(size)
				peak := uint64(0)
				for b.Loop() {
					peak = max(peak, stream(b, &http.Client{Transport: rt}, srv.URL, upload, size))
				}
				b.ReportMetric(float64(peak)/(1<<20), "heap-MiB")
			})
		}
	}
}
