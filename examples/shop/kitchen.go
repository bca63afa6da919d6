package shop

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"github.com/natscope/natscope/producer/httpcap/gorillacap"
)

// ticket is what the kitchen says of an order.
type ticket struct {
	Order int    `json:"order"`
	State string `json:"state"`
}

// kitchenPing is how many orders the kitchen takes before it asks whether the shop is still there.
const kitchenPing = 3

// kitchen sends every order over a WebSocket and takes the answers, until the
// client leaves or the shop closes. The server does not wait for connections that
// were taken over, so the shop does.
func (s *Shop) kitchen(w http.ResponseWriter, r *http.Request) {
	s.sockets.Add(1)
	defer s.sockets.Done()
	conn, err := gorillacap.Upgrade(&websocket.Upgrader{}, w, r, nil)
	if err != nil {
		return // the answer said why
	}
	orders, stop := s.orderBoard.listen()
	defer stop()
	left := make(chan struct{})
	go func() {
		defer close(left)
		for {
			var t ticket
			if conn.ReadJSON(&t) != nil {
				return
			}
			s.log.Debug("kitchen answers", "order", t.Order, "state", t.State)
		}
	}()
	for done := false; !done; {
		select {
		case <-left:
			done = true
		case <-s.life.Done():
			bye := websocket.FormatCloseMessage(websocket.CloseGoingAway, "the shop closes")
			_ = conn.WriteControl(websocket.CloseMessage, bye, time.Now().Add(time.Second))
			done = true
		case receipt := <-orders:
			done = conn.WriteJSON(receipt) != nil
		}
	}
	conn.Close()
	<-left
}

// cook takes orders over a WebSocket for as long as it lasts.
func (s *Shop) cook(ctx context.Context, _ int) error {
	conn, _, err := gorillacap.Dial(ctx, s.producer, nil, "ws"+strings.TrimPrefix(s.url, "http")+"/api/kitchen", nil)
	if err != nil {
		return fmt.Errorf("kitchen: %w", err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	for n := 1; ; n++ {
		var receipt Receipt
		if err := conn.ReadJSON(&receipt); err != nil {
			if websocket.IsCloseError(err, websocket.CloseGoingAway) {
				return errors.New("kitchen: the shop closes")
			}
			return fmt.Errorf("kitchen: %w", err)
		}
		if err := conn.WriteJSON(ticket{receipt.Order, "cooking"}); err != nil {
			return fmt.Errorf("kitchen: %w", err)
		}
		if n%kitchenPing == 0 {
			if err := conn.WriteControl(websocket.PingMessage, []byte("still there?"), time.Now().Add(time.Second)); err != nil {
				return fmt.Errorf("kitchen: %w", err)
			}
		}
	}
}
