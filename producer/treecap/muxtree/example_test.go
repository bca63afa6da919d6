package muxtree_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/producer/treecap"
	"github.com/natscope/natscope/producer/treecap/muxtree"
)

// The routes of a server appear as they are registered, and count their requests.
func Example() {
	p, err := producer.Start(producer.Options{Service: "greeter"})
	if err != nil {
		fmt.Println(err)
		return
	}
	t := treecap.New(p, treecap.Options{RootName: "greeter"})
	defer func() {
		t.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		defer cancel()
		_ = p.Close(ctx)
	}()

	mux := muxtree.New(t.Root().Add("routes"), http.NewServeMux())
	mux.HandleFunc("GET /hello/{name}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "Hello %s!", r.PathValue("name"))
	})
	server := httptest.NewServer(mux)
	defer server.Close()

	resp, err := server.Client().Get(server.URL + "/hello/Ada")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	fmt.Println(string(body), err)
	// In Elements: <route method="GET" pattern="/hello/{name}" count="1" active="0" status="200" took="20µs">
	// Output: Hello Ada! <nil>
}
