package cdpgw

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"sync"
)

// burstBytes is how much of a burst is collected before it is written.
const burstBytes = 64 << 10

// burstConn is a network connection that can collect several writes into one.
// While held, writes are gathered until burstBytes are there. Control messages
// that another goroutine writes meanwhile join the burst in order.
type burstConn struct {
	net.Conn
	mu   sync.Mutex
	held bool
	buf  []byte
}

// Write implements net.Conn.
func (c *burstConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.held {
		return c.Conn.Write(p)
	}
	if len(c.buf)+len(p) > burstBytes {
		if err := c.flush(); err != nil {
			return 0, err
		}
		if len(p) >= burstBytes {
			return c.Conn.Write(p)
		}
	}
	c.buf = append(c.buf, p...)
	return len(p), nil
}

// hold starts a burst.
func (c *burstConn) hold() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = true
}

// release ends a burst and writes what is left of it.
func (c *burstConn) release() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = false
	err := c.flush()
	if cap(c.buf) > burstBytes/4 {
		// An idle connection keeps no buffer.
		c.buf = nil
	}
	return err
}

// flush writes the buffer; c.mu is held. The lock belongs to this connection's
// writing alone, so a slow peer delays nobody else.
func (c *burstConn) flush() error {
	if len(c.buf) == 0 {
		return nil
	}
	_, err := c.Conn.Write(c.buf)
	c.buf = c.buf[:0]
	return err
}

// burstResponse is a ResponseWriter whose hijacked connection is a burstConn.
type burstResponse struct {
	http.ResponseWriter
	conn *burstConn
}

// Hijack implements http.Hijacker.
func (w *burstResponse) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, fmt.Errorf("cdpgw: take over the connection: %w", err)
	}
	w.conn = &burstConn{Conn: conn}
	return w.conn, rw, nil
}
