package shop

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/natscope/natscope/producer/treecap"
)

// worker does one kind of job again and again.
type worker struct {
	name string
	// every is how many intervals pass between two jobs.
	every int
	// pace says how long that is for a worker whose pace can change; nil for the others.
	pace func() time.Duration
	// job does the n-th job, from 1.
	job func(ctx context.Context, n int) error
	// forever says that a job lasts until the shop closes or its stream breaks.
	forever bool
}

// jobTimeout ends a job that hangs.
const jobTimeout = 30 * time.Second

// closedPort is an address on which nothing listens: a port that is reserved and out of use.
const closedPort = "http://127.0.0.1:1/api/rates"

// work starts the workers and the packing room.
func (s *Shop) work() {
	workers := []worker{
		{name: "pricing", pace: s.pricing.pace, job: s.changePrice},
		{name: "comparison", every: 2, job: s.readPrices},
		{name: "checkout", every: 3, job: s.placeOrder},
		{name: "delivery", every: 5, job: s.takeDelivery},
		{name: "payments", every: 7, job: s.chargeCard},
		{name: "reports", every: 8, job: s.readReport},
		{name: "rates", every: 11, job: s.readRates},
		{name: "kitchen", every: 1, job: s.cook, forever: true},
		{name: "subscriber", every: 1, job: s.followPrices, forever: true},
	}
	for _, w := range workers {
		node := s.view.workers.Add("worker", treecap.Attr("name", w.name), treecap.Attr("state", "idle"), treecap.Attr("jobs", 0))
		s.jobs.Go(func() { s.run(w, node) })
	}
	s.jobs.Go(func() { s.packer.run(s.life) })
}

// run is a worker's life.
func (s *Shop) run(w worker, node *treecap.Node) {
	failures := 0
	pace := w.pace
	if pace == nil {
		pace = func() time.Duration { return time.Duration(w.every) * s.opts.Interval }
	}
	for n := 1; pause(s.life, pace()); n++ {
		node.Set("state", "working")
		err := s.do(w, n)
		if s.life.Err() != nil {
			return
		}
		node.Set("state", "idle")
		node.Set("jobs", n)
		if err != nil {
			failures++
			node.Set("failures", failures)
			s.log.Error("job failed", "worker", w.name, "job", n, "err", err)
		}
	}
}

func (s *Shop) do(w worker, n int) error {
	if w.forever {
		return w.job(s.life, n)
	}
	ctx, cancel := context.WithTimeout(s.life, jobTimeout)
	defer cancel()
	return w.job(ctx, n)
}

// readPrices looks at the products as a price comparison would.
func (s *Shop) readPrices(ctx context.Context, n int) error {
	var products []Product
	if err := s.call(ctx, http.MethodGet, "/api/products", nil, &products); err != nil {
		return fmt.Errorf("read prices: %w", err)
	}
	s.log.Debug("prices read", "products", len(products), "round", n)
	return nil
}

// placeOrder orders two products, in turn.
func (s *Shop) placeOrder(ctx context.Context, n int) error {
	products := s.stock.list()
	o := Order{
		Customer: []string{"Ada", "Grace", "Edsger", "Barbara"}[n%4],
		Items: []OrderItem{
			{SKU: products[n%len(products)].SKU, Quantity: 1 + n%3},
			{SKU: products[(n+2)%len(products)].SKU, Quantity: 1},
		},
	}
	var r Receipt
	if err := s.call(ctx, http.MethodPost, "/api/orders", o, &r); err != nil {
		return fmt.Errorf("place order for %s: %w", o.Customer, err)
	}
	s.log.Info("order placed", "order", map[string]any{"id": r.Order, "customer": o.Customer, "items": r.Items, "total": euros(r.Cents)})
	return nil
}

// takeDelivery fills up the stock.
func (s *Shop) takeDelivery(_ context.Context, _ int) error {
	if n := s.stock.restock(); n > 0 {
		s.log.Info("delivery arrived", "products", n)
	}
	return nil
}

// chargeCard always fails: its error shows a chain of causes.
func (s *Shop) chargeCard(ctx context.Context, n int) error {
	if err := s.call(ctx, http.MethodGet, fmt.Sprintf("/api/fail?charge=%d", n), nil, nil); err != nil {
		return fmt.Errorf("charge %d: %w", n, err)
	}
	return nil
}

// readReport asks for something that takes its time.
func (s *Shop) readReport(ctx context.Context, _ int) error {
	start := time.Now()
	if err := s.call(ctx, http.MethodGet, "/api/slow", nil, nil); err != nil {
		return fmt.Errorf("read report: %w", err)
	}
	s.log.Info("report read", "took", time.Since(start).Round(time.Millisecond))
	return nil
}

// readRates calls a partner that is not there.
func (s *Shop) readRates(ctx context.Context, _ int) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, closedPort, nil)
	if err != nil {
		return err
	}
	resp, err := s.client.Do(req)
	if err != nil {
		s.log.Warn("exchange rates are not available", "err", err)
		return nil
	}
	return resp.Body.Close()
}

// errStatus is an answer that is no success.
var errStatus = errors.New("unexpected status")

// call makes one request of the shop's own API. in is sent as JSON if it is not
// nil, the answer is read into out if that is not nil.
func (s *Shop) call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, body)
	if err != nil {
		return err
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if resp.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %w %s: %s", method, path, errStatus, resp.Status, bytes.TrimSpace(answer))
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}
