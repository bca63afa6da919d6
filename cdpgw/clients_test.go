package cdpgw

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/remote"
)

// chromedp works on a target: its strict types take every answer and event.
func TestChromedp(t *testing.T) {
	m := shop(t)
	_, server := serve(t, m)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := remote.DialContext(ctx, "ws"+strings.TrimPrefix(server.URL, "http")+targetPath+"dev")
	if err != nil {
		t.Fatal(err)
	}
	b, err := chromedp.NewBrowserTransport(ctx, conn, chromedp.WithBrowserErrorf(t.Errorf))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { cancel(); <-b.LostConnection }()

	tree, err := cdp.Call(ctx, b, page.GetResourceTree, cdp.Empty{})
	if err != nil || len(tree.FrameTree.ChildFrames) != 3 {
		t.Fatalf("%v %+v", err, tree.FrameTree)
	}
	doc, err := cdp.Call(ctx, b, dom.GetDocument, dom.GetDocumentParams{Depth: new(int64(-1))})
	if err != nil || doc.Root.Children[0].NodeName != "workspace" {
		t.Fatalf("%v %+v", err, doc.Root)
	}
	search, err := cdp.Call(ctx, b, dom.PerformSearch, dom.PerformSearchParams{Query: "host Route"})
	if err != nil || search.ResultCount != 1 {
		t.Fatalf("%v %+v", err, search)
	}
	results, err := cdp.Call(ctx, b, dom.GetSearchResults, dom.GetSearchResultsParams{SearchID: search.SearchID, ToIndex: 1})
	if err != nil || len(results.NodeIDs) != 1 {
		t.Fatalf("%v %+v", err, results)
	}
	all, err := cdp.Call(ctx, b, dom.QuerySelectorAll, dom.QuerySelectorAllParams{NodeID: doc.Root.NodeID, Selector: "Worker, Route"})
	if err != nil || len(all.NodeIDs) != 2 || all.NodeIDs[1] != results.NodeIDs[0] {
		t.Fatalf("%v %+v", err, all)
	}
	described, err := cdp.Call(ctx, b, dom.DescribeNode, dom.DescribeNodeParams{NodeID: all.NodeIDs[0], Depth: new(int64(-1)), Pierce: new(true)})
	if err != nil || described.Node.NodeName != "Worker" || len(described.Node.Children) != 1 {
		t.Fatalf("%v %+v", err, described.Node)
	}
	lines := cdp.Events(ctx, b, runtime.ConsoleAPICalled)
	if _, err := cdp.Call(ctx, b, runtime.Enable, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	for e, err := range lines {
		if err != nil || len(e.Args) != 3 {
			t.Errorf("%v %+v", err, e)
		}
		break
	}
	requests := cdp.Events(ctx, b, network.RequestWillBeSent)
	if _, err := cdp.Call(ctx, b, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	for e, err := range requests {
		if err != nil {
			t.Fatal(err)
		}
		body, err := cdp.Call(ctx, b, network.GetResponseBody, network.GetResponseBodyParams{RequestID: e.RequestID})
		if err != nil || string(body.Body) != "hello" {
			t.Errorf("%v %+v", err, body)
		}
		break
	}
}

// chrome-remote-interface builds its API from /json/protocol, finds targets by /json/list and works on them.
func TestChromeRemoteInterface(t *testing.T) {
	if _, err := os.Stat("testdata/clients/node_modules/chrome-remote-interface"); err != nil {
		t.Fatalf("the npm packages of this test are missing; run scripts/test, or npm ci in cdpgw/testdata/clients: %v", err)
	}
	_, server := serve(t, shop(t))
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "cri.mjs", strings.TrimPrefix(server.URL, "http://"))
	cmd.Dir = "testdata/clients"
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	want := "targets dev dev.orders dev.billing dev.page\nroot workspace\n" +
		"search 1 <Router><Route path=\"/cart\"></Route></Router>\nquery path=/cart\nflattened 12\n" +
		"line ready 1 object\nbody hello\nsources orders, Billing Service, shop\nunknown 'Runtime.noSuchMethod' wasn't found\n"
	if string(out) != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
}
