package shop

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net"
	"net/http"
	"time"

	"github.com/natscope/natscope/producer/httpcap"
	"github.com/natscope/natscope/producer/treecap/muxtree"
)

//go:embed page
var pageFiles embed.FS

var indexPage = template.Must(template.ParseFS(pageFiles, "page/index.html"))

// maxOrder is the size of the largest order that is read, in bytes.
const maxOrder = 64 << 10

// serve starts the web server.
func (s *Shop) serve(l net.Listener) {
	mux := muxtree.New(s.view.routes, nil)
	mux.HandleFunc("GET /{$}", s.index)
	mux.HandleFunc("GET /api/products", s.products)
	mux.HandleFunc("POST /api/orders", s.orders)
	mux.HandleFunc("GET /api/slow", s.slow)
	mux.HandleFunc("GET /api/fail", s.fail)
	mux.HandleFunc("GET /api/stream", s.stream)
	mux.HandleFunc("GET /api/kitchen", s.kitchen)
	files, err := fs.Sub(pageFiles, "page")
	if err != nil {
		panic(err) // the folder is part of the program
	}
	mux.Handle("GET /", http.FileServerFS(files))
	s.server = &http.Server{
		Handler:           httpcap.Handler(s.producer, mux),
		ReadHeaderTimeout: 10 * time.Second,
		// Requests end with the shop, or event streams would keep Close waiting.
		BaseContext: func(net.Listener) context.Context { return s.life },
		ConnState:   s.view.connection,
	}
	go func() {
		err := s.server.Serve(l)
		if errors.Is(err, http.ErrServerClosed) {
			err = nil
		}
		s.served <- err
	}()
}

func (s *Shop) index(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if err := indexPage.Execute(w, s.opts); err != nil {
		s.log.Error("page not sent", "err", err)
	}
}

func (s *Shop) products(w http.ResponseWriter, _ *http.Request) {
	s.answer(w, http.StatusOK, s.stock.list())
}

// orders takes an order and hands it to the packing room.
func (s *Shop) orders(w http.ResponseWriter, r *http.Request) {
	var o Order
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxOrder))
	if err := dec.Decode(&o); err != nil {
		s.refuse(w, http.StatusBadRequest, fmt.Errorf("the order is not JSON as expected: %w", err))
		return
	}
	if err := o.check(); err != nil {
		s.refuse(w, http.StatusBadRequest, err)
		return
	}
	receipt, low, err := s.stock.order(o)
	switch {
	case errors.Is(err, ErrSoldOut):
		s.log.WarnContext(r.Context(), "order refused", "order", &o, "err", err)
		s.ledger.refused(o, err)
		s.refuse(w, http.StatusConflict, err)
		return
	case err != nil:
		s.refuse(w, http.StatusNotFound, err)
		return
	}
	for _, p := range low {
		s.log.WarnContext(r.Context(), "stock is low", "product", p, "left", p.Stock)
	}
	s.ledger.add(receipt, o)
	s.packer.accept(receipt)
	s.orderBoard.tell(receipt)
	s.answer(w, http.StatusCreated, receipt)
}

// check says what is wrong with an order.
func (o Order) check() error {
	if len(o.Items) == 0 {
		return errors.New("the order has no items")
	}
	for _, it := range o.Items {
		if it.Quantity < 1 || it.Quantity > 100 {
			return fmt.Errorf("quantity %d of %q is not between 1 and 100", it.Quantity, it.SKU)
		}
	}
	return nil
}

// slow answers after a while with what the shop sold.
func (s *Shop) slow(w http.ResponseWriter, r *http.Request) {
	if !pause(r.Context(), s.opts.Interval*3/2) {
		return
	}
	s.answer(w, http.StatusOK, map[string]any{"report": "sales of today", "products": s.stock.list()})
}

// fail shows an error that comes from somewhere else.
func (s *Shop) fail(w http.ResponseWriter, _ *http.Request) {
	s.refuse(w, http.StatusInternalServerError, fmt.Errorf("charge the card: %w", errProvider))
}

// errProvider is the cause that the failing endpoint reports.
var errProvider = errors.New("payment provider is down for maintenance")

// answer sends v as JSON.
func (s *Shop) answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(v); err != nil {
		s.log.Debug("answer not sent", "err", err)
	}
}

func (s *Shop) refuse(w http.ResponseWriter, status int, err error) {
	s.answer(w, status, map[string]string{"error": err.Error()})
}

// pause waits for d and reports whether ctx is still alive.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
