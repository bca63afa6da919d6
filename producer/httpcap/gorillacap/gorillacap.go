// Package gorillacap shows WebSockets of github.com/gorilla/websocket message by
// message: it upgrades and dials as that package does, on connections whose wire
// httpcap observes.
//
// It owns: the dial of a connection that can be observed. It must not know:
// frames, records, NATS. It starts no goroutine. Messages are told when their
// frames pass on the wire, with direction, opcode, size and the beginning of the
// payload, decompressed where the two sides agreed on permessage-deflate; pings,
// pongs and close frames too.
package gorillacap

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"

	"github.com/gorilla/websocket"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/producer/httpcap"
)

// Upgrade is u.Upgrade for a request that httpcap.Handler records; of another one
// nothing is told.
func Upgrade(u *websocket.Upgrader, w http.ResponseWriter, r *http.Request, h http.Header) (*websocket.Conn, error) {
	httpcap.Observe(r)
	return u.Upgrade(w, r, h)
}

// Dial is d.DialContext and records the connection with p. A nil d means
// websocket.DefaultDialer. Of a connection over TLS through a proxy, or with
// NetDialTLSContext set, only what this function can see is told: the request
// and, in the latter case, the messages.
func Dial(ctx context.Context, p *producer.Producer, d *websocket.Dialer, rawURL string, h http.Header) (*websocket.Conn, *http.Response, error) {
	if d == nil {
		d = websocket.DefaultDialer
	}
	traced, s := httpcap.Dial(ctx, p, rawURL, h)
	if s == nil {
		return d.DialContext(ctx, rawURL, h)
	}
	own := observed(d, s, rawURL)
	conn, resp, err := own.DialContext(traced, rawURL, h)
	s.Opened(resp, err)
	return conn, resp, err
}

// observed returns a dialer like d whose connections s observes.
func observed(d *websocket.Dialer, s *httpcap.Socket, rawURL string) *websocket.Dialer {
	own := *d
	plain := d.NetDialContext
	if plain == nil {
		plain = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if d.NetDial != nil {
				return d.NetDial(network, addr)
			}
			return new(net.Dialer).DialContext(ctx, network, addr)
		}
	}
	encrypted := d.NetDialTLSContext
	if encrypted == nil {
		encrypted = func(ctx context.Context, network, addr string) (net.Conn, error) {
			return dialTLS(ctx, d.TLSClientConfig, plain, network, addr)
		}
	}
	observe := func(dial func(context.Context, string, string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
		return func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return s.Conn(conn), nil
		}
	}
	u, err := url.Parse(rawURL)
	switch {
	case err != nil:
	case u.Scheme == "ws", u.Scheme == "http":
		own.NetDialContext, own.NetDial = observe(plain), nil
	case d.NetDialTLSContext != nil || !proxied(d, u):
		own.NetDialTLSContext = observe(encrypted)
	}
	return &own
}

// proxied reports whether a dialer goes through a proxy.
func proxied(d *websocket.Dialer, u *url.URL) bool {
	if d.Proxy == nil {
		return false
	}
	target := *u
	target.Scheme = "https"
	proxy, err := d.Proxy(&http.Request{Method: http.MethodGet, URL: &target, Host: u.Host})
	return err != nil || proxy != nil
}

// dialTLS dials as websocket.Dialer does itself.
func dialTLS(ctx context.Context, cfg *tls.Config, plain func(context.Context, string, string) (net.Conn, error), network, addr string) (net.Conn, error) {
	conn, err := plain(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	if cfg == nil {
		cfg = new(tls.Config)
	} else {
		cfg = cfg.Clone()
	}
	if cfg.ServerName == "" {
		if cfg.ServerName, _, err = net.SplitHostPort(addr); err != nil {
			cfg.ServerName = addr
		}
	}
	trace := httptrace.ContextClientTrace(ctx)
	if trace != nil && trace.TLSHandshakeStart != nil {
		trace.TLSHandshakeStart()
	}
	c := tls.Client(conn, cfg)
	err = c.HandshakeContext(ctx)
	if trace != nil && trace.TLSHandshakeDone != nil {
		trace.TLSHandshakeDone(c.ConnectionState(), err)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return c, nil
}
