package shop

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/natscope/natscope/producer/goreal"
)

// maxSales is how many sales the ledger remembers.
const maxSales = 200

// Sale is an order that was taken.
type Sale struct {
	Receipt
	// At is when it was taken.
	At time.Time
	// Customer and Items are what was ordered, by whom.
	Customer string
	Items    []OrderItem
}

// Average is what one item of the sale cost, in cents.
func (s *Sale) Average() float64 { return float64(s.Cents) / float64(max(s.Receipt.Items, 1)) }

// ledger is what the shop sold. It is exposed in the Console, where it can be
// asked anything: ledger.Sales[3].Items, ledger.Top(3). Its mutex tells how it
// is read, so that it needs no guard.
type ledger struct {
	mu sync.Mutex // guards all below
	// Sales are the newest sales by their numbers.
	Sales map[int]*Sale
	// ByCustomer is what each customer spent, in cents.
	ByCustomer map[string]int
	// LastRefusal is why an order was refused last.
	LastRefusal error
	// Opened is when the shop opened.
	Opened time.Time
}

func newLedger() *ledger {
	return &ledger{Sales: make(map[int]*Sale), ByCustomer: make(map[string]int), Opened: time.Now()}
}

// add notes a sale.
func (l *ledger) add(r Receipt, o Order) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Sales[r.Order] = &Sale{Receipt: r, At: time.Now(), Customer: o.Customer, Items: o.Items}
	delete(l.Sales, r.Order-maxSales)
	if _, known := l.ByCustomer[o.Customer]; known || len(l.ByCustomer) < maxSales {
		l.ByCustomer[o.Customer] += r.Cents
	}
}

// refused notes an order that was refused.
func (l *ledger) refused(o Order, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.LastRefusal = fmt.Errorf("order of %s: %w", o.Customer, err)
}

// Top returns the n largest sales. It is for the Console.
func (l *ledger) Top(n int) []*Sale {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]*Sale, 0, len(l.Sales))
	for _, s := range l.Sales {
		out = append(out, s)
	}
	sortSales(out)
	return out[:max(0, min(n, len(out)))]
}

// sortSales puts the largest sale first; of equal ones, the earliest.
func sortSales(list []*Sale) {
	slices.SortFunc(list, func(a, b *Sale) int {
		return cmp.Or(cmp.Compare(b.Cents, a.Cents), cmp.Compare(a.Order, b.Order))
	})
}

// expose shows the shop's own objects in the Console. Whatever is reached from
// them is read under their locks.
func (s *Shop) expose() error {
	return errors.Join(
		s.realm.Expose("ledger", s.ledger, nil),
		s.realm.Expose("inventory", s.stock, nil),
		s.realm.Expose("pricing", s.pricing, nil),
		s.realm.Expose("settings", s.opts, goreal.Immutable),
		s.realm.Expose("memory", goreal.Snapshot(func() any { return readMemory() }), nil),
	)
}

// readMemory tells a little of the program's memory.
func readMemory() map[string]uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return map[string]uint64{"alloc": m.Alloc, "sys": m.Sys, "collections": uint64(m.NumGC)}
}
