package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"syscall"
)

// portTries is how many ports above an occupied one are tried.
const portTries = 100

// listen opens a TCP listener. An occupied port advances to the next free one,
// and says so; port 0 asks the system for any. Who may listen beyond this machine was checked before.
func listen(ctx context.Context, what, addr string, log *slog.Logger) (net.Listener, error) {
	host, p, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("embedded: %s address %q is not host:port: %w", what, addr, err)
	}
	first, err := strconv.ParseUint(p, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("embedded: %s address %q has no valid port", what, addr)
	}
	var lc net.ListenConfig
	for port := int(first); port <= 65535 && port <= int(first)+portTries; port++ {
		l, err := lc.Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if err == nil {
			if port != int(first) && first != 0 {
				log.Warn("port is taken, using another", "for", what, "taken", first, "using", port)
			}
			return l, nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) || first == 0 {
			return nil, fmt.Errorf("embedded: listen for %s: %w", what, err)
		}
	}
	return nil, fmt.Errorf("embedded: no free port for %s from %d to %d; name another one", what, first, int(first)+portTries)
}

// freePort finds the address that a nats-server shall listen on, with the same
// advance as listen. The server binds it a moment later by itself.
func freePort(ctx context.Context, what, addr string, log *slog.Logger) (string, error) {
	if host, _, err := net.SplitHostPort(addr); err == nil && !loopback(host) {
		return "", fmt.Errorf("embedded: %s address %q is not a loopback address; the server in this process serves this machine only, use a NATS server of its own for others", what, addr)
	}
	l, err := listen(ctx, what, addr, log)
	if err != nil {
		return "", err
	}
	found := l.Addr().String()
	return found, l.Close()
}

// loopback reports whether a listen host can be reached from this machine only.
func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
