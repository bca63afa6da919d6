package treecap_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/producer/treecap"
)

// The parts of a program become elements. They are added, changed and removed
// from any goroutine, as they come and go.
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

	workers := t.Root().Add("workers", treecap.Here())
	one := workers.Add("worker", treecap.Kind("worker"), treecap.Attr("state", "idle"))
	one.Set("state", "busy")
	one.Set("since", 250*time.Millisecond)
	one.SetText("order 17")
	one.Remove()

	// In Elements: <orders><workers></workers></orders>
	fmt.Println("shown")
	// Output: shown
}

// pool is a long-lived part of a program.
type pool struct {
	mu    sync.Mutex
	Size  int
	Idle  int
	Jobs  map[string]int
	owner string
}

// resize is what people may do with a pool while the program runs.
func (p *pool) resize(n int) error {
	if n < 1 || n > 64 {
		return fmt.Errorf("%d is not between 1 and 64", n)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Size = n
	return nil
}

// A long-lived Go value is registered once; its exported fields are shown, and
// those with a setter can be edited.
func ExampleTree_Register() {
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

	workers := &pool{Size: 4, Idle: 4, Jobs: map[string]int{}, owner: "orders"}
	shown := t.Register(nil, "pool", workers,
		treecap.Locked(&workers.mu),
		treecap.Writable("Size", workers.resize),
		treecap.Computed("owner", func() any { return workers.owner }))
	defer shown.Close()

	workers.mu.Lock()
	workers.Idle--
	workers.Jobs["mail"]++
	shown.Update()
	workers.mu.Unlock()

	// What an edit in Elements does, on the second node of the tree.
	fmt.Println(t.Edit(2, "Size", []byte("8")), workers.Size)
	fmt.Println(t.Edit(2, "Size", []byte("800")))
	// Output:
	// <nil> 8
	// treecap: refused: node 2: Size: 800 is not between 1 and 64
}
