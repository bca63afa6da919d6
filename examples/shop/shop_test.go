package shop

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	code := m.Run()
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// open starts a shop for one test; NATS is not there unless the test says so.
func open(t *testing.T, o Options) *Shop {
	t.Helper()
	if o.NATS == "" {
		o.NATS = "nats://127.0.0.1:1"
	}
	o.Instance = "test"
	s, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shut(t, s) })
	return s
}

// shut closes a shop. Without NATS the goodbye cannot be delivered, which is no failure of the shop.
func shut(t *testing.T, s *Shop) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	if err := s.Close(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("close: %v", err)
	}
}

func get(t *testing.T, url string) (*http.Response, string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

func TestPage(t *testing.T) {
	const script = "http://127.0.0.1:9230/client.js?token=abc-123"
	s := open(t, Options{ClientScript: script, Interval: time.Hour})
	resp, body := get(t, s.URL()+"/")
	if resp.StatusCode != 200 || !strings.Contains(body, `<script type="module" src="`+script+`"></script>`) || !strings.Contains(body, `src="/page.js"`) {
		t.Errorf("%s\n%s", resp.Status, body)
	}
	for path, mime := range map[string]string{"/page.js": "text/javascript", "/api.js": "text/javascript", "/components.js": "text/javascript", "/page.css": "text/css"} {
		if resp, _ := get(t, s.URL()+path); resp.StatusCode != 200 || !strings.HasPrefix(resp.Header.Get("Content-Type"), mime) {
			t.Errorf("%s: %s %s", path, resp.Status, resp.Header.Get("Content-Type"))
		}
	}
	if resp, _ := get(t, s.URL()+"/nothing"); resp.StatusCode != 404 {
		t.Errorf("/nothing: %s", resp.Status)
	}
	without := open(t, Options{Interval: time.Hour})
	if _, body := get(t, without.URL()+"/"); strings.Contains(body, "client.js") {
		t.Error("a page without ClientScript names the script")
	}
}

func TestAPI(t *testing.T) {
	s := open(t, Options{Interval: 10 * time.Millisecond})
	for _, c := range []struct {
		name, method, path, body string
		status                   int
		answer                   string
	}{
		{"products", "GET", "/api/products", "", 200, `"sku":"espresso"`},
		{"order", "POST", "/api/orders", `{"customer":"Ada","items":[{"sku":"mug","quantity":2}]}`, 201, `"items":2`},
		{"too many", "POST", "/api/orders", `{"items":[{"sku":"mug","quantity":100}]}`, 409, "sold out"},
		{"unknown product", "POST", "/api/orders", `{"items":[{"sku":"tea","quantity":1}]}`, 404, "no such product"},
		{"no items", "POST", "/api/orders", `{}`, 400, "no items"},
		{"negative", "POST", "/api/orders", `{"items":[{"sku":"mug","quantity":-5}]}`, 400, "not between"},
		{"not JSON", "POST", "/api/orders", `hello`, 400, "not JSON"},
		{"too large", "POST", "/api/orders", `{"customer":"` + strings.Repeat("x", maxOrder) + `"}`, 400, "too large"},
		{"wrong method", "DELETE", "/api/orders", "", 405, ""},
		{"slow", "GET", "/api/slow", "", 200, "report"},
		{"fail", "GET", "/api/fail", "", 500, "payment provider"},
	} {
		t.Run(c.name, func(t *testing.T) {
			req, err := http.NewRequest(c.method, s.URL()+c.path, strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode != c.status || !strings.Contains(string(body), c.answer) {
				t.Errorf("%s: %s", resp.Status, body)
			}
		})
	}
}

// TestStream reads two price changes and leaves the stream open: Close must not wait for it.
func TestStream(t *testing.T) {
	s := open(t, Options{Interval: 5 * time.Millisecond})
	resp, err := http.Get(s.URL() + "/api/stream")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if ct := resp.Header.Get("Content-Type"); ct != "text/event-stream" {
		t.Errorf("content type %q", ct)
	}
	lines := bufio.NewReader(resp.Body)
	seen := 0
	for seen < 2 {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(line, "data: ") {
			seen++
		}
	}
	shut(t, s)
}

func TestStartRefusesBadOptions(t *testing.T) {
	for _, o := range []Options{{Addr: "no port"}, {Interval: -1}} {
		if _, err := Start(t.Context(), o); !errors.Is(err, ErrOptions) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := Start(t.Context(), Options{Addr: l.Addr().String()}); err == nil || !strings.Contains(err.Error(), "port 0") {
		t.Errorf("an occupied port: %v", err)
	}
}

func TestInventoryTakesAllOrNothing(t *testing.T) {
	s := open(t, Options{Interval: time.Hour})
	before := fmt.Sprint(s.stock.list())
	_, _, err := s.stock.order(Order{Items: []OrderItem{{"espresso", 2}, {"mug", 20}, {"mug", 20}}})
	if !errors.Is(err, ErrSoldOut) {
		t.Errorf("order: %v", err)
	}
	if after := fmt.Sprint(s.stock.list()); after != before {
		t.Errorf("a refused order changed the stock from %s to %s", before, after)
	}
	r, low, err := s.stock.order(Order{Items: []OrderItem{{"mug", 20}}})
	if err != nil || r.Order != 1 || r.Items != 20 || len(low) != 1 {
		t.Errorf("receipt %+v, low %v, %v", r, low, err)
	}
	if n := s.stock.restock(); n != 1 {
		t.Errorf("%d products restocked, want 1", n)
	}
}

func TestPricesMoveAndReturn(t *testing.T) {
	s := open(t, Options{Interval: time.Hour})
	before := fmt.Sprint(s.stock.list())
	n := 2 * s.stock.len()
	for turn := range n {
		s.stock.reprice(turn)
		if turn == n/2-1 && fmt.Sprint(s.stock.list()) == before {
			t.Error("no price moved")
		}
	}
	if after := fmt.Sprint(s.stock.list()); after != before {
		t.Errorf("after a round up and down: %s, before: %s", after, before)
	}
}

// What people set in Elements is checked by the shop, and its pages hear of it.
func TestProductsCanBeEdited(t *testing.T) {
	s := open(t, Options{Interval: time.Hour})
	changes, stop := s.board.listen()
	defer stop()
	p := &s.stock.products[1]
	for _, edit := range []struct {
		err  error
		want bool
	}{
		{s.stock.setStock(p, 7), true}, {s.stock.setStock(p, -1), false}, {s.stock.setStock(p, maxStock+1), false},
		{s.stock.setCents(p, 999), true}, {s.stock.setCents(p, 0), false},
	} {
		if (edit.err == nil) != edit.want {
			t.Errorf("an edit: %v", edit.err)
		}
	}
	first, second := <-changes, <-changes
	if now := s.stock.list()[1]; now.Stock != 7 || now.Cents != 999 || second != now || first.Stock != 7 || len(changes) != 0 {
		t.Errorf("the product is %+v, told were %+v and %+v", now, first, second)
	}
}
