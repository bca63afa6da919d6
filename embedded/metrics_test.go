package embedded

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/subjects"
)

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// sample returns the value of a metric, or "" if it is not there.
func sample(text, name string) string {
	m := regexp.MustCompile(`(?m)^natscope_` + name + `\{[^}]*\} (\S+)$`).FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	return m[1]
}

func TestMetricsTellTheTruth(t *testing.T) {
	i := startTest(t, Options{Admin: "127.0.0.1:0"})
	p, err := producer.Start(producer.Options{Service: "orders", URL: i.NATS(), Space: i.Space()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = p.Close(ctx)
	}()
	ws, _, err := websocket.DefaultDialer.Dial("ws://"+i.Addr()+"/devtools/page/dev", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ws.Close() }()
	want := map[string]string{"nats_connected": "1", "replica_current": "1", "sources": "1", "sources_connected": "1", "gateway_connections": "1", "gateway_connections_total": "1", "gateway_lagged_total": "0", "ingest_pages": "0"}
	for _, url := range []string{"http://" + i.Admin() + "/metrics", i.HTTP() + "/metrics"} {
		var text string
		deadline := time.Now().Add(10 * time.Second)
		for ok := false; !ok; {
			_, text = get(t, url)
			ok = true
			for name, v := range want {
				ok = ok && sample(text, name) == v
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s, wanted %v:\n%s", url, want, text)
			}
		}
	}
	if problems, err := testutil.CollectAndLint(&i.figures); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

// Every metric is documented, and no other is.
func TestMetricsAreDocumented(t *testing.T) {
	b, err := os.ReadFile("../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := make(map[string]bool)
	for _, m := range regexp.MustCompile("(?m)^\\| `(natscope_[a-z_]+)` \\|").FindAllStringSubmatch(string(b), -1) {
		documented[m[1]] = true
	}
	name := regexp.MustCompile(`fqName: "([^"]+)"`)
	var all []string
	for _, f := range figures {
		all = append(all, name.FindStringSubmatch(f.desc.String())[1])
	}
	for _, f := range stateFigures {
		all = append(all, name.FindStringSubmatch(f.desc.String())[1])
	}
	all = append(all, "natscope_ingest_rejected_total")
	for _, n := range all {
		if !documented[n] {
			t.Errorf("docs/operating.md does not tell of %s", n)
		}
		delete(documented, n)
	}
	for n := range documented {
		t.Errorf("docs/operating.md tells of %s, which is not there", n)
	}
}

// A process whose broker is away lives, and is not ready; it is ready again when the broker is.
func TestReadinessFollowsTheBroker(t *testing.T) {
	dir := t.TempDir()
	start := func(port int) *server.Server {
		s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: dir, NoLog: true, NoSigs: true})
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		if !s.ReadyForConnections(10 * time.Second) {
			t.Fatal("the server does not start")
		}
		return s
	}
	stop := func(s *server.Server) { s.Shutdown(); s.WaitForShutdown() }
	s := start(-1)
	port := s.Addr().(*net.TCPAddr).Port
	i := startTest(t, Options{NATS: s.ClientURL(), Admin: "127.0.0.1:0", Storage: subjects.Storage{}})
	ready := func(want int, says string) {
		t.Helper()
		deadline := time.Now().Add(20 * time.Second)
		for {
			status, text := get(t, "http://"+i.Admin()+"/readyz")
			if status == want && strings.Contains(text, says) {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("/readyz: %d %s, wanted %d %s", status, text, want, says)
			}
		}
		if status, _ := get(t, "http://"+i.Admin()+"/healthz"); status != http.StatusOK {
			t.Errorf("/healthz: %d", status)
		}
	}
	ready(200, "ok")
	stop(s)
	ready(503, "NATS")
	s = start(port)
	ready(200, "ok")
	closeTest(t, i)
	stop(s)
}
