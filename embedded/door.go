package embedded

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/natscope/natscope/cdpgw/access"
)

// ErrUnsafe says that Options would let strangers control programs. The text says what is missing.
var ErrUnsafe = errors.New("embedded: refused, since whoever reaches the gateway controls the programs behind it")

// checkDoors refuses to listen beyond this machine without a lock on the door. The error wraps ErrUnsafe.
func (o Options) checkDoors() error {
	host, _, err := net.SplitHostPort(o.HTTPAddr)
	if err != nil {
		return fmt.Errorf("embedded: the gateway's address %q is not host:port: %w", o.HTTPAddr, err)
	}
	if o.Role != "" && o.Role != access.RoleView && o.Role != access.RoleDebug {
		return fmt.Errorf("embedded: role %q is unknown; use view or debug", o.Role)
	}
	if o.External != "" {
		if u, err := url.Parse(o.External); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return fmt.Errorf("embedded: the external address %.200q is not one such as https://tools.example/natscope", o.External)
		}
	}
	switch {
	case loopback(host) && !o.BehindProxy:
		return nil
	case o.Parts.Gateway && o.Tokens == nil:
		return fmt.Errorf("%w: listening on %q needs tokens; make a file with natscope token and name it with --tokens", ErrUnsafe, o.HTTPAddr)
	case o.TLS == nil && !o.BehindProxy:
		return fmt.Errorf("%w: listening on %q needs TLS; name --https-cert and --https-key, or say --behind-proxy if a proxy ends TLS before it", ErrUnsafe, o.HTTPAddr)
	}
	return nil
}

// door is what every request has to pass.
func (o Options) door() access.Door {
	p := access.Policy{Hosts: o.Hosts, Origins: o.Origins}
	if u, err := url.Parse(o.External); err == nil && u.Host != "" {
		p.Hosts = append([]string{u.Hostname()}, p.Hosts...)
		p.Origins = append([]string{u.Scheme + "://" + u.Host}, p.Origins...)
	}
	return access.Door{Policy: p, Tokens: o.Tokens, Grant: access.Grant{Role: o.Role}, Open: openPath, Logger: o.Logger}
}

// openPath reports whether a path needs no access token. Pages show a token of
// their own to the ingest; whether the process works is no secret.
func openPath(path string) bool {
	switch path {
	case "/ingest", "/client.js", "/healthz", "/readyz":
		return true
	}
	return strings.HasPrefix(path, "/client/")
}
