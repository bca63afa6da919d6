package httpcap_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/natscope/natscope/producer/httpcap"
	"github.com/natscope/natscope/producer/redact"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
)

// everything returns all that capture told, records and bodies, as one text.
func everything(f *httpcap.Fake) string {
	var b strings.Builder
	for _, r := range f.Records() {
		b.WriteString(r.Topic + " " + string(r.Data) + "\n")
	}
	for key, body := range f.Bodies() {
		data, reason, _ := body.Content()
		b.WriteString(key + " " + reason + " " + string(data) + "\n")
	}
	return b.String()
}

// TestNothingLeaks sends a secret in every place and looks for it in all that
// capture tells, on both sides, in pieces that cut through it.
func TestNothingLeaks(t *testing.T) {
	const secret = "tr0ub4dor"
	out, in := httpcap.NewFake(), httpcap.NewFake()
	rules := redact.Secrets().And(redact.Rules{Headers: []string{"X-Mine"}, Patterns: []string{secret}})
	out.Redact, in.Redact = rules, rules
	var seen string
	srv := serve(t, httpcap.NewHandler(in, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		seen += r.URL.String() + r.Header.Get("Authorization") + r.Header.Get("X-Mine") + string(body)
		w.Header().Set("X-Mine", secret)
		w.Header().Set("Set-Cookie", "sid="+secret+"; HttpOnly")
		w.Header().Set("Trailer", "X-Mine")
		w.Header().Set("Content-Type", r.URL.Query().Get("type"))
		answer := `{"a":"` + secret + `","password":"` + secret + `","list":[1]}`
		if r.URL.Query().Get("type") == "text/event-stream" {
			answer = "data: " + answer + "\n\ndata: tr0ub\ndata: harmless\n\n"
		}
		if r.URL.Query().Has("gzip") {
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			io.WriteString(z, answer)
			z.Close()
			w.Header().Set("Content-Encoding", "gzip")
			answer = b.String()
		}
		for i := range len(answer) {
			w.Write([]byte{answer[i]})
			w.(http.Flusher).Flush()
		}
	})).ServeHTTP)
	c := http.Client{Transport: httpcap.NewTransport(out, bare(t))}
	for _, query := range []string{"type=application/json", "type=text/plain", "type=text/event-stream", "type=application/json&gzip=1"} {
		req, err := http.NewRequest("POST", srv.URL+"/x/"+secret+"?token="+secret+"&"+query, pieced(`{"password":"`, secret[:4], secret[4:], `"}`)())
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+secret)
		req.Header.Set("X-Mine", secret)
		req.Header.Set("Cookie", "a="+secret)
		req.Header.Set("Referer", "http://a.test/?api_key="+secret)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept-Encoding", "identity")
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if resp.Body.Close(); err != nil || resp.Header.Get("X-Mine") != secret || !strings.Contains(query, "gzip") && !strings.Contains(string(body), secret) {
			t.Errorf("the application does not see what it should: %v, %q", err, body)
		}
	}
	if strings.Count(seen, secret) != 4*5 {
		t.Errorf("the server does not see what it should: %s", seen)
	}
	for side, f := range map[string]*httpcap.Fake{"out": out, "in": in} {
		rs := requests(t, f)
		all := everything(f)
		if strings.Contains(all, secret) || !strings.Contains(all, redact.Mark) {
			t.Errorf("%s tells:\n%s", side, all)
		}
		if strings.Contains(all, secret[:5]+`"`) || !strings.Contains(all, "harmless") {
			t.Errorf("%s tells too much or too little:\n%s", side, all)
		}
		for i, withheld := range []bool{false, false, false, true} {
			e, b := rs[i].End, rs[i].BodyEnd.Value
			if !e.Redacted || e.Truncated != withheld || withheld != (e.Captured == 0) || !b.Redacted || b.Truncated || b.Captured == 0 || b.Bytes == b.Captured {
				t.Errorf("%s, request %d: end %+v, body end %+v", side, i, e, b)
			}
		}
		if len(rs[2].Messages) != 2 {
			t.Errorf("%s: messages %+v", side, rs[2].Messages)
		}
	}
}

// TestUncheckedBodiesAreWithheld shows that what cannot be checked whole is not told in part.
func TestUncheckedBodiesAreWithheld(t *testing.T) {
	f := httpcap.NewFake()
	f.Redact = redact.Rules{JSON: []string{"password"}}
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", r.URL.Query().Get("type"))
		io.WriteString(w, strings.Repeat("x", 5<<20))
	})
	c := http.Client{Transport: httpcap.NewTransport(f, bare(t))}
	for _, mediaType := range []string{"text/plain", "image/png", "text/css"} {
		resp, err := c.Get(srv.URL + "?type=" + mediaType)
		if err != nil {
			t.Fatal(err)
		}
		if mediaType == "text/css" {
			io.ReadFull(resp.Body, make([]byte, 100))
		} else {
			io.Copy(io.Discard, resp.Body)
		}
		resp.Body.Close()
	}
	rs := requests(t, f)
	for i, want := range []network.End{
		{Bytes: 5 << 20, Truncated: true, Redacted: true},
		{Bytes: 5 << 20, Captured: 5 << 20},
		{Bytes: 100, Truncated: true, Redacted: true, Canceled: true},
	} {
		e := *rs[i].End
		if e.Bytes != want.Bytes || e.Captured != want.Captured || e.Truncated != want.Truncated || e.Redacted != want.Redacted || e.Canceled != want.Canceled {
			t.Errorf("request %d: %+v", i, e)
		}
		if data, reason, _ := f.Captured(rs[i].ID(), subjects.ResponseBody).Content(); want.Redacted && (reason != subjects.BodyTruncated || len(data) > 0) {
			t.Errorf("request %d: %d bytes, %s", i, len(data), reason)
		}
	}
	if n := httpcap.Checking(); n != 0 {
		t.Errorf("%d bytes count as waiting", n)
	}
}
