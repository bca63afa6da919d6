package httpcap_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/producer/httpcap"
)

// A service shows all requests that a client makes by wrapping its transport.
// Nothing else changes: without NATS the client works the same.
func ExampleTransport() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "hello")
	}))
	defer server.Close()

	p, err := producer.Start(producer.Options{Service: "orders"})
	if err != nil {
		log.Fatal(err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		p.Close(ctx)
	}()

	client := &http.Client{Transport: httpcap.Transport(p, server.Client().Transport)}
	resp, err := client.Get(server.URL)
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(body))
	// Output: hello
}

// A server shows all requests that it answers by wrapping its outermost handler.
// Secrets stay in the process; health checks are not worth a row.
func ExampleHandler() {
	p, err := producer.Start(producer.Options{Service: "orders", Redact: producer.RedactSecrets()})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "order", r.PathValue("id"))
	})
	server := &http.Server{Addr: "127.0.0.1:8080", Handler: httpcap.Handler(p, mux,
		httpcap.WithRules(httpcap.Rules{NotPaths: []string{"/healthz"}}),
	)}
	log.Fatal(server.ListenAndServe())
}

// Health checks would only be in the way, and uploads of customers stay private.
func ExampleTransport_options() {
	p, err := producer.Start(producer.Options{Service: "orders"})
	if err != nil {
		log.Fatal(err)
	}
	client := &http.Client{Transport: httpcap.Transport(p, nil,
		httpcap.WithFilter(func(r *http.Request) bool { return r.URL.Path != "/healthz" }),
		httpcap.WithoutBodies(),
	)}
	resp, err := client.Post("http://127.0.0.1:8080/upload", "text/plain", strings.NewReader("private"))
	if err != nil {
		log.Fatal(err)
	}
	resp.Body.Close()
}
