// Package codercap shows WebSockets of github.com/coder/websocket message by
// message: it accepts and dials as that package does, on connections whose wire
// httpcap observes.
//
// It owns: nothing but the two calls. It must not know: frames, records, NATS. It
// starts no goroutine. Messages are told when their frames pass on the wire, with
// direction, opcode, size and the beginning of the payload, decompressed where
// the two sides agreed on permessage-deflate; pings, pongs and close frames too.
package codercap

import (
	"context"
	"net/http"

	"github.com/coder/websocket"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/producer/httpcap"
)

// Accept is websocket.Accept for a request that httpcap.Handler records; of
// another one nothing is told.
func Accept(w http.ResponseWriter, r *http.Request, opts *websocket.AcceptOptions) (*websocket.Conn, error) {
	httpcap.Observe(r)
	return websocket.Accept(w, r, opts)
}

// Dial is websocket.Dial over the client of opts, whose transport is wrapped by
// httpcap.Transport, unless it is already.
func Dial(ctx context.Context, p *producer.Producer, url string, opts *websocket.DialOptions) (*websocket.Conn, *http.Response, error) {
	o := websocket.DialOptions{}
	if opts != nil {
		o = *opts
	}
	client := http.Client{}
	if o.HTTPClient != nil {
		client = *o.HTTPClient
	}
	client.Transport = httpcap.Transport(p, client.Transport)
	o.HTTPClient = &client
	return websocket.Dial(ctx, url, &o)
}
