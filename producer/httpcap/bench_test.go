package httpcap_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/natscope/natscope/producer/httpcap"
)

// BenchmarkCall compares a call over bare net/http with a captured one; the
// records go to a sink that drops them, so that the difference is what capture
// costs the calling program.
func BenchmarkCall(b *testing.B) {
	s := newBenchServer(b)
	for _, kind := range []string{"GET", "POST"} {
		for _, captured := range []bool{false, true} {
			name := kind + "/bare"
			if captured {
				name = kind + "/captured"
			}
			b.Run(name, func(b *testing.B) {
				tr := http.DefaultTransport.(*http.Transport).Clone()
				tr.Proxy = nil
				defer tr.CloseIdleConnections()
				var rt http.RoundTripper = tr
				if captured {
					f := httpcap.NewFake()
					f.Discard = true
					rt = httpcap.NewTransport(f, tr)
				}
				call(b, kind, s, rt)
			})
		}
	}
}

// BenchmarkCapture measures capture alone: the transport below answers at once.
func BenchmarkCapture(b *testing.B) {
	answer := func(req *http.Request) (*http.Response, error) {
		if req.Body != nil {
			io.Copy(io.Discard, req.Body)
			req.Body.Close()
		}
		return &http.Response{
			StatusCode: 200, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: 5, Request: req,
			Header: http.Header{"Content-Type": {"application/json"}, "Date": {"Tue, 01 Dec 2026 00:00:00 GMT"}, "Content-Length": {"5"}},
			Body:   io.NopCloser(strings.NewReader("hello")),
		}, nil
	}
	f := httpcap.NewFake()
	f.Discard = true
	for name, rt := range map[string]http.RoundTripper{"bare": roundTripper(answer), "captured": httpcap.NewTransport(f, roundTripper(answer))} {
		b.Run(name, func(b *testing.B) { call(b, "GET", "http://127.0.0.1/path?query=1", rt) })
	}
}

func call(b *testing.B, method, url string, rt http.RoundTripper) {
	c := http.Client{Transport: rt}
	b.ReportAllocs()
	for b.Loop() {
		var body io.Reader
		if method == "POST" {
			body = strings.NewReader(`{"customer":"Ada","items":[{"sku":"mug","quantity":2}]}`)
		}
		req, err := http.NewRequest(method, url, body)
		if err != nil {
			b.Fatal(err)
		}
		resp, err := c.Do(req)
		if err != nil {
			b.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
}
