package shop

import (
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/natscope/natscope/producer/treecap"
)

// view is the shop's component tree:
//
//	service
//	├── httpServer
//	│   ├── routes      > route…        one for each endpoint, with counts
//	│   └── connections > connection…   come and go with the clients
//	├── workers         > worker…       the workers, and parcels being packed
//	└── inventory       > item…         stock and price of each product
//
// Nodes are safe for concurrent use, so their owners change them where the
// change happens.
type view struct {
	routes      *treecap.Node
	connections *treecap.Node
	workers     *treecap.Node
	inventory   *treecap.Node

	mu    sync.Mutex // guards conns and items
	conns map[net.Conn]*treecap.Node
	items map[string]*treecap.Node
}

func newView(t *treecap.Tree, url string) *view {
	root := t.Root()
	root.Set("name", "shop")
	server := root.Add("httpServer", treecap.Attr("url", url))
	return &view{
		routes:      server.Add("routes"),
		connections: server.Add("connections", treecap.Attr("open", 0)),
		workers:     root.Add("workers"),
		inventory:   root.Add("inventory"),
		conns:       make(map[net.Conn]*treecap.Node),
		items:       make(map[string]*treecap.Node),
	}
}

// connection follows one connection of the server; it has the shape of http.Server.ConnState.
func (v *view) connection(c net.Conn, state http.ConnState) {
	v.mu.Lock()
	defer v.mu.Unlock()
	node := v.conns[c]
	switch state {
	case http.StateClosed, http.StateHijacked:
		if node != nil {
			node.Remove()
			delete(v.conns, c)
		}
	default:
		if node == nil {
			node = v.connections.Add("connection", treecap.Attr("remote", c.RemoteAddr().String()))
			v.conns[c] = node
		}
		node.Set("state", state.String())
	}
	v.connections.Set("open", len(v.conns))
}

// addItem shows a product.
func (v *view) addItem(p Product) {
	v.mu.Lock()
	v.items[p.SKU] = v.inventory.Add("item", treecap.Attr("sku", p.SKU), treecap.Text(p.Name))
	v.mu.Unlock()
	v.showItem(p)
}

// showItem shows the stock and the price of a product.
func (v *view) showItem(p Product) {
	v.mu.Lock()
	defer v.mu.Unlock()
	node := v.items[p.SKU]
	node.Set("stock", p.Stock)
	node.Set("price", euros(p.Cents))
}

// route is the node of one endpoint.
type route struct {
	node *treecap.Node

	mu   sync.Mutex // guards hits
	hits int
}

func (v *view) route(method, path string) *route {
	return &route{node: v.routes.Add("route", treecap.Attr("method", method), treecap.Attr("path", path), treecap.Attr("hits", 0))}
}

// hit counts a request that took d and was answered with status.
func (r *route) hit(status int, d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hits++
	r.node.Set("hits", r.hits)
	r.node.Set("status", status)
	r.node.Set("took", d.Round(10*time.Microsecond).String())
}

func euros(cents int) string { return fmt.Sprintf("%d.%02d", cents/100, cents%100) }
