package producer_test

import (
	"context"
	"fmt"
	"time"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/console"
	"github.com/natscope/natscope/subjects/source"
)

// A program becomes a source with one call. Nothing waits for NATS: what is
// recorded before the connection stands goes out when it does.
func Example() {
	p, err := producer.Start(producer.Options{
		Service: "orders", Instance: "eu-1", Name: "Orders",
		Describe: func(d *source.Descriptor) { d.URL = "http://orders.internal/" },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() {
		// Close sends what waits, at most as long as the context allows.
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		defer cancel()
		_ = p.Close(ctx)
	}()

	p.Record(subjects.PlaneConsole, console.TopicMessage, console.Message{Type: "log"})
	fmt.Println(p.ID(), p.Space())
	// Output: orders-eu-1 dev
}

// Publish carries events of the application's own; what JSON would change is refused.
func ExampleProducer_Publish() {
	p, err := producer.Start(producer.Options{Service: "orders", Instance: "eu-1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		defer cancel()
		_ = p.Close(ctx)
	}()

	fmt.Println(p.Publish("orders.created", map[string]any{"id": 17, "total": 12.5}))
	fmt.Println(p.Publish("orders.created", make(chan int)))
	// Output:
	// <nil>
	// producer: payload is not lossless JSON: topic "orders.created": json: unsupported type: chan int
}

// A body is captured beside the application's own use of it. What passes the
// limit is counted and not kept.
func ExampleProducer_Body() {
	p, err := producer.Start(producer.Options{Service: "orders", Instance: "eu-1", Limits: subjects.Limits{ResponseBodyBytes: 8}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		defer cancel()
		_ = p.Close(ctx)
	}()

	b := p.Body("r1", subjects.ResponseBody)
	b.Write([]byte("hello, "))
	b.Write([]byte("world"))
	b.End(subjects.BodyComplete, 12)
	fmt.Println(b.Captured(), b.Truncated())
	// Output: 8 true
}
