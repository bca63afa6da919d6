package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/subjects"
)

// The connections of BenchmarkConnections, and how long the busy ones are.
const (
	idleConnections = 1000
	busyConnections = 100
	busyLines       = 3000
	busyRate        = time.Millisecond
)

// gatewayProcess is natscope up in a process of its own, whose memory can be told from ours.
type gatewayProcess struct {
	pid        int
	HTTP, NATS string
}

func startProcess(b *testing.B) gatewayProcess {
	b.Helper()
	binary := filepath.Join(b.TempDir(), "natscope")
	if out, err := exec.Command("go", "build", "-o", binary, "../../cmd/natscope").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(binary, "up", "--port", "0", "--nats-port", "0", "--ready-json")
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		b.Fatal(err)
	}
	p := gatewayProcess{pid: cmd.Process.Pid}
	if err := json.Unmarshal(line, &p); err != nil {
		b.Fatal(err)
	}
	return p
}

// resident is the resident memory of the process, in bytes.
func (p gatewayProcess) resident(b *testing.B) float64 {
	b.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid))
	if err != nil {
		b.Skipf("the memory of another process is read from /proc: %v", err)
	}
	m := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(data)
	n, err := strconv.Atoi(string(m[1]))
	if err != nil {
		b.Fatal(err)
	}
	return float64(n) * 1024
}

// opening is what a DevTools asks for before it is quiet.
var opening = []string{"Page.enable", "Page.getResourceTree", "DOM.enable", "DOM.getDocument", "Runtime.enable", "Network.enable", "Log.enable", "Debugger.enable", "CSS.enable", "Overlay.enable"}

// open connects a DevTools, lets it say what DevTools says first, and waits for the last answer.
func (p gatewayProcess) open(b *testing.B) *websocket.Conn {
	b.Helper()
	d := websocket.Dialer{ReadBufferSize: 1 << 10, WriteBufferSize: 1 << 10, HandshakeTimeout: patience}
	ws, _, err := d.Dial("ws"+strings.TrimPrefix(p.HTTP, "http")+"/devtools/page/dev", nil)
	if err != nil {
		b.Fatal(err)
	}
	for i, m := range opening {
		if err := ws.WriteJSON(map[string]any{"id": i + 1, "method": m}); err != nil {
			b.Fatal(err)
		}
	}
	for {
		var answer struct {
			ID int `json:"id"`
		}
		if err := ws.ReadJSON(&answer); err != nil {
			b.Fatal(err)
		}
		if answer.ID == len(opening) {
			return ws
		}
	}
}

// BenchmarkConnections is one gateway process with a thousand DevTools that only
// look, and with a hundred that are sent every line of a busy source: the memory
// of the former, and how late a line is at the latter.
func BenchmarkConnections(b *testing.B) {
	for b.Loop() {
		p := startProcess(b)
		src, err := producer.Start(producer.Options{ID: "busy", Service: "busy", URL: p.NATS})
		if err != nil {
			b.Fatal(err)
		}
		if err := src.Flush(context.Background()); err != nil {
			b.Fatal(err)
		}
		first := p.open(b)
		before := p.resident(b)
		var idle []*websocket.Conn
		for range idleConnections {
			idle = append(idle, p.open(b))
		}
		b.ReportMetric((p.resident(b)-before)/(1<<20), "idle-MiB")
		for _, ws := range append(idle, first) {
			_ = ws.Close()
		}
		late, lost := p.busy(b, src)
		b.ReportMetric(float64(late[len(late)/2])/1e6, "busy-p50-ms")
		b.ReportMetric(float64(late[len(late)*99/100])/1e6, "busy-p99-ms")
		b.ReportMetric(float64(lost), "busy-lost")
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		_ = src.Close(ctx)
		cancel()
	}
}

// busy publishes lines to a hundred connections and returns how late each was at each, and how many are missing.
func (p gatewayProcess) busy(b *testing.B, src *producer.Producer) (late []time.Duration, lost int64) {
	b.Helper()
	sent := make([]atomic.Int64, busyLines)
	var mu sync.Mutex
	var wg sync.WaitGroup
	var got atomic.Int64
	number := regexp.MustCompile(`"line (\d+)"`)
	for range busyConnections {
		ws := p.open(b)
		wg.Go(func() {
			defer func() { _ = ws.Close() }()
			var mine []time.Duration
			for n := 0; n < busyLines; {
				_ = ws.SetReadDeadline(time.Now().Add(10 * time.Second))
				_, data, err := ws.ReadMessage()
				if err != nil {
					break
				}
				if m := number.FindSubmatch(data); m != nil {
					i, _ := strconv.Atoi(string(m[1]))
					mine = append(mine, time.Since(time.Unix(0, sent[i].Load())))
					n++
				}
			}
			got.Add(int64(len(mine)))
			mu.Lock()
			defer mu.Unlock()
			late = append(late, mine...)
		})
	}
	tick := time.NewTicker(busyRate)
	defer tick.Stop()
	for i := range busyLines {
		<-tick.C
		sent[i].Store(time.Now().UnixNano())
		src.Record(subjects.PlaneConsole, "message", map[string]any{"type": "log", "args": []string{fmt.Sprintf("line %d", i)}})
	}
	wg.Wait()
	if len(late) == 0 {
		b.Fatal("no line arrived")
	}
	slices.Sort(late)
	return late, busyConnections*busyLines - got.Load()
}
