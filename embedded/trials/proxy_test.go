package trials

import (
	"net"
	"strconv"
	"sync"
	"testing"
	"time"
)

// proxy stands between clients and a server, and is the network that fails.
type proxy struct {
	l      net.Listener
	target string

	mu     sync.Mutex // guards all below
	frozen bool
	shut   bool
	// delay is how long everything that the server sends takes.
	delay time.Duration
	conns map[net.Conn]bool
	done  bool
	thaw  *sync.Cond
	wg    sync.WaitGroup
}

// newProxy listens on a free port until the test ends.
func newProxy(t testing.TB, port int) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{l: l, target: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), conns: make(map[net.Conn]bool)}
	p.thaw = sync.NewCond(&p.mu)
	p.wg.Go(p.accept)
	t.Cleanup(func() {
		p.set(func() { p.done = true })
		l.Close()
		p.cut()
		p.wg.Wait()
	})
	return p
}

func (p *proxy) url() string { return "nats://" + p.l.Addr().String() }

func (p *proxy) set(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	p.thaw.Broadcast()
}

// freeze stops all traffic without closing anything, as a network does that lost its way.
func (p *proxy) freeze(on bool) { p.set(func() { p.frozen = on }) }

// slow delays everything that the server sends from now on.
func (p *proxy) slow(d time.Duration) { p.set(func() { p.delay = d }) }

// refuse closes all connections, and accepts no new ones while it is on.
func (p *proxy) refuse(on bool) {
	p.set(func() { p.shut = on })
	p.cut()
}

// cut closes all connections.
func (p *proxy) cut() {
	p.set(func() {
		for c := range p.conns {
			c.Close()
		}
	})
}

func (p *proxy) accept() {
	for {
		client, err := p.l.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			client.Close()
			continue
		}
		p.set(func() {
			if p.done || p.shut {
				client.Close()
				server.Close()
			}
			p.conns[client], p.conns[server] = true, true
		})
		p.wg.Go(func() { p.copy(server, client, false) })
		p.wg.Go(func() { p.copy(client, server, true) })
	}
}

// chunk is some bytes and when they may arrive.
type chunk struct {
	data []byte
	due  time.Time
}

// copy carries bytes one way. What the server sends may take its time without losing its order.
func (p *proxy) copy(dst, src net.Conn, down bool) {
	chunks := make(chan chunk, 4096)
	p.wg.Go(func() {
		defer dst.Close()
		defer src.Close()
		failed := false
		for c := range chunks {
			if failed {
				continue
			}
			if wait := time.Until(c.due); wait > 0 {
				pass(wait)
			}
			p.gate()
			_, err := dst.Write(c.data)
			failed = err != nil
			if failed {
				src.Close()
			}
		}
	})
	defer close(chunks)
	defer p.set(func() { delete(p.conns, src) })
	for {
		buf := make([]byte, 32<<10)
		n, err := src.Read(buf)
		if err != nil {
			return
		}
		var due time.Time
		p.set(func() {
			if down && p.delay > 0 {
				due = time.Now().Add(p.delay)
			}
		})
		chunks <- chunk{buf[:n], due}
	}
}

// gate waits while the network is frozen.
func (p *proxy) gate() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.frozen && !p.done {
		p.thaw.Wait()
	}
}
