package embedded

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/nats-io/nats.go"

	"github.com/natscope/natscope/cdpgw"
	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/producer/treecap"
	"github.com/natscope/natscope/store/replica"
)

// element is a node of a document, with what is the same for every client.
type element struct {
	BackendNodeID int64     `json:"backendNodeId"`
	NodeName      string    `json:"nodeName"`
	Attributes    []string  `json:"attributes"`
	Children      []element `json:"children"`
}

// documentOf asks a gateway for the whole document.
func documentOf(t *testing.T, url string) string {
	t.Helper()
	ws, resp, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(url, "http")+"/devtools/page/dev", nil)
	if err != nil {
		t.Fatalf("%v (%v)", err, resp)
	}
	defer ws.Close()
	if err := ws.WriteMessage(websocket.TextMessage, []byte(`{"id":1,"method":"DOM.getDocument","params":{"depth":-1}}`)); err != nil {
		t.Fatal(err)
	}
	for {
		var m struct {
			ID     int
			Result struct{ Root element }
		}
		if err := ws.ReadJSON(&m); err != nil {
			t.Fatal(err)
		}
		if m.ID == 1 {
			b, err := json.Marshal(m.Result.Root)
			if err != nil {
				t.Fatal(err)
			}
			return string(b)
		}
	}
}

// TestTwoGatewaysGiveTheSameIDs follows a changing program with two gateways, of
// which the second one comes when much has happened: an element has one
// BackendNodeID everywhere, whether its gateway saw it come or loaded it.
func TestTwoGatewaysGiveTheSameIDs(t *testing.T) {
	i := startTest(t, Options{})
	p, err := producer.Start(producer.Options{URL: i.NATS(), Service: "works", Instance: "1"})
	if err != nil {
		t.Fatal(err)
	}
	tr := treecap.New(p, treecap.Options{RootName: "service"})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		tr.Close()
		_ = p.Close(ctx)
	})
	var nodes []*treecap.Node
	round := func(n int) {
		for k := range 40 {
			parent := tr.Root()
			if k%3 > 0 && len(nodes) > 0 {
				parent = nodes[(n*7+k)%len(nodes)]
			}
			nodes = append(nodes, parent.Add("part", treecap.Attr("n", fmt.Sprint(n, "-", k))))
		}
		for k := range 10 {
			nodes[(n*11+k*5)%len(nodes)].Remove()
		}
		tr.Root().Set("round", n)
		tr.Flush()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if err := p.Flush(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 10 {
		round(n)
	}

	nc, err := nats.Connect(i.NATS())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	state, err := replica.Open(ctx, replica.Options{Conn: nc, Space: "dev"})
	if err != nil {
		t.Fatal(err)
	}
	defer state.Close()
	late, err := cdpgw.New(cdpgw.Options{State: state, Space: "dev", Conn: nc})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(late.Handler())
	defer func() {
		if err := late.Close(ctx); err != nil {
			t.Error(err)
		}
		server.Close()
	}()
	for n := 10; n < 15; n++ {
		round(n)
		want := fmt.Sprintf(`"round","%d"`, n)
		deadline := time.Now().Add(20 * time.Second)
		for {
			first, second := documentOf(t, i.HTTP()), documentOf(t, server.URL)
			if first == second && strings.Contains(first, want) && strings.Count(first, `"part"`) > 100 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("round %d: the documents are\n%.3000s\nand\n%.3000s", n, first, second)
			}
		}
	}
}
