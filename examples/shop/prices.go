package shop

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// stream sends every price change as a server-sent event, until the client leaves or the shop closes.
func (s *Shop) stream(w http.ResponseWriter, r *http.Request) {
	changes, stop := s.board.listen()
	defer stop()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	rc := http.NewResponseController(w)
	for id := 1; rc.Flush() == nil; id++ {
		select {
		case <-r.Context().Done():
			return
		case p := <-changes:
			data, err := json.Marshal(p)
			if err != nil {
				s.log.Error("price not sent", "err", err)
				return
			}
			if _, err := fmt.Fprintf(w, "id: %d\nevent: price\ndata: %s\n\n", id, data); err != nil {
				return // the client left
			}
		}
	}
}

// followPrices reads the event stream for as long as it lasts.
func (s *Shop) followPrices(ctx context.Context, _ int) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/api/stream", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "text/event-stream")
	resp, err := s.client.Do(req)
	if err != nil {
		return fmt.Errorf("follow prices: %w", err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var p Product
		if err := json.Unmarshal([]byte(data), &p); err != nil {
			return fmt.Errorf("follow prices: %w", err)
		}
		s.log.Debug("price changed", "sku", p.SKU, "price", euros(p.Cents))
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("follow prices: %w", err)
	}
	return errors.New("follow prices: the stream ended")
}
