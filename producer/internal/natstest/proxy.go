package natstest

import (
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// Proxy stands between a client and a server.
type Proxy struct {
	listener net.Listener
	target   string
	frozen   atomic.Bool

	// Filter sees every chunk that the server sends and returns what the client
	// gets of it, nil for nothing. It is set before the first connection.
	Filter func([]byte) []byte

	mu    sync.Mutex
	conns map[net.Conn]bool
	thaw  *sync.Cond
	done  bool
	wg    sync.WaitGroup
}

// NewProxy listens on a free loopback port and forwards to the server.
func NewProxy(t testing.TB, s *Server, filter func([]byte) []byte) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: l, target: fmt.Sprintf("127.0.0.1:%d", s.Port()), Filter: filter, conns: make(map[net.Conn]bool)}
	p.thaw = sync.NewCond(&p.mu)
	p.wg.Add(1)
	go p.accept()
	t.Cleanup(p.close)
	return p
}

// URL is the address of the proxy.
func (p *Proxy) URL() string { return "nats://" + p.listener.Addr().String() }

// Freeze stops what the server sends, without closing anything, until it is called with false.
func (p *Proxy) Freeze(frozen bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frozen.Store(frozen)
	p.thaw.Broadcast()
}

// Cut closes all connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
}

func (p *Proxy) close() {
	p.mu.Lock()
	p.done = true
	p.thaw.Broadcast()
	p.mu.Unlock()
	p.listener.Close()
	p.Cut()
	p.wg.Wait()
}

func (p *Proxy) accept() {
	defer p.wg.Done()
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			client.Close()
			continue
		}
		p.mu.Lock()
		if p.done {
			client.Close()
			server.Close()
		}
		p.conns[client], p.conns[server] = true, true
		p.mu.Unlock()
		p.wg.Add(2)
		go p.copy(server, client, nil, false)
		go p.copy(client, server, p.Filter, true)
	}
}

func (p *Proxy) copy(dst, src net.Conn, filter func([]byte) []byte, stops bool) {
	defer p.wg.Done()
	defer func() {
		dst.Close()
		src.Close()
		p.mu.Lock()
		delete(p.conns, src)
		p.mu.Unlock()
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := src.Read(buf)
		if err != nil {
			return
		}
		if stops {
			p.mu.Lock()
			for p.frozen.Load() && !p.done {
				p.thaw.Wait()
			}
			p.mu.Unlock()
		}
		data := buf[:n]
		if filter != nil {
			data = filter(data)
		}
		if len(data) == 0 {
			continue
		}
		if _, err := dst.Write(data); err != nil {
			return
		}
	}
}
