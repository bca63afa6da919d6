package main

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestMCPOverStandardIO: an agent starts natscope mcp and asks through its pipes.
func TestMCPOverStandardIO(t *testing.T) {
	a := startAsked(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	toServer, fromClient := io.Pipe()
	toClient, fromServer := io.Pipe()
	root := newRoot()
	root.SetArgs([]string{"mcp", "--nats", a.nats})
	root.SetIn(toServer)
	root.SetOut(fromServer)
	done := make(chan error, 1)
	go func() { done <- root.ExecuteContext(ctx) }()
	client := mcp.NewClient(&mcp.Implementation{Name: "script", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.IOTransport{Reader: toClient, Writer: fromClient}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "list_requests", Arguments: map[string]any{"failed": true}})
	if err != nil || r.IsError || !strings.Contains(r.Content[0].(*mcp.TextContent).Text, "/fail") {
		t.Errorf("%+v, %v", r, err)
	}
	_ = session.Close()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("it does not end with its input")
	}
}
