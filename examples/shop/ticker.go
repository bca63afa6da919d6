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
