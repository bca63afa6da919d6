package ingest

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
	"github.com/natscope/natscope/subjects/source"
)

// node runs a program with the client as its import, and returns what it wrote and how it ended.
func (r *rig) node(text string) (output string, err error) {
	r.t.Helper()
	return r.nodeWith("", text)
}

// nodeWith starts the client with more options, written as ", name: value".
func (r *rig) nodeWith(options, text string) (output string, err error) {
	r.t.Helper()
	client, err := filepath.Abs("../client")
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(client, "node_modules/undici")); err != nil {
		r.t.Fatalf("this test needs the packages of the client; run npm ci in producer/client: %v", err)
	}
	file := filepath.Join(r.t.TempDir(), "program.mjs")
	url := "ws" + strings.TrimPrefix(r.http.URL, "http") + "/ingest"
	text = "import { start } from 'file://" + client + "/node/start.js';\nconst MODULES = 'file://" + client + "/node_modules/';\nconst natscope = start({ url: '" + url + "', token: '" + token + "', id: 'program'" + options + " });\n" + text
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	cmd := exec.Command("node", file)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	done := make(chan error, 1)
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	go func() { done <- cmd.Wait() }()
	select {
	case err := <-done:
		return out.String(), err
	case <-time.After(30 * time.Second):
		_ = cmd.Process.Kill()
		<-done
		r.t.Fatalf("the program does not end: %s", out.String())
		return "", nil
	}
}

// TestNodeProgram records what a process logs, throws and requests, and lets it end as it would.
func TestNodeProgram(t *testing.T) {
	r := newRig(t)
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch req.URL.Path {
		case "/broken":
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("begin"))
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		case "/hang":
			<-req.Context().Done()
		default:
			w.Header().Set("X-Path", req.URL.Path)
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			_, _ = w.Write([]byte("answer of " + req.URL.Path))
		}
	}))
	t.Cleanup(func() { app.CloseClientConnections(); app.Close() })
	output, err := r.node(`
import http from 'node:http';
const { request: undici } = await import(MODULES + 'undici/index.js');
const base = '` + app.URL + `';
const get = (path, options = {}, body) => new Promise((resolve, reject) => {
	const req = http.request(base + path, options, res => {
		let text = '';
		res.on('data', d => { text += d; });
		res.on('end', () => resolve(text));
		res.on('error', reject);
	});
	req.on('error', reject);
	if (body) req.write(body.slice(0, 4));
	req.end(body?.slice(4));
});
console.log('from node', { a: 1 });
const texts = [await get('/plain'), await get('/post', { method: 'POST', headers: { 'X-One': '1' } }, 'the body'), await (await fetch(base + '/fetched')).text(), await (await undici(base + '/undici')).body.text()];
texts.push(await get('/broken').catch(e => e.code));
texts.push(await get('/hang', { signal: AbortSignal.timeout(50) }).catch(e => e.name));
const refused = await new Promise(resolve => http.get('http://127.0.0.1:9/').on('error', e => resolve(e.code)));
// A response that nobody reads is not read for us.
await new Promise(resolve => http.get(base + '/unread', res => { setTimeout(() => { texts.push(res.readableFlowing === null); res.destroy(); resolve(); }, 50); }));
console.log(JSON.stringify([...texts, refused]));
for (let i = 0; i < 200 && natscope.status().state !== 'up'; i++) await new Promise(r => setTimeout(r, 20));
await new Promise(r => setTimeout(r, 200));
throw new TypeError('the end');
`)
	if err == nil || !strings.Contains(output, `["answer of /plain","answer of /post","answer of /fetched","answer of /undici","ECONNRESET","AbortError",true,"ECONNREFUSED"]`) && !strings.Contains(output, "TimeoutError") || !strings.Contains(output, "TypeError: the end") {
		t.Errorf("the program ended with %v: %s", err, output)
	}
	s := r.until("the source closes", func(s *fold.Space) bool {
		src := s.Source("program")
		return src != nil && src.Life.Opened && src.Life.Closed && len(src.Console.Entries) >= 3
	})
	src := s.Source("program")
	if d := src.Life.Descriptor; d.Kind != source.KindHost || d.PID == 0 || d.Hostname == "" || !strings.HasPrefix(d.URL, "file://") {
		t.Errorf("%+v", d)
	}
	if x := src.Console.Entries[2].Exception; x == nil || !strings.HasPrefix(x.Text, "Uncaught") || !strings.Contains(string(x.Value), "the end") {
		t.Errorf("%+v", src.Console.Entries[2])
	}
	q := r.request("program", "/post")
	if q.Start.Value.Method != "POST" || headerValue(q.Start.Value.Headers, "x-one") != "1" || q.Response.Value.RemotePort == 0 || len(q.Start.Value.Stack) == 0 || q.Response.Value.Charset != "utf-8" {
		t.Errorf("%+v %+v", q.Start.Value, q.Response.Value)
	}
	r.untilBody(q, subjects.RequestBody, "the body", "complete")
	r.untilBody(q, subjects.ResponseBody, "answer of /post", "complete")
	r.untilBody(r.request("program", "/plain"), subjects.ResponseBody, "answer of /plain", "complete")
	for path, want := range map[string]network.Ending{"/fetched": network.Finished, "/undici": network.FinishedTruncated, "/broken": network.FinishedTruncated, "/hang": network.Canceled, ":9/": network.Failed} {
		found := r.requests("program", path, 1, ended)
		if len(found) != 1 || found[0].Ending != want {
			t.Errorf("%s: %d requests, ended as %q with %+v %+v", path, len(found), found[0].Ending, found[0].End, found[0].Error)
		}
	}
	if src.FaultCount > 0 {
		t.Errorf("faults %+v", src.Faults)
	}
}

// TestNodeEndsWithoutServer is about a program beside a server that is not there: it ends at once.
func TestNodeEndsWithoutServer(t *testing.T) {
	r := newRig(t)
	r.http.Close()
	start := time.Now()
	output, err := r.node(`console.log('done');`)
	if err != nil || output != "done\n" || time.Since(start) > 10*time.Second {
		t.Errorf("%v after %v: %s", err, time.Since(start), output)
	}
}

// TestNothingLeaksFromANodeProgram sends a secret by every way that a process
// has, in every place, and looks for it in all that was published.
func TestNothingLeaksFromANodeProgram(t *testing.T) {
	r := newRig(t)
	app := r.leaky("")
	output, err := r.nodeWith(`, redact: { secrets: true, headers: ['X-Mine'], patterns: [/`+secret[:5]+`\w+/] }`, `
import http from 'node:http';
const { request: undici } = await import(MODULES + 'undici/index.js');
const base = '`+app.URL+`', secret = '`+secret+`';
const headers = { authorization: 'Bearer ' + secret, 'x-mine': secret, 'content-type': 'application/json', cookie: 'a=' + secret };
const body = JSON.stringify({ password: secret });
const seen = [];
seen.push(await new Promise((resolve, reject) => {
	const req = http.request(base + '/json?way=http&token=' + secret, { method: 'POST', headers }, res => {
		let text = '';
		res.on('data', d => { text += d; });
		res.on('end', () => resolve(text));
	});
	req.on('error', reject);
	req.write(body.slice(0, 16));
	req.end(body.slice(16));
}));
seen.push(await (await fetch(base + '/json?way=fetch&token=' + secret, { method: 'POST', headers, body })).text());
seen.push(await (await undici(base + '/json?way=undici&token=' + secret, { method: 'POST', headers, body })).body.text());
await new Promise(resolve => http.get('http://127.0.0.1:9/?way=refused&token=' + secret).on('error', resolve));
console.log(seen.filter(text => text.includes(secret)).length, 'see what is theirs');
for (let i = 0; i < 200 && natscope.status().state !== 'up'; i++) await new Promise(r => setTimeout(r, 20));
await new Promise(r => setTimeout(r, 200));
natscope.stop();
`)
	if err != nil || output != "3 see what is theirs\n" {
		t.Errorf("the program ended with %v: %s", err, output)
	}
	r.until("the source closes", func(s *fold.Space) bool {
		src := s.Source("program")
		return src != nil && src.Life.Closed
	})
	q := r.request("program", "/json?way=http&token=[redacted]")
	r.untilBody(q, subjects.RequestBody, `{"password":"[redacted]"}`, "complete")
	r.untilBody(q, subjects.ResponseBody, `{"user":"ada","password":"[redacted]"}`, "complete")
	if !q.End.Redacted || !q.BodyEnd.Value.Redacted || headerValue(q.Response.Value.Headers, "X-Mine") != "[redacted]" || headerValue(q.Start.Value.Headers, "cookie") != "a=[redacted]" {
		t.Errorf("%+v %+v", q.Start.Value, q.End)
	}
	for _, path := range []string{"/json?way=fetch&token=[redacted]", "/json?way=undici&token=[redacted]", "/?way=refused&token=[redacted]"} {
		r.request("program", path)
	}
	r.noSecret()
}
