package shop

import (
	"errors"
	"fmt"
	"sync"
)

// ErrSoldOut says that an order asks for more than there is.
var ErrSoldOut = errors.New("sold out")

// ErrNoSuchProduct says that an order names a product that the shop does not have.
var ErrNoSuchProduct = errors.New("no such product")

// Product is one thing that the shop sells.
type Product struct {
	SKU   string `json:"sku"`
	Name  string `json:"name"`
	Cents int    `json:"cents"`
	Stock int    `json:"stock"`
}

// Order is what a customer wants.
type Order struct {
	Customer string      `json:"customer"`
	Items    []OrderItem `json:"items"`
}

// OrderItem is one line of an order.
type OrderItem struct {
	SKU      string `json:"sku"`
	Quantity int    `json:"quantity"`
}

// Receipt is the answer to an order.
type Receipt struct {
	Order int `json:"order"`
	Cents int `json:"cents"`
	Items int `json:"items"`
}

const (
	// fullStock is how much of each product there is at first and after a delivery.
	fullStock = 24
	// lowStock is when the shop begins to worry.
	lowStock = 6
)

// inventory is what the shop has. It is safe for concurrent use.
type inventory struct {
	view *view

	// tell hears of a product that somebody edited.
	tell func(Product)

	mu       sync.Mutex // guards products and orders
	products []Product
	orders   int
}

func newInventory(v *view, tell func(Product)) *inventory {
	inv := &inventory{view: v, tell: tell, products: []Product{
		{SKU: "espresso", Name: "Espresso beans", Cents: 1390, Stock: fullStock},
		{SKU: "filter", Name: "Filter roast", Cents: 1190, Stock: fullStock},
		{SKU: "kettle", Name: "Gooseneck kettle", Cents: 6900, Stock: fullStock},
		{SKU: "grinder", Name: "Hand grinder", Cents: 8900, Stock: fullStock},
		{SKU: "mug", Name: "Stoneware mug", Cents: 1850, Stock: fullStock},
	}}
	for i := range inv.products {
		v.addItem(inv, &inv.products[i])
	}
	return inv
}

// The bounds of what people may set while the shop runs.
const (
	maxStock = 1000
	maxCents = 1_000_000
)

// edit changes a product as somebody wants it in Elements; the shop's pages hear of it at once.
func (inv *inventory) edit(p *Product, change func(*Product)) {
	inv.mu.Lock()
	change(p)
	now := *p
	inv.mu.Unlock()
	inv.tell(now)
}

func (inv *inventory) setStock(p *Product, n int) error {
	if n < 0 || n > maxStock {
		return fmt.Errorf("there is room for 0 to %d, not for %d", maxStock, n)
	}
	inv.edit(p, func(p *Product) { p.Stock = n })
	return nil
}

func (inv *inventory) setCents(p *Product, n int) error {
	if n < 1 || n > maxCents {
		return fmt.Errorf("a price is 1 to %d cents, not %d", maxCents, n)
	}
	inv.edit(p, func(p *Product) { p.Cents = n })
	return nil
}

func (inv *inventory) len() int { return len(inv.list()) }

// list returns the products as they are now.
func (inv *inventory) list() []Product {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	return append([]Product(nil), inv.products...)
}

// order takes the items of an order from the stock, all or none. The error wraps
// ErrSoldOut or ErrNoSuchProduct. low holds the products that are running out.
func (inv *inventory) order(o Order) (r Receipt, low []Product, err error) {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	want := make(map[int]int)
	for _, it := range o.Items {
		i, err := inv.find(it.SKU)
		if err != nil {
			return Receipt{}, nil, err
		}
		if want[i] += it.Quantity; want[i] > inv.products[i].Stock {
			return Receipt{}, nil, fmt.Errorf("%d × %s wanted, %d left: %w", want[i], it.SKU, inv.products[i].Stock, ErrSoldOut)
		}
	}
	inv.orders++
	r.Order = inv.orders
	for i := range inv.products {
		n, p := want[i], &inv.products[i]
		if n == 0 {
			continue
		}
		p.Stock -= n
		r.Items += n
		r.Cents += n * p.Cents
		inv.view.showItem(p.SKU)
		if p.Stock < lowStock {
			low = append(low, *p)
		}
	}
	return r, low, nil
}

// restock fills up what is running out and returns how many products that were.
func (inv *inventory) restock() int {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	n := 0
	for i := range inv.products {
		if p := &inv.products[i]; p.Stock < lowStock {
			p.Stock = fullStock
			inv.view.showItem(p.SKU)
			n++
		}
	}
	return n
}

// reprice moves the price of one product, product after product, up and down by
// turns, and returns it.
func (inv *inventory) reprice(turn int) Product {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	p := &inv.products[turn%len(inv.products)]
	if step := 10; turn/len(inv.products)%2 == 0 {
		p.Cents += step
	} else {
		p.Cents -= step
	}
	inv.view.showItem(p.SKU)
	return *p
}

// find returns the place of a product. The caller holds mu.
func (inv *inventory) find(sku string) (int, error) {
	for i, p := range inv.products {
		if p.SKU == sku {
			return i, nil
		}
	}
	return 0, fmt.Errorf("%q: %w", sku, ErrNoSuchProduct)
}
