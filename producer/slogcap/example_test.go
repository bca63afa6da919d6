package slogcap_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/producer/slogcap"
)

// Every line goes to the Console and, as before, to the handler that was there.
func Example() {
	p, err := producer.Start(producer.Options{Service: "orders"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		defer cancel()
		_ = p.Close(ctx)
	}()

	text := slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})
	log := slog.New(slogcap.New(p, text, slogcap.Options{Level: slog.LevelDebug}))
	log.With("order", 17).Warn("card refused", "tries", 2)
	// Output: level=WARN msg="card refused" order=17 tries=2
}
