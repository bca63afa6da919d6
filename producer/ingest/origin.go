package ingest

import (
	"crypto/subtle"
	"net/http"
	"net/url"
	"strings"
)

// tokenProtocol is the prefix of the subprotocol that carries the token: a
// browser cannot set headers of a WebSocket, and an address ends up in logs.
const tokenProtocol = "natscope.token."

// versionProtocol is the prefix of the subprotocol that names the protocol version.
const versionProtocol = "natscope."

// originAllowed reports whether a page of the given origin may connect.
// Loopback origins always may; others must be listed exactly. An empty origin
// is a program that is no browser, for which the token alone decides. "null",
// the origin of sandboxed frames and files, is refused: anyone can have it.
func originAllowed(origin string, listed []string) bool {
	if origin == "" || isLoopbackOrigin(origin) {
		return true
	}
	for _, o := range listed {
		if o == origin {
			return true
		}
	}
	return false
}

// isLoopbackOrigin reports whether origin is an http or https origin of this machine, on any port.
func isLoopbackOrigin(origin string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return false
	}
	if u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "" || u.Opaque != "" {
		return false
	}
	switch strings.ToLower(u.Hostname()) {
	case "localhost", "127.0.0.1", "::1":
		return true
	}
	return false
}

// requestOrigin returns the Origin header; ok is false when there is more than one.
func requestOrigin(r *http.Request) (origin string, ok bool) {
	v := r.Header.Values("Origin")
	switch len(v) {
	case 0:
		return "", true
	case 1:
		return v[0], true
	}
	return "", false
}

// tokenOffered reports whether one of the offered subprotocols carries the
// token. Every offer is compared in constant time.
func tokenOffered(offers []string, token string) bool {
	found := 0
	for _, o := range offers {
		if t, ok := strings.CutPrefix(o, tokenProtocol); ok {
			found |= subtle.ConstantTimeCompare([]byte(t), []byte(token))
		}
	}
	return found == 1
}

// versionOffered returns the first offered subprotocol that names a version, or the empty string.
func versionOffered(offers []string) string {
	for _, o := range offers {
		v, ok := strings.CutPrefix(o, versionProtocol)
		if ok && v != "" && strings.Trim(v, "0123456789") == "" {
			return o
		}
	}
	return ""
}

// validToken reports whether a token can stand in a subprotocol and in an address without escaping.
func validToken(t string) bool {
	if t == "" || len(t) > 256 {
		return false
	}
	for i := 0; i < len(t); i++ {
		c := t[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.') {
			return false
		}
	}
	return true
}
