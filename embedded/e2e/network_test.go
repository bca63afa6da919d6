package e2e

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/natscope/natscope/embedded"
	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/producer/httpcap"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
)

// traffic is natscope in this process with two Go services, of which one asks the other.
type traffic struct {
	*embedded.Instance
	t      *testing.T
	orders *producer.Producer
	api    *httptest.Server
	client *http.Client
	// tick makes the stream of events send one more.
	tick chan string
}

func startTraffic(t *testing.T) *traffic {
	t.Helper()
	i, err := embedded.Start(t.Context(), embedded.Options{HTTPAddr: "127.0.0.1:0", NATSAddr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	x := &traffic{Instance: i, t: t, tick: make(chan string)}
	service := func(name string) *producer.Producer {
		p, err := producer.Start(producer.Options{URL: i.NATS(), Service: name, Instance: "1", Name: name})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	x.orders = service("orders")
	warehouse := service("warehouse")
	x.api = httptest.NewTLSServer(httpcap.Handler(warehouse, x.routes()))
	x.client = x.api.Client()
	x.client.Transport = httpcap.Transport(x.orders, x.client.Transport)
	x.client.Jar, _ = cookiejar.New(nil)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		x.api.CloseClientConnections()
		x.api.Close()
		for _, p := range []*producer.Producer{x.orders, warehouse} {
			if err := p.Close(ctx); err != nil {
				t.Error(err)
			}
		}
		if err := i.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return x
}

// picture is a PNG of 40 by 30 points.
func picture() []byte {
	img := image.NewRGBA(image.Rect(0, 0, 40, 30))
	for i := range 1200 {
		img.Set(i%40, i/40, color.RGBA{uint8(6 * (i % 40)), uint8(8 * (i / 40)), 120, 255})
	}
	var b bytes.Buffer
	_ = png.Encode(&b, img)
	return b.Bytes()
}

func (x *traffic) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /catalog/{id}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Add("X-Shard", "a")
		w.Header().Add("X-Shard", "b")
		body := fmt.Sprintf(`{"id":%q,"name":"Teapot","price":{"amount":1250,"currency":"EUR"}}`, r.PathValue("id"))
		if r.Header.Get("Accept-Encoding") == "gzip" && r.URL.Query().Has("zip") {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = io.WriteString(z, body)
			_ = z.Close()
			return
		}
		_, _ = io.WriteString(w, body)
	})
	mux.HandleFunc("GET /logo.png", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "image/png")
		_, _ = w.Write(picture())
	})
	mux.HandleFunc("GET /old", func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "visit", Value: "7", Path: "/"})
		http.Redirect(w, r, "/catalog/moved", http.StatusFound)
	})
	mux.HandleFunc("POST /login", func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("POST /upload", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusCreated)
	})
	mux.HandleFunc("GET /events", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for {
			select {
			case data, ok := <-x.tick:
				if !ok {
					return
				}
				fmt.Fprintf(w, "event: stock\ndata: %s\n\n", data)
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				return
			}
		}
	})
	mux.HandleFunc("GET /broken", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, "the first half")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	return mux
}

// get reads one response to its end.
func (x *traffic) get(path string, header ...string) {
	x.t.Helper()
	req, err := http.NewRequestWithContext(x.t.Context(), http.MethodGet, x.api.URL+path, nil)
	if err != nil {
		x.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	x.read(x.client.Do(req))
}

func (x *traffic) read(resp *http.Response, err error) {
	x.t.Helper()
	if err != nil {
		x.t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
}

// upload sends a form with a file whose bytes are no text.
func (x *traffic) upload() {
	x.t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	_ = w.WriteField("title", "invoice")
	f, _ := w.CreateFormFile("file", "invoice.pdf")
	_, _ = f.Write(append([]byte("%PDF-1.7\n"), 0, 1, 2, 0xff, 0xfe, 0x80))
	_ = w.Close()
	x.read(x.client.Post(x.api.URL+"/upload", w.FormDataContentType(), &b))
}

// talk records a WebSocket, as a capture of one does.
func (x *traffic) talk() {
	record := func(topic string, v any) { x.orders.Record(subjects.PlaneNet, topic, v) }
	record(network.TopicStart, network.Start{ID: "talk", Method: "GET", URL: "wss://feed.test/prices", Type: "websocket"})
	record(network.TopicResponse, network.Response{ID: "talk", Status: 101, StatusText: "Switching Protocols", Headers: []network.Header{{"Upgrade", "websocket"}}})
	record(network.TopicMessage, network.Message{ID: "talk", Sent: true, Opcode: 1, Data: `{"subscribe":"tea"}`})
	record(network.TopicMessage, network.Message{ID: "talk", Opcode: 1, Data: `{"tea":1250}`})
	record(network.TopicMessage, network.Message{ID: "talk", Opcode: 2, Data: base64.StdEncoding.EncodeToString([]byte{0, 1, 2}), Base64: true})
	record(network.TopicMessage, network.Message{ID: "talk", Opcode: 8, Code: 1008, Data: "quota"})
	record(network.TopicEnd, network.End{ID: "talk"})
}

// wander records a chain of redirects.
func (x *traffic) wander() {
	record := func(topic string, v any) { x.orders.Record(subjects.PlaneNet, topic, v) }
	record(network.TopicStart, network.Start{ID: "hop1", URL: "http://hop.test/start", Type: "fetch", Headers: []network.Header{{"Cookie", "sid=1"}}})
	record(network.TopicResponse, network.Response{ID: "hop1", Status: 307, StatusText: "Temporary Redirect", Headers: []network.Header{{"Location", "/finish"}}})
	record(network.TopicEnd, network.End{ID: "hop1"})
	record(network.TopicStart, network.Start{ID: "hop2", URL: "http://hop.test/finish", Type: "fetch", RedirectOf: "hop1", Headers: []network.Header{{"Cookie", "sid=1; seen=hop1"}}})
	record(network.TopicResponse, network.Response{ID: "hop2", Status: 200, StatusText: "OK", MIMEType: "text/plain"})
	record(network.TopicEnd, network.End{ID: "hop2", Trailers: []network.Header{{"X-Checksum", "abc"}}})
}

// guard records an event stream whose body the rules of its source withhold, and a call of gRPC that failed.
func (x *traffic) guard() {
	record := func(topic string, v any) { x.orders.Record(subjects.PlaneNet, topic, v) }
	record(network.TopicStart, network.Start{ID: "guarded", Method: "GET", URL: "http://bank.test/guarded", Type: "fetch"})
	record(network.TopicResponse, network.Response{ID: "guarded", Status: 200, StatusText: "OK", MIMEType: "text/event-stream", HasBody: true})
	record(network.TopicMessage, network.Message{ID: "guarded", Event: "booked", Data: "card [redacted]"})
	record(network.TopicStart, network.Start{ID: "rpc", Method: "POST", URL: "http://stock.test/stock.Stock/Find", Type: "fetch"})
	record(network.TopicResponse, network.Response{ID: "rpc", Status: 200, StatusText: "OK", MIMEType: "application/json", Protocol: "h2"})
	record(network.TopicEnd, network.End{ID: "rpc", Error: "NotFound: no such item", Trailers: []network.Header{{"grpc-status", "5"}, {"grpc-message", "no such item"}}})
}

// seeGuarded looks at what guard recorded.
func seeGuarded(d *devtools) {
	d.t.Helper()
	d.openRequest("guarded", "fetch", "eventSource")
	d.waitText("tr", "booked", "card [redacted]")
	d.settle()
	d.screenshot("network-withheld")
	d.closeRequest()
	d.openRequest("Find", "fetch", "headers-component")
	d.waitText(".network-item-view", "200 grpc-status 5 NOT_FOUND")
	d.settle()
	d.screenshot("network-grpc")
	d.closeRequest()
}

const networkRow = "tr.data-grid-data-grid-node"

// openRequest selects the row with exactly this name of which the line contains
// with, and opens one of its tabs.
func (d *devtools) openRequest(name, with, tab string) {
	d.t.Helper()
	d.poll("select "+name, func() (bool, string) {
		at := eval[*struct{ X, Y float64 }](d.page, js(`(() => {
		  for (const tr of ns.all(`+quote(networkRow)+`)) {
		    const td = tr.querySelector('td.name-column');
		    if (!td || !ns.shown(td) || ns.text(td) !== `+quote(name)+` && !ns.text(td).startsWith(`+quote(name+" ")+`) || !ns.text(tr).includes(`+quote(with)+`)) continue;
		    td.scrollIntoView({block: 'nearest'});
		    const r = td.getBoundingClientRect();
		    return {x: r.x + 40, y: r.y + r.height / 2};
		  }
		  return null;
		})()`))
		if at == nil {
			return false, strings.Join(d.texts(networkRow), "\n")
		}
		d.mouseClick(at.X, at.Y)
		selected := d.texts(networkRow + ".selected td.name-column")
		return len(selected) == 1 && strings.HasPrefix(selected[0], name), strings.Join(selected, "\n")
	})
	d.click("#tab-"+tab, "")
}

// closeRequest closes the request's view, so that all columns are there again.
func (d *devtools) closeRequest() {
	d.t.Helper()
	d.click(`[aria-label="Close"]`, "")
	d.waitFor("the columns", "th.initiator-column")
}

func TestNetworkInDevTools(t *testing.T) {
	x := startTraffic(t)
	x.get("/catalog/7?lang=en")
	x.get("/logo.png")
	x.get("/old")
	x.get("/catalog/zip?zip", "Accept-Encoding", "gzip")
	x.read(x.client.PostForm(x.api.URL+"/login", url.Values{"user": {"ada"}, "remember": {"on"}}))
	x.upload()
	x.talk()
	x.wander()
	x.guard()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, x.api.URL+"/broken", nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := x.client.Do(req); err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	stream := make(chan struct{})
	go func() {
		defer close(stream)
		resp, err := x.client.Get(x.api.URL + "/events")
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}()
	x.tick <- "first"

	b := browser(t)
	d := openDevTools(t, b, x.DevTools())
	d.panel("network")
	seeRows(d)
	seeDetails(d)
	seePayloads(d)
	seeEvents(x, d)
	seeGuarded(d)
	close(x.tick)
	<-stream
	seeMessages(d)
	seeGroups(d)
	d.noErrors()
	seeArchive(x, b)
}

func seeRows(d *devtools) {
	d.t.Helper()
	// What orders asked for, with the line of Go code that asked, and what warehouse served, with who asked.
	d.waitText(networkRow, "7?lang=en", "200", "fetch", "network_test.go:")
	d.waitText(networkRow, "7?lang=en", "200", "document", "incoming from 127.0.0.1:")
	d.waitText(networkRow, "start", "307", "fetch / Redirect")
	d.waitText(networkRow, "finish", "200", "start")
	d.waitText(networkRow, "moved", "200")
	d.waitText(networkRow, "events", "200", "fetch")
	d.settle()
	d.screenshot("network-rows")
}

func seeDetails(d *devtools) {
	d.t.Helper()
	d.openRequest("7?lang=en", "fetch", "headers-component")
	d.waitText(".network-item-view", "/catalog/7?lang=en", "200 OK", "x-shard a", "x-shard b", "Remote address 127.0.0.1:")
	if all := strings.Join(d.texts(".network-item-view"), " "); strings.Contains(all, "Provisional headers") {
		d.t.Errorf("DevTools warns of provisional headers: %s", all)
	}
	d.settle()
	d.screenshot("network-headers")
	d.click("#tab-preview", "")
	d.waitText(".network-item-view", "Teapot", "amount", "1250")
	d.click("#tab-response", "")
	d.waitText(".cm-content", `"Teapot"`)
	d.click("#tab-timing", "")
	d.waitText(".network-item-view", "Waiting for server response", "Content download")
	d.settle()
	d.screenshot("network-timing")
	d.click("#tab-initiator", "")
	d.waitText(".network-item-view", "network_test.go:")
	d.closeRequest()
	d.openRequest("7?lang=en", "document", "headers-component")
	d.waitText(".network-item-view", "natscope-route", "GET /catalog/{id}")
	d.closeRequest()
	d.openRequest("zip?zip", "fetch", "response")
	d.waitText(".cm-content", `"Teapot"`)
	d.closeRequest()
	d.openRequest("finish", "200", "headers-component")
	d.waitText(".network-item-view", "x-checksum abc")
	d.click("#tab-cookies", "")
	d.waitText(".network-item-view", "seen", "hop1")
	d.closeRequest()
	d.openRequest("broken", "fetch", "headers-component")
	d.waitText(".network-item-view", "natscope-response-body", "ended early: unexpected EOF")
	d.closeRequest()
	d.openRequest("logo.png", "fetch", "preview")
	d.poll("the picture", func() (bool, string) {
		return eval[bool](d.page, js("ns.all('.image-view img, .network-item-view img').some(i => i.naturalWidth === 40 && i.naturalHeight === 30)")), "no picture of 40 by 30 points"
	})
	d.settle()
	d.screenshot("network-preview")
	d.closeRequest()
}

func seePayloads(d *devtools) {
	d.t.Helper()
	d.openRequest("login", "fetch", "payload")
	d.waitText(".network-item-view", "Form data", "user ada", "remember on")
	d.closeRequest()
	d.openRequest("upload", "fetch", "payload")
	d.waitText(".network-item-view", "invoice")
	d.settle()
	d.screenshot("network-payload")
	d.closeRequest()
}

// seeEvents looks at a stream that grows while it is looked at.
func seeEvents(x *traffic, d *devtools) {
	d.t.Helper()
	d.openRequest("events", "fetch", "eventSource")
	d.waitText("tr", "stock", "first")
	for i := range 3 {
		text := fmt.Sprintf("teapots left: %d", 3-i)
		x.tick <- text
		d.waitText("tr", text)
	}
	d.settle()
	d.screenshot("network-events")
	d.closeRequest()
}

func seeMessages(d *devtools) {
	d.t.Helper()
	d.openRequest("prices", "101", "web-socket-frames")
	for _, text := range []string{`{"subscribe":"tea"}`, `{"tea":1250}`, "Binary message", "Connection close message", "code 1008 quota"} {
		d.waitText("tr", text)
	}
	d.settle()
	d.screenshot("network-messages")
	d.closeRequest()
}

func seeGroups(d *devtools) {
	d.t.Helper()
	d.click(`[aria-label="Network settings"] button, button[aria-label="Network settings"]`, "")
	d.click("label", "=Group by frame")
	d.waitText(networkRow, "orders-1.dev")
	d.waitText(networkRow, "warehouse-1.dev")
	d.settle()
	d.screenshot("network-frames")
}

// seeArchive exports the requests and imports them into another DevTools, which watches nothing.
func seeArchive(x *traffic, b context.Context) {
	x.t.Helper()
	file := filepath.Join(x.t.TempDir(), "requests.har")
	cmd := exec.Command(binary, "har", "--nats", x.NATS(), "--source", "orders", "-o", file)
	if out, err := cmd.CombinedOutput(); err != nil {
		x.t.Fatalf("natscope har: %v\n%s", err, out)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		x.t.Fatal(err)
	}
	var archive struct {
		Log struct{ Entries []json.RawMessage }
	}
	if err := json.Unmarshal(text, &archive); err != nil || len(archive.Log.Entries) < 9 {
		x.t.Fatalf("%v: %d entries", err, len(archive.Log.Entries))
	}
	d := openDevTools(x.t, b, strings.Split(x.DevTools(), "?")[0])
	d.panel("network")
	d.poll("the import of the archive", func() (bool, string) {
		done := eval[bool](d.page, js(`(() => {
		  const input = ns.all('input[type=file]')[0];
		  if (!input) return false;
		  const files = new DataTransfer();
		  files.items.add(new File([`+quote(string(text))+`], 'requests.har'));
		  input.files = files.files;
		  input.dispatchEvent(new Event('change'));
		  return true;
		})()`))
		return done, "no input for files"
	})
	d.waitText(networkRow, "7?lang=en", "200", "fetch")
	d.waitText(networkRow, "moved", "200")
	d.openRequest("7?lang=en", "fetch", "response")
	d.waitText(".cm-content", `"Teapot"`)
	d.closeRequest()
	d.openRequest("login", "fetch", "payload")
	d.waitText(".network-item-view", "user", "ada")
	d.closeRequest()
	d.openRequest("events", "fetch", "eventSource")
	d.waitText("tr", "stock", "teapots left: 1")
	d.closeRequest()
	d.openRequest("prices", "101", "web-socket-frames")
	d.waitText("tr", `{"tea":1250}`)
	d.settle()
	d.screenshot("network-archive")
	d.noErrors()
}

// mouseClick clicks a place.
func (p *page) mouseClick(x, y float64) {
	p.t.Helper()
	p.do(chromedp.MouseClickXY(x, y))
}
