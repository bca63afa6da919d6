package cdpgw

import (
	"time"

	"github.com/gorilla/websocket"
)

// revokeEvery is the time between two looks at whether connections may stay.
const revokeEvery = 2 * time.Second

// revoke ends the connections whose access was withdrawn. It returns when the gateway closes.
func (g *Gateway) revoke() {
	tick := time.NewTicker(revokeEvery)
	defer tick.Stop()
	for {
		select {
		case <-g.ctx.Done():
			return
		case <-tick.C:
		}
		for _, s := range g.hub.all() {
			if !s.conn.holds() {
				g.log.Info("a DevTools connection is closed, since its access was withdrawn", "who", s.target.grant.Name, "target", s.target.id())
				g.counts.revoked.Add(1)
				s.conn.end(websocket.ClosePolicyViolation, reasonRevoked)
			}
		}
	}
}
