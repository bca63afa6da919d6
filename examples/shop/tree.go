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
//	├── inventory       > item…         the products: stock and price can be edited
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

	tree *treecap.Tree
	// items are those of the inventory by SKU; they do not change.
	items map[string]*treecap.Component

	mu    sync.Mutex // guards conns
	conns map[net.Conn]*treecap.Node
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
		tree:        t,
		conns:       make(map[net.Conn]*treecap.Node),
		items:       make(map[string]*treecap.Component),
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

// addItem shows a product: a live value, of which two fields can be edited.
func (v *view) addItem(inv *inventory, p *Product) {
	v.items[p.SKU] = v.tree.Register(v.inventory, "item", p, treecap.Locked(&inv.mu),
		treecap.Writable("Stock", func(n int) error { return inv.setStock(p, n) }),
		treecap.Writable("Cents", func(n int) error { return inv.setCents(p, n) }))
}

// showItem shows what a product is now. It may be called with the inventory's lock.
func (v *view) showItem(sku string) { v.items[sku].Update() }

func euros(cents int) string { return fmt.Sprintf("%d.%02d", cents/100, cents%100) }
