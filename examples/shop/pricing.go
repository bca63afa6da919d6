package shop

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/natscope/natscope/producer/treecap"
)

// The bounds between which people may set the pace of price changes.
const (
	minPricing = 100 * time.Millisecond
	maxPricing = time.Minute
)

// pricing decides when prices change. It is registered as a live value: its
// exported fields are shown, and two of them can be edited while the shop runs.
type pricing struct {
	shown *treecap.Component

	mu sync.Mutex // guards all below
	// Interval is the time between two changes.
	Interval time.Duration
	// Paused leaves all prices as they are.
	Paused bool
	// Changes counts the changes, Product is what the last one was about.
	Changes int
	Product Product
}

func newPricing(t *treecap.Tree, interval time.Duration) *pricing {
	p := &pricing{Interval: interval}
	p.shown = t.Register(nil, "pricing", p, treecap.Locked(&p.mu),
		treecap.Writable("Interval", p.setInterval), treecap.Writable("Paused", p.setPaused))
	return p
}

func (p *pricing) setInterval(d time.Duration) error {
	if d < minPricing || d > maxPricing {
		return fmt.Errorf("%s is not between %s and %s", d, minPricing, maxPricing)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Interval = d
	return nil
}

func (p *pricing) setPaused(on bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Paused = on
	return nil
}

// pace is how long the worker that changes prices waits for its next change.
func (p *pricing) pace() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.Interval
}

// turn returns the number of the next change, from 0; false while prices stay as they are.
func (p *pricing) turn() (int, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.Changes, !p.Paused
}

// changed notes a change.
func (p *pricing) changed(product Product) {
	p.mu.Lock()
	p.Changes++
	p.Product = product
	p.mu.Unlock()
	p.shown.Update()
}

// changePrice is the job of the worker that sets prices.
func (s *Shop) changePrice(context.Context, int) error {
	if turn, ok := s.pricing.turn(); ok {
		product := s.stock.reprice(turn)
		s.board.tell(product)
		s.pricing.changed(product)
	}
	return nil
}
