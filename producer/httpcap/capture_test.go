package httpcap_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httputil"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/natscope/natscope/producer/httpcap"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
)

// roundTrip makes one captured request and reads the answer to its end.
func roundTrip(t *testing.T, rt http.RoundTripper, req *http.Request) []byte {
	t.Helper()
	resp, err := rt.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// echo answers with the request's body, after reading all of it: HTTP/1.1 does not do both at once.
func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Write(body)
}

// F1: a body that is neither read nor closed ends when the collector finds it.
func TestF1BodyNeverReadNorClosed(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "unread")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	tr, f := bare(t), httpcap.NewFake()
	ctx, cancel := context.WithCancel(t.Context())
	func() {
		if _, err := httpcap.NewTransport(f, tr).RoundTrip(get(t, s.URL).WithContext(ctx)); err != nil {
			t.Fatal(err)
		}
	}()
	eventually(t, "the dropped body ended", func() bool {
		runtime.GC()
		return slices.Contains(f.Topics(), network.TopicEnd)
	})
	r := one(t, f)
	if !r.End.Canceled || !strings.Contains(r.End.Error, "dropped") || r.End.Bytes != 0 || r.Received.Bytes != 0 {
		t.Errorf("end %+v, received %+v", r.End, r.Received)
	}
	cancel()
}

// A start is told before the server has even answered, headers before the body has come.
func TestRecordsComeAsThingsHappen(t *testing.T) {
	answer, more := make(chan struct{}), make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		<-answer
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: 1\n\n")
		w.(http.Flusher).Flush()
		<-more
		io.WriteString(w, "data: 2\n\n")
	})
	f := httpcap.NewFake()
	tr := bare(t)
	done := make(chan struct{})
	bodies := make(chan io.ReadCloser, 1)
	go func() {
		defer close(done)
		resp, err := httpcap.NewTransport(f, tr).RoundTrip(get(t, s.URL))
		if err != nil {
			t.Error(err)
			close(bodies)
			return
		}
		bodies <- resp.Body
	}()
	eventually(t, "the start", func() bool { return slices.Equal(f.Topics(), []string{"start"}) })
	close(answer)
	body := <-bodies
	<-done
	if body == nil {
		t.FailNow()
	}
	defer body.Close()
	if got := f.Topics(); !slices.Equal(got, []string{"start", "response"}) {
		t.Fatalf("records before the body was read: %v", got)
	}
	buf := make([]byte, 100)
	if _, err := body.Read(buf); err != nil {
		t.Fatal(err)
	}
	// Nobody reads on, and the event is told all the same.
	eventually(t, "the first event", func() bool { return slices.Equal(f.Topics(), []string{"start", "response", "message", "dataReceived"}) })
	close(more)
	if _, err := io.ReadAll(body); err != nil {
		t.Fatal(err)
	}
	if r := one(t, f); r.Ending != network.Finished || r.Received.Bytes != 18 || r.End.Bytes != 18 {
		t.Errorf("%+v, received %+v", r.End, r.Received)
	}
}

// Small reads are told together: 64 KiB or 100 ms at a time, and the rest at the end.
func TestDataReceivedIsCoalesced(t *testing.T) {
	const size = 1 << 20
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { w.Write(make([]byte, size)) })
	f := httpcap.NewFake()
	resp, err := httpcap.NewTransport(f, bare(t)).RoundTrip(get(t, s.URL))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	start, buf := time.Now(), make([]byte, 512)
	for err == nil {
		_, err = resp.Body.Read(buf)
	}
	most := size/(64<<10) + int(time.Since(start)/(100*time.Millisecond)) + 2
	n := 0
	for _, topic := range f.Topics() {
		if topic == network.TopicDataReceived {
			n++
		}
	}
	if n > most || n == 0 {
		t.Errorf("%d dataReceived records, want 1 to %d", n, most)
	}
	if r := one(t, f); r.Received.Bytes != size {
		t.Errorf("received %d, want %d", r.Received.Bytes, size)
	}
}

// F4: an endless response that the application reads and drops is captured up to
// the limit only.
func TestF4EndlessResponse(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		chunk := make([]byte, 64<<10)
		for {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	f := httpcap.NewFake()
	f.Max.ResponseBodyBytes = 1 << 20
	resp, err := httpcap.NewTransport(f, bare(t)).RoundTrip(get(t, s.URL))
	if err != nil {
		t.Fatal(err)
	}
	n, err := io.CopyN(io.Discard, resp.Body, 64<<20)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	r := one(t, f)
	if r.End.Captured != 1<<20 || r.End.Bytes < n || !r.End.Truncated || r.Ending != network.FinishedTruncated {
		t.Errorf("end %+v after %d bytes", r.End, n)
	}
}

// F7: a reverse proxy upgrades through the capturing transport.
func TestF7ReverseProxyUpgrade(t *testing.T) {
	backend := serve(t, func(w http.ResponseWriter, r *http.Request) { upgrade(&view{}, w, r) })
	target, err := url.Parse(backend.URL)
	if err != nil {
		t.Fatal(err)
	}
	f := httpcap.NewFake()
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport = httpcap.NewTransport(f, bare(t))
	front := serve(t, proxy.ServeHTTP)
	v := &view{}
	upgraded(t, v, bare(t), front.URL)
	if !strings.Contains(v.String(), `read "echo abc\n" <nil>`) {
		t.Errorf("the application saw:\n%s", v)
	}
	if r := one(t, f); r.Start.Value.Type != "fetch" || r.Response.Value.Status != 101 {
		t.Errorf("%+v", r)
	}
}

// F10: any bytes in a header value become valid UTF-8 that keeps them.
func TestF10HeaderBytes(t *testing.T) {
	var all []byte
	for b := 0x80; b <= 0xff; b++ {
		all = append(all, byte(b))
	}
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { w.Header().Set("X-Bytes", string(all)) })
	f := httpcap.NewFake()
	req := get(t, s.URL)
	req.Header.Set("X-Bytes", string(all))
	req.Header.Set("X-UTF8", "žluťoučký")
	roundTrip(t, httpcap.NewTransport(f, bare(t)), req)
	r := one(t, f)
	for _, hs := range [][]network.Header{r.Start.Value.Headers, r.Response.Value.RequestHeaders, r.Response.Value.Headers} {
		i := slices.IndexFunc(hs, func(h network.Header) bool { return h[0] == "X-Bytes" })
		if i < 0 {
			t.Fatalf("no X-Bytes in %v", hs)
		}
		var back []byte
		for _, c := range hs[i][1] {
			back = append(back, byte(c))
		}
		if !utf8.ValidString(hs[i][1]) || !bytes.Equal(back, all) {
			t.Errorf("%q", hs[i][1])
		}
	}
	if !slices.Contains(r.Start.Value.Headers, network.Header{"X-Utf8", "žluťoučký"}) {
		t.Errorf("UTF-8 was changed: %v", r.Start.Value.Headers)
	}
}

// F13: bodies are bytes, whatever the Content-Type says, also when the limit cuts a rune.
func TestF13BodiesAreBytes(t *testing.T) {
	for _, c := range []struct {
		name, mime string
		data       []byte
		limit      int64
	}{
		{"png", "image/png", []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"), 1 << 20},
		{"protobuf as text", "text/plain", []byte{0x08, 0x96, 0x01, 0xff, 0x00}, 1 << 20},
		{"latin 1", "text/html; charset=iso-8859-1", []byte("caf\xe9"), 1 << 20},
		{"utf 16", "text/plain; charset=utf-16", []byte{0xff, 0xfe, 'a', 0, 0xac, 0x20}, 1 << 20},
		{"cut in a rune", "text/plain; charset=utf-8", []byte("naïve café €"), 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", c.mime)
				echo(w, r)
			})
			f := httpcap.NewFake()
			f.Max.ResponseBodyBytes, f.Max.RequestBodyBytes = c.limit, c.limit
			req, err := http.NewRequest("POST", s.URL, bytes.NewReader(c.data))
			if err != nil {
				t.Fatal(err)
			}
			if got := roundTrip(t, httpcap.NewTransport(f, bare(t)), req); !bytes.Equal(got, c.data) {
				t.Fatalf("the application got %q", got)
			}
			r := one(t, f)
			want := c.data[:min(c.limit, int64(len(c.data)))]
			for _, d := range []subjects.Direction{subjects.RequestBody, subjects.ResponseBody} {
				if got, _, total := f.Captured(r.ID(), d).Content(); !bytes.Equal(got, want) || total != int64(len(c.data)) {
					t.Errorf("%s: %q of %d, want %q", d, got, total, want)
				}
			}
			if cut := len(want) < len(c.data); r.End.Truncated != cut || r.BodyEnd.Value.Truncated != cut {
				t.Errorf("truncated: response %t, request %t, want %t", r.End.Truncated, r.BodyEnd.Value.Truncated, cut)
			}
		})
	}
}

// F15: a multipart upload of a binary file is captured byte for byte.
func TestF15MultipartUpload(t *testing.T) {
	var form bytes.Buffer
	m := multipart.NewWriter(&form)
	part, err := m.CreateFormFile("file", "paper.pdf")
	if err != nil {
		t.Fatal(err)
	}
	part.Write([]byte("%PDF-1.7\n%\xe2\xe3\xcf\xd3\n\x00\xff\xfe"))
	m.Close()
	want := bytes.Clone(form.Bytes())
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if _, _, err := r.FormFile("file"); err != nil {
			t.Error(err)
		}
	})
	f := httpcap.NewFake()
	req, err := http.NewRequest("POST", s.URL, &form)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", m.FormDataContentType())
	roundTrip(t, httpcap.NewTransport(f, bare(t)), req)
	if got, reason, _ := f.Captured(one(t, f).ID(), "req").Content(); !bytes.Equal(got, want) || reason != subjects.BodyComplete {
		t.Errorf("%q, %s", got, reason)
	}
}

// F17: a huge upload through a pipe costs the limit and no more.
func TestF17HugeUpload(t *testing.T) {
	const size = 128 << 20
	received := make(chan int64, 1)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		received <- n
	})
	pr, pw := io.Pipe()
	go func() {
		chunk := make([]byte, 256<<10)
		for range size / len(chunk) {
			if _, err := pw.Write(chunk); err != nil {
				return
			}
		}
		pw.Close()
	}()
	f := httpcap.NewFake()
	f.Max.RequestBodyBytes = 1 << 20
	req, err := http.NewRequest("POST", s.URL, pr)
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	roundTrip(t, httpcap.NewTransport(f, bare(t)), req)
	runtime.ReadMemStats(&after)
	if n := <-received; n != size {
		t.Errorf("the server got %d bytes", n)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 32<<20 {
		t.Errorf("%d MiB were allocated for a capture of 1 MiB", grown>>20)
	}
	if b := one(t, f).BodyEnd.Value; b.Bytes != size || b.Captured != 1<<20 || !b.Truncated {
		t.Errorf("%+v", b)
	}
}

// F17: many bodies at a time, all told apart.
func TestF17ManyAtOnce(t *testing.T) {
	s := serve(t, echo)
	f := httpcap.NewFake()
	rt := httpcap.NewTransport(f, bare(t))
	var wg sync.WaitGroup
	for i := range 150 {
		wg.Go(func() {
			body := bytes.Repeat([]byte{byte(i)}, 10_000+i)
			req, err := http.NewRequest("POST", fmt.Sprintf("%s/%d", s.URL, i), bytes.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			resp, err := rt.RoundTrip(req)
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			if got, err := io.ReadAll(resp.Body); err != nil || !bytes.Equal(got, body) {
				t.Errorf("request %d: %d bytes, %v", i, len(got), err)
			}
		})
	}
	wg.Wait()
	ids := make(map[network.RequestID]bool)
	for _, r := range requests(t, f) {
		ids[r.ID()] = true
		var i int
		u, err := url.Parse(r.Start.Value.URL)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Sscanf(u.Path, "/%d", &i)
		want := sha256.Sum256(bytes.Repeat([]byte{byte(i)}, 10_000+i))
		for _, d := range []subjects.Direction{subjects.RequestBody, subjects.ResponseBody} {
			if got, _, _ := f.Captured(r.ID(), d).Content(); sha256.Sum256(got) != want {
				t.Errorf("request %d, %s: %d bytes of another request", i, d, len(got))
			}
		}
	}
	if len(ids) != 150 {
		t.Errorf("%d ids for 150 requests", len(ids))
	}
}
