package subjects

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"
)

// frameCase is one line of frames.json.
type frameCase struct {
	Name    string            `json:"name"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
	// Frame is what the frame holds.
	Frame *struct {
		Seq     Seq      `json:"seq"`
		Dropped uint64   `json:"dropped"`
		Records []Record `json:"records"`
	} `json:"frame"`
	// Error is "frame" or "version" where readers refuse it.
	Error string `json:"error"`
}

func headerOf(m map[string]string) Header {
	h := make(Header)
	for k, v := range m {
		h[k] = []string{v}
	}
	return h
}

func TestFrameVectors(t *testing.T) {
	for _, c := range golden[frameCase](t, "frames.json") {
		t.Run(c.Name, func(t *testing.T) {
			f, err := DecodeFrame(headerOf(c.Headers), []byte(c.Body))
			want := map[string]error{"": nil, "frame": ErrFrame, "version": ErrVersion}[c.Error]
			if !errors.Is(err, want) || (err == nil) != (want == nil) {
				t.Fatalf("the error is %v, want %v", err, want)
			}
			if err != nil {
				return
			}
			if f.Seq != c.Frame.Seq || f.Dropped != c.Frame.Dropped || !reflect.DeepEqual(f.Records, c.Frame.Records) {
				t.Errorf("got %+v, want %+v", f, c.Frame)
			}
		})
	}
}

// encode makes the message of some records.
func encode(t testing.TB, seq Seq, dropped uint64, records []Record) (Header, []byte) {
	t.Helper()
	var body []byte
	for _, r := range records {
		var err error
		if body, err = AppendRecord(body, r); err != nil {
			t.Fatal(err)
		}
	}
	return EncodeFrame(FrameInfo{Seq: seq, Count: len(records), Dropped: dropped}, body)
}

func TestFramesRoundTrip(t *testing.T) {
	for _, n := range []int{1, 2, 100, 2048} {
		var records []Record
		for i := range n {
			records = append(records, Record{T: float64(i) / 8, Topic: "start", Data: json.RawMessage(fmt.Sprintf(`{"id":"r%d","url":"http://shop.test/orders/%d"}`, i, i))})
		}
		h, body := encode(t, 9, 3, records)
		if packed := h.Get(HeaderEncoding) == EncodingZstd; packed != (n >= 100) {
			t.Errorf("%d records: compressed %v", n, packed)
		}
		f, err := DecodeFrame(h, body)
		if err != nil {
			t.Fatal(err)
		}
		if f.Seq != 9 || f.Dropped != 3 || !reflect.DeepEqual(f.Records, records) {
			t.Errorf("%d records came back as %d from %d on, %d dropped", n, len(f.Records), f.Seq, f.Dropped)
		}
	}
}

// TestDecodeFrameBounds shows what a hostile frame costs at most.
func TestDecodeFrameBounds(t *testing.T) {
	pack := func(body []byte) []byte {
		w, err := zstd.NewWriter(nil)
		if err != nil {
			t.Fatal(err)
		}
		return w.EncodeAll(body, nil)
	}
	h := func(count int, encoding string) Header {
		out := Header{HeaderVersion: {"1"}, HeaderSeq: {"1"}, HeaderCount: {fmt.Sprint(count)}}
		if encoding != "" {
			out[HeaderEncoding] = []string{encoding}
		}
		return out
	}
	bomb := pack(bytes.Repeat([]byte("\n"), 64<<20))
	if len(bomb) > 1<<20 {
		t.Fatalf("the bomb has %d bytes", len(bomb))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := DecodeFrame(h(1, EncodingZstd), bomb); !errors.Is(err, ErrFrame) {
		t.Errorf("the bomb gives the error %v", err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 16<<20 {
		t.Errorf("the bomb took %d bytes", n)
	}
	line := `{"t":1,"topic":"x","data":"` + strings.Repeat("x", maxFrameBytes) + `"}`
	for name, c := range map[string]struct {
		header Header
		body   []byte
	}{
		"plain":      {h(1, ""), []byte(line)},
		"compressed": {h(1, EncodingZstd), pack([]byte(line))},
	} {
		if _, err := DecodeFrame(c.header, c.body); !errors.Is(err, ErrFrame) {
			t.Errorf("a %s frame that is too large gives the error %v", name, err)
		}
	}
}

// FuzzDecodeFrame shows that no message makes a reader panic, and that valid frames survive.
func FuzzDecodeFrame(f *testing.F) {
	for _, c := range golden[frameCase](f, "frames.json") {
		f.Add(c.Headers[HeaderVersion], c.Headers[HeaderSeq], c.Headers[HeaderCount], c.Headers[HeaderDropped], c.Headers[HeaderEncoding], []byte(c.Body))
	}
	h, packed := encode(f, 1, 0, []Record{{T: 1, Topic: "x", Data: json.RawMessage(`"` + strings.Repeat("long ", 2000) + `"`)}})
	f.Add("1", "1", "1", "", h.Get(HeaderEncoding), packed)
	f.Fuzz(func(t *testing.T, version, seq, count, dropped, encoding string, body []byte) {
		h := Header{HeaderVersion: {version}, HeaderSeq: {seq}, HeaderCount: {count}, HeaderDropped: {dropped}, HeaderEncoding: {encoding}}
		got, err := DecodeFrame(h, body)
		if err != nil {
			if !errors.Is(err, ErrFrame) && !errors.Is(err, ErrVersion) {
				t.Fatalf("the error %v is none of this package", err)
			}
			if got.Records != nil {
				t.Fatal("a refused frame has records")
			}
			return
		}
		if got.Seq == 0 || len(got.Records) == 0 || len(got.Records) > maxFrameRecords {
			t.Fatalf("a frame of %d records from %d on", len(got.Records), got.Seq)
		}
		h, again := encode(t, got.Seq, got.Dropped, got.Records)
		if h.Get(HeaderEncoding) == "" && !utf8.Valid(again) {
			t.Fatalf("written as %q", again)
		}
		back, err := DecodeFrame(h, again)
		if err != nil || back.Seq != got.Seq || back.Dropped != got.Dropped || len(back.Records) != len(got.Records) {
			t.Fatalf("%+v came back as %+v, %v", got, back, err)
		}
		for i, r := range back.Records {
			if r.T != got.Records[i].T || r.Topic != got.Records[i].Topic {
				t.Fatalf("record %+v came back as %+v", got.Records[i], r)
			}
		}
	})
}

func BenchmarkDecodeFrame(b *testing.B) {
	for _, n := range []int{1, 100, 2048} {
		var records []Record
		for i := range n {
			records = append(records, Record{T: float64(i), Topic: "dataReceived", Data: json.RawMessage(fmt.Sprintf(`{"id":"r%d","bytes":%d}`, i, i))})
		}
		h, body := encode(b, 1, 0, records)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := DecodeFrame(h, body); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/record")
		})
	}
}
