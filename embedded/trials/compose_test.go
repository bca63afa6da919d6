package trials

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"sigs.k8s.io/yaml"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/subjects"
)

// playConfigured is a server with a configuration file, whose name is the role's configuration.
func playConfigured(config []byte, _ *slog.Logger) (any, commands, func() error, error) {
	var file string
	if err := json.Unmarshal(config, &file); err != nil {
		return nil, nil, nil, err
	}
	o, err := server.ProcessConfigFile(file)
	if err != nil {
		return nil, nil, nil, err
	}
	o.NoSigs = true
	s, err := server.NewServer(o)
	if err != nil {
		return nil, nil, nil, err
	}
	s.SetLoggerV2(nil, false, false, false)
	s.Start()
	if !s.ReadyForConnections(patience) {
		return nil, nil, nil, errors.New("the server does not start")
	}
	return s.ClientURL(), nil, func() error { s.Shutdown(); s.WaitForShutdown(); return nil }, nil
}

// service is what a compose file says of one.
type service struct {
	Image       string            `json:"image"`
	Entrypoint  []string          `json:"entrypoint"`
	Command     []string          `json:"command"`
	Environment map[string]string `json:"environment"`
}

// composition is the topology of the compose file, started as processes.
type composition struct {
	t        testing.TB
	auth     string
	token    string
	nats     []string
	parts    map[string]*process
	ready    map[string]announced
	balancer *balancer
}

// replace puts this machine in the place of the containers.
func (c *composition) replace(args []string) []string {
	all := strings.NewReplacer("/auth/", c.auth+"/", "nats://nats-1:4222", c.nats[0], "nats://nats-2:4222", c.nats[1], "nats://nats-3:4222", c.nats[2],
		"0.0.0.0:9230", "127.0.0.1:0", "0.0.0.0:9240", "127.0.0.1:0", "http://127.0.0.1:9230", c.balancer.url())
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = all.Replace(a)
	}
	return out
}

// compose starts everything that docker-compose.yml has, with its command lines
// and its files: only host names, ports and folders are those of this machine.
func compose(t testing.TB) *composition {
	t.Helper()
	data, err := os.ReadFile("../../docker-compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Services map[string]service `json:"services"`
	}
	if err := yaml.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	c := &composition{t: t, auth: filepath.Join(root, "auth"), parts: make(map[string]*process), ready: make(map[string]announced), balancer: newBalancer(t)}
	if err := os.MkdirAll(filepath.Join(root, "etc", "natscope"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(c.auth, 0o700); err != nil {
		t.Fatal(err)
	}
	c.setup(file.Services["setup"])
	c.servers(root)
	var names []string
	for name, s := range file.Services {
		if s.Image == "natscope" && name != "setup" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if want := []string{"gateway-1", "gateway-2", "ingest-1", "store-1", "store-2"}; !slices.Equal(names, want) {
		t.Fatalf("the compose file has the parts %v, wanted %v", names, want)
	}
	for _, name := range names {
		s := file.Services[name]
		cmd := exec.Command(command(t), append(c.replace(s.Command), "--ready-json")...)
		cmd.Env = append(os.Environ(), "NATSCOPE_TOKEN=compose")
		c.parts[name] = launch(t, name, cmd)
	}
	for _, name := range names {
		var a announced
		c.parts[name].ready(&a)
		c.ready[name] = a
		if strings.HasPrefix(name, "gateway") {
			c.balancer.gateways = append(c.balancer.gateways, a.Listen)
		}
		if strings.HasPrefix(name, "ingest") {
			c.balancer.ingest = a.Listen
		}
	}
	return c
}

// setup runs the script of the service setup, which makes users and a token.
func (c *composition) setup(s service) {
	c.t.Helper()
	if len(s.Entrypoint) == 0 || s.Entrypoint[len(s.Entrypoint)-1] != "/setup.sh" {
		c.t.Fatalf("the service setup runs %v", s.Entrypoint)
	}
	script, err := os.ReadFile("../../deploy/compose/setup.sh")
	if err != nil {
		c.t.Fatal(err)
	}
	text := strings.ReplaceAll(string(script), "/auth", c.auth)
	text = regexp.MustCompile(`(?m)^chown .*$`).ReplaceAllString(text, "")
	for run := range 2 {
		cmd := exec.Command("sh", "-c", text)
		cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(command(c.t))+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if err != nil {
			c.t.Fatalf("setup: %v\n%s", err, out)
		}
		m := regexp.MustCompile(`http://127\.0\.0\.1:9230/t/(\w+)/`).FindSubmatch(out)
		if run == 0 && m == nil {
			c.t.Fatalf("setup prints no link:\n%s", out)
		}
		if run == 1 && len(out) > 0 {
			c.t.Fatalf("setup is not done after its first run:\n%s", out)
		}
		if run == 0 {
			c.token = string(m[1])
		}
	}
}

// servers starts the three NATS servers with the configuration file of the composition.
func (c *composition) servers(root string) {
	c.t.Helper()
	conf, err := os.ReadFile("../../deploy/compose/nats.conf")
	if err != nil {
		c.t.Fatal(err)
	}
	ports := freePorts(c.t, 6)
	var nodes []*process
	for i := range 3 {
		text := strings.NewReplacer("$NODE", fmt.Sprintf("nats-%d", i+1), "listen: 0.0.0.0:4222", fmt.Sprintf("listen: 127.0.0.1:%d", ports[i]), "listen: 0.0.0.0:6222", fmt.Sprintf("listen: 127.0.0.1:%d", ports[3+i]),
			"nats-1:6222", fmt.Sprintf("127.0.0.1:%d", ports[3]), "nats-2:6222", fmt.Sprintf("127.0.0.1:%d", ports[4]), "nats-3:6222", fmt.Sprintf("127.0.0.1:%d", ports[5]),
			"listen: 0.0.0.0:7422", "listen: 127.0.0.1:-1", "store_dir: /data", "store_dir: "+c.t.TempDir()).Replace(string(conf))
		file := filepath.Join(root, "etc", "natscope", fmt.Sprintf("nats-%d.conf", i+1))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			c.t.Fatal(err)
		}
		nodes = append(nodes, begin(c.t, "configured", file))
		c.nats = append(c.nats, fmt.Sprintf("nats://127.0.0.1:%d", ports[i]))
	}
	for _, n := range nodes {
		n.ready(nil)
	}
}

// balancer stands before the gateways: each request goes to the next one that
// answers, and a connection on which nothing is said for long is cut.
type balancer struct {
	server   *httptest.Server
	gateways []string
	ingest   string
	turn     atomic.Uint64
	idle     time.Duration
}

func newBalancer(t testing.TB) *balancer {
	b := &balancer{idle: 25 * time.Second}
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, network, addr)
		return &impatient{conn, b.idle}, err
	}
	transport := &http.Transport{DisableKeepAlives: true, DialContext: dial}
	p := &httputil.ReverseProxy{Transport: transport, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = "http", b.next(r.In.URL.Path)
		r.Out.Host = r.In.Host
	}}
	b.server = httptest.NewServer(p)
	t.Cleanup(b.server.Close)
	return b
}

func (b *balancer) url() string { return b.server.URL }

// next names who takes a request.
func (b *balancer) next(path string) string {
	if path == "/ingest" || path == "/client.js" || strings.HasPrefix(path, "/client/") {
		return b.ingest
	}
	for range b.gateways {
		at := b.gateways[b.turn.Add(1)%uint64(len(b.gateways))]
		if conn, err := net.DialTimeout("tcp", at, time.Second); err == nil {
			_ = conn.Close()
			return at
		}
	}
	return "127.0.0.1:1"
}

// impatient is a connection that ends when nothing is said on it.
type impatient struct {
	net.Conn
	idle time.Duration
}

func (c *impatient) Read(p []byte) (int, error) {
	_ = c.SetReadDeadline(time.Now().Add(c.idle))
	return c.Conn.Read(p)
}

// Cases I6 and I7, TestComposition: the topology of the compose file works as a whole: nobody gets
// in without a token; any gateway serves what another lists; a quiet DevTools
// outlives the idle timeout of the load balancer; and when the gateway behind a
// DevTools is killed, the same link finds the same nodes under the same ids at the
// other one.
func TestComposition(t *testing.T) {
	t.Parallel()
	c := compose(t)
	key, err := nats.NkeyOptionFromSeed(filepath.Join(c.auth, "producer.nk"))
	if err != nil {
		t.Fatal(err)
	}
	startLoad(t, strings.Join(c.nats, ","), "orders", 20, func(o *producer.Options) {
		o.NATS = []nats.Option{key, nats.CustomInboxPrefix(subjects.InboxOf("producer"))}
	})
	base := c.balancer.url()
	for _, path := range []string{"/", "/json/list", "/metrics", "/t/wrong/json/list"} {
		if status := statusOf(t, base+path); status != http.StatusUnauthorized {
			t.Errorf("%s without a token: %d", path, status)
		}
	}
	if status := statusOf(t, base+"/client.js"); status != http.StatusOK {
		t.Errorf("the pages' script: %d", status)
	}
	mine := base + "/t/" + c.token
	explained(t, patience, func() (bool, string) {
		one, other := rows(t, mine, "orders-1"), rows(t, mine, "orders-1")
		return len(one) == 1 && len(other) == 1, fmt.Sprintf("both gateways list the source: %+v", list(t, mine))
	})
	var link string
	for _, e := range list(t, mine) {
		if e.ID == "dev.orders-1" {
			link = e.WebSocketDebuggerURL
		}
	}
	if !strings.HasPrefix(link, "ws"+strings.TrimPrefix(mine, "http")+"/") {
		t.Fatalf("the link %q does not lead through the load balancer %s", link, base)
	}
	var open []*devTools
	for range 4 {
		open = append(open, dialURL(t, link))
	}
	first := backendOf(t, open[0])
	for i, d := range open[1:] {
		if got := backendOf(t, d); got != first {
			t.Errorf("connection %d sees the node %s, another one %s", i+2, got, first)
		}
	}
	for _, name := range []string{"gateway-1", "gateway-2"} {
		if text := fetch(t, "http://"+c.ready[name].Admin+"/metrics"); !strings.Contains(text, `natscope_gateway_connections{space="dev"} 2`) {
			t.Errorf("%s does not serve two of four connections", name)
		}
	}
	// Nothing can be polled for here: what counts is that nothing happens, for
	// longer than the load balancer waits for a word. The gateways' pings are words.
	time.Sleep(c.balancer.idle + 2*time.Second)
	for i, d := range open {
		if err := d.lost(); err != nil {
			t.Fatalf("quiet connection %d was cut: %v", i+1, err)
		}
	}
	c.parts["gateway-1"].kill()
	var lost, kept int
	until(t, patience, "the killed gateway's connections end", func() bool {
		lost, kept = 0, 0
		for _, d := range open {
			if d.lost() != nil {
				lost++
			} else {
				kept++
			}
		}
		return lost == 2
	})
	if kept != 2 {
		t.Errorf("%d connections of the other gateway live", kept)
	}
	for range 2 {
		if got := backendOf(t, dialURL(t, link)); got != first {
			t.Errorf("after the reconnect the node is %s, before it was %s", got, first)
		}
	}
	// The other one is stopped in order, and says so.
	c.parts["gateway-2"].signal(syscall.SIGTERM)
	for _, d := range open {
		if d.lost() != nil && len(d.events("Inspector.detached")) == 0 {
			continue // It was the killed one's.
		}
		until(t, patience, "DevTools hears that the gateway stops", func() bool {
			e := d.events("Inspector.detached")
			return len(e) == 1 && strings.Contains(string(e[0]), "stopping") && d.lost() != nil
		})
	}
}

// dialURL opens a DevTools connection to an address of /json/list.
func dialURL(t testing.TB, link string) *devTools {
	t.Helper()
	u, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	base, target, ok := strings.Cut(u.Path, "/devtools/page/")
	if !ok {
		t.Fatalf("%s is no target", link)
	}
	return dial(t, "http://"+u.Host+base, target)
}

// backendOf returns the id of the deepest first node, which every gateway must agree on.
func backendOf(t testing.TB, d *devTools) string {
	t.Helper()
	m := d.call("DOM.getDocument", map[string]any{"depth": -1})
	type node struct {
		BackendNodeID int64  `json:"backendNodeId"`
		NodeName      string `json:"nodeName"`
		Children      []node `json:"children"`
	}
	var r struct {
		Root node `json:"root"`
	}
	if err := json.Unmarshal(m.Result, &r); err != nil {
		t.Fatalf("%s: %v", m.Result, err)
	}
	n := r.Root
	for len(n.Children) > 0 && n.NodeName != "orders" {
		n = n.Children[0]
	}
	if n.NodeName != "orders" {
		t.Fatalf("no node of the source in %.400s", m.Result)
	}
	return fmt.Sprintf("%s %d", n.NodeName, n.BackendNodeID)
}

func statusOf(t testing.TB, url string) int {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	return res.StatusCode
}

func fetch(t testing.TB, url string) string {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
