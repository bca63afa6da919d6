package bench

import (
	"net"
	"sync"
	"testing"
	"time"
)

// piece is bytes on their way, and when they may arrive.
type piece struct {
	data []byte
	due  time.Time
}

// distant returns an address at which the server at addr answers later by the
// given time: half of it for each direction. Bandwidth is not limited.
func distant(b testing.TB, addr string, roundTrip time.Duration) string {
	b.Helper()
	target := hostOf(b, addr)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex // guards conns
	var conns []net.Conn
	wg.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", target)
			if err != nil {
				near.Close()
				continue
			}
			mu.Lock()
			conns = append(conns, near, far)
			mu.Unlock()
			wg.Go(func() { carry(far, near, roundTrip/2) })
			wg.Go(func() { carry(near, far, roundTrip/2) })
		}
	})
	b.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, c := range conns {
			c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return "nats://" + l.Addr().String()
}

// carry copies from src to dst, every byte later by d and in order.
func carry(dst, src net.Conn, d time.Duration) {
	defer dst.Close()
	road := make(chan piece, 1<<14)
	done := make(chan struct{})
	go func() {
		defer close(done)
		timer := time.NewTimer(0)
		defer timer.Stop()
		for p := range road {
			if wait := time.Until(p.due); wait > 0 {
				timer.Reset(wait)
				<-timer.C
			}
			if _, err := dst.Write(p.data); err != nil {
				src.Close()
			}
		}
	}()
	for {
		buf := make([]byte, 64<<10)
		n, err := src.Read(buf)
		if err != nil {
			break
		}
		road <- piece{buf[:n], time.Now().Add(d)}
	}
	close(road)
	<-done
}
