package treecap_test

import (
	"context"
	"fmt"
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
