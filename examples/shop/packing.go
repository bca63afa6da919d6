package shop

import (
	"context"
	"sync"
	"time"

	"github.com/natscope/natscope/producer/treecap"
)

const (
	// maxWaiting is how many orders wait for a packer; more are packed by someone else.
	maxWaiting = 16
	// maxPackers is how many orders are packed at a time.
	maxPackers = 4
)

// packingRoom packs orders. Each order has a packer, a worker node that comes,
// changes its state and goes.
type packingRoom struct {
	view     *view
	interval time.Duration
	orders   chan Receipt
}

func newPackingRoom(v *view, interval time.Duration) *packingRoom {
	return &packingRoom{view: v, interval: interval, orders: make(chan Receipt, maxWaiting)}
}

// accept takes an order if there is room for it.
func (p *packingRoom) accept(r Receipt) {
	select {
	case p.orders <- r:
	default:
	}
}

// run packs until ctx ends.
func (p *packingRoom) run(ctx context.Context) {
	var packers sync.WaitGroup
	defer packers.Wait()
	free := make(chan struct{}, maxPackers)
	for {
		select {
		case <-ctx.Done():
			return
		case free <- struct{}{}:
		}
		select {
		case <-ctx.Done():
			return
		case r := <-p.orders:
			packers.Go(func() {
				p.pack(ctx, r)
				<-free
			})
		}
	}
}

// pack is the life of one packer.
func (p *packingRoom) pack(ctx context.Context, r Receipt) {
	node := p.view.workers.Add("worker", treecap.Attr("name", "packer"), treecap.Attr("order", r.Order), treecap.Attr("packed", 0))
	defer node.Remove()
	for n := range r.Items {
		node.Set("state", "packing")
		if !pause(ctx, p.interval) {
			return
		}
		node.Set("packed", n+1)
	}
	node.Set("state", "shipping")
	pause(ctx, p.interval)
}
