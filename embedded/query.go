package embedded

import (
	"context"
	"fmt"

	"github.com/natscope/natscope/query/engine"
	"github.com/natscope/natscope/query/service"
)

// startQuery answers questions about the space over NATS, from the gateway's replica.
func (i *Instance) startQuery(o Options) error {
	e, err := engine.New(engine.Options{State: i.figures.state, Limits: o.Limits})
	if err != nil {
		return fmt.Errorf("embedded: query: %w", err)
	}
	i.onStop("query engine", func(context.Context) error { e.Close(); return nil })
	s, err := service.Start(service.Options{Conn: i.conn, Space: o.Space, API: e, Limits: o.Limits, Logger: o.Logger})
	if err != nil {
		return fmt.Errorf("embedded: query: %w", err)
	}
	i.onStop("query service", s.Close)
	return nil
}
