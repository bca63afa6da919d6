package proctree_test

import (
	"context"
	"fmt"
	"time"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/producer/treecap"
	"github.com/natscope/natscope/producer/treecap/proctree"
)

// The process needs nothing to be registered.
func Example() {
	p, err := producer.Start(producer.Options{Service: "orders"})
	if err != nil {
		fmt.Println(err)
		return
	}
	t := treecap.New(p, treecap.Options{RootName: "orders"})
	defer func() {
		t.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		defer cancel()
		_ = p.Close(ctx)
	}()

	process := proctree.New(t, nil, proctree.Options{})
	defer process.Close()
	process.Refresh()
	// In Elements: <process pid="4711" …>, and in it <build module="example.com/orders" …>,
	// <memory heap="2.10 MiB" …> and <goroutines count="12">, with a group for each
	// place where goroutines were created and each state.
	fmt.Println("shown")
	// Output: shown
}
