package shop

import (
	"fmt"
	"net"
	"net/http"
	"sync"

	"github.com/natscope/natscope/producer/treecap"
)

// view is the shop's component tree:
//
//	service
//	├── httpServer
//	│   ├── routes      > route…        one for each endpoint, with counts, by muxtree
//	│   └── connections > connection…   come and go with the clients
//	├── workers         > worker…       the workers, and parcels being packed
//	├── inventory       > item…         stock and price of each product
//	├── pricing                         a live Go value, with settings that can be edited
//	└── process                         the program itself, by proctree
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

func euros(cents int) string { return fmt.Sprintf("%d.%02d", cents/100, cents%100) }
