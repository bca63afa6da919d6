// Package access decides which HTTP and WebSocket requests a gateway takes: it
// checks the Host header against DNS rebinding and the Origin header against
// web pages that open connections to a debugger behind the user's back.
//
// It must not know CDP or any route. It starts no goroutine; a Policy is safe
// for concurrent use as long as nobody changes it.
package access

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// DevToolsOrigin is the Origin of the DevTools frontend that is part of Chrome.
const DevToolsOrigin = "devtools://devtools"

// ErrHost says that a request names a host that is not allowed.
var ErrHost = errors.New("access: host not allowed")

// ErrOrigin says that a request comes from a web page that is not allowed.
var ErrOrigin = errors.New("access: origin not allowed")

// Policy says which hosts and origins are allowed besides the safe ones. The
// zero Policy is the strictest.
type Policy struct {
	// Hosts are host names, without port, under which the server may be reached
	// besides IP addresses, localhost and *.localhost.
	Hosts []string
	// Origins are origins of web pages ("https://tools.example") that may open
	// connections besides DevTools itself and pages of this server.
	Origins []string
}

// CheckHost returns nil when the request's Host header is an IP address,
// localhost, empty, or one of p.Hosts. A page of an attacker can make its own
// name point at this machine, but it cannot change the Host header. The error
// wraps ErrHost and says how to allow the name.
func (p Policy) CheckHost(r *http.Request) error {
	name := hostname(r.Host)
	if name == "" && r.Host == "" || isLocal(name) {
		return nil
	}
	if slices.ContainsFunc(p.Hosts, func(h string) bool { return strings.EqualFold(h, name) && name != "" }) {
		return nil
	}
	return fmt.Errorf("%w: Host header %.200q is not an IP address or localhost; to serve this name, start natscope with --allow-host %.200s", ErrHost, r.Host, printable(name))
}

// CheckOrigin returns nil when the request carries no Origin, as programs do,
// or that of DevTools, of a page of this server, or one of p.Origins. The error
// wraps ErrOrigin and says how to allow the origin.
func (p Policy) CheckOrigin(r *http.Request) error {
	values := r.Header.Values("Origin")
	if len(values) == 0 {
		return nil
	}
	if len(values) > 1 {
		return fmt.Errorf("%w: the request has %d Origin headers", ErrOrigin, len(values))
	}
	origin := values[0]
	if origin == DevToolsOrigin || slices.ContainsFunc(p.Origins, func(o string) bool { return strings.EqualFold(o, origin) && o != "null" }) {
		return nil
	}
	if p.own(origin, r) {
		return nil
	}
	return fmt.Errorf("%w: rejected a WebSocket connection from the origin %.200q; if you trust that page, start natscope with --allow-origin %.200s", ErrOrigin, origin, printable(origin))
}

// own reports whether origin is that of a page which this server sent to the client.
func (p Policy) own(origin string, r *http.Request) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return false
	}
	return r.Host != "" && strings.EqualFold(u.Host, r.Host) && p.CheckHost(r) == nil
}

// Middleware answers 403 to requests whose Host is not allowed and passes the others to next.
func (p Policy) Middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := p.CheckHost(r); err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// hostname returns the name in a Host header, without port, brackets and one trailing dot; empty if it is malformed.
func hostname(hostport string) string {
	name := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		name = h
	} else if strings.HasPrefix(hostport, "[") && strings.HasSuffix(hostport, "]") {
		name = hostport[1 : len(hostport)-1]
	}
	return strings.TrimSuffix(name, ".")
}

// isLocal reports whether a name cannot be pointed elsewhere by anybody's DNS.
func isLocal(name string) bool {
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	name = strings.ToLower(name)
	return name == "localhost" || strings.HasSuffix(name, ".localhost") && len(name) > len(".localhost")
}

// printable keeps a hostile header from writing control characters into a terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, s)
}
