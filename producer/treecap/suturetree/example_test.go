package suturetree_test

import (
	"context"
	"fmt"
	"time"

	"github.com/thejerf/suture/v4"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/producer/treecap"
	"github.com/natscope/natscope/producer/treecap/suturetree"
)

// mailer is a service that has nothing to do.
type mailer struct{ started chan struct{} }

func (m mailer) String() string { return "mailer" }

func (m mailer) Serve(ctx context.Context) error {
	close(m.started)
	<-ctx.Done()
	return ctx.Err()
}

// Supervisors are made by this package instead of suture, and used in the same way.
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

	root := suturetree.New(t.Root(), "orders", suture.Spec{})
	workers := suturetree.New(root.Node(), "workers", suture.Spec{})
	m := mailer{make(chan struct{})}
	workers.Add(m)
	root.Add(workers)

	ctx, cancel := context.WithCancel(context.Background())
	done := root.ServeBackground(ctx)
	<-m.started
	fmt.Println("the mailer runs")
	cancel()
	fmt.Println(<-done)
	// In Elements, while it runs:
	// <supervisor name="orders" state="running">
	//   <supervisor name="workers" state="running" starts="1">
	//     <service name="mailer" state="running" starts="1"></service>
	// Output:
	// the mailer runs
	// context canceled
}
