package access

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// ErrToken says that a request carries no token that is known here.
var ErrToken = errors.New("access: token needed")

// TokenPath is the beginning of paths that carry a token: /t/<token>/ and then
// the path as it is elsewhere. DevTools opens nothing but addresses, so there is
// no other place for one.
const TokenPath = "/t/"

// Door lets requests in: it checks the Host of each, finds out by its token what
// it may do, and takes the token out of the path, so that nothing behind the
// door can log it.
type Door struct {
	// Policy says which hosts are allowed.
	Policy Policy
	// Tokens are the tokens that are needed; nil means that none is, and that Grant applies.
	Tokens *Tokens
	// Grant is what everybody may do where no token is needed; the zero Grant means Everything.
	Grant Grant
	// Open reports whether a path needs no token: what has a lock of its own, or is no secret. nil means none.
	Open func(path string) bool
	// Logger takes what was turned away, without tokens; nil means silence.
	Logger *slog.Logger
}

// Middleware passes what is let in to next: GrantOf, PrefixOf and Holds tell of
// it. Others are answered with 403 for their host, 401 for their token.
func (d Door) Middleware(next http.Handler) http.Handler {
	if d.Grant.Role == "" {
		d.Grant = Everything
	}
	log := d.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := d.Policy.CheckHost(r); err != nil {
			log.Warn("a request was turned away", "remote", r.RemoteAddr, "error", err)
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		token, prefix, path := presented(r)
		if prefix != "" && path == "" {
			// A relative link of the page at the root has to stay below the token.
			w.Header().Set("Location", "./"+url.PathEscape(token)+"/")
			w.WriteHeader(http.StatusTemporaryRedirect)
			return
		}
		in := r
		if prefix != "" {
			in = r.Clone(r.Context())
			in.URL.Path, in.URL.RawPath, in.RequestURI = path, "", ""
			// The links of a page under a token must not carry it elsewhere.
			w.Header().Set("Referrer-Policy", "no-referrer")
			w.Header().Set("Cache-Control", "no-store")
		}
		a, err := d.admit(token, prefix, in.URL.Path)
		if err != nil {
			log.Warn("a request was turned away", "remote", r.RemoteAddr, "path", safePath(in.URL.Path), "error", err)
			w.Header().Set("WWW-Authenticate", `Bearer realm="natscope"`)
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, with(in, a))
	})
}

// admit finds out what a request may do. The error wraps ErrToken.
func (d Door) admit(token, prefix, path string) (admission, error) {
	if d.Tokens == nil {
		// A token is no harm where none is needed: a link goes on working when the need ends.
		return admission{grant: d.Grant, prefix: prefix, holds: func() bool { return true }}, nil
	}
	if g, ok := d.Tokens.Grant(token); ok {
		return admission{grant: g, prefix: prefix, holds: d.Tokens.holds(token, g)}, nil
	}
	if d.Open != nil && d.Open(path) {
		return admission{holds: func() bool { return false }}, nil
	}
	if err := d.Tokens.Err(); err != nil {
		return admission{}, fmt.Errorf("%w: nobody can be let in, because the gateway's file of tokens cannot be used; its operator sees why", ErrToken)
	}
	if token == "" {
		return admission{}, fmt.Errorf("%w: begin the path with /t/<token>/, or send the header Authorization: Bearer <token>; whoever runs this gateway makes tokens with natscope token", ErrToken)
	}
	return admission{}, fmt.Errorf("%w: this one is not known here, or was withdrawn", ErrToken)
}

// presented returns the token of a request, the beginning of the path that
// carries it, and the rest of the path.
func presented(r *http.Request) (token, prefix, path string) {
	if rest, ok := strings.CutPrefix(r.URL.Path, TokenPath); ok {
		token, rest, below := strings.Cut(rest, "/")
		if !below {
			return token, TokenPath + token, ""
		}
		return token, TokenPath + token, "/" + rest
	}
	if scheme, value, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "bearer") {
		return strings.TrimSpace(value), "", r.URL.Path
	}
	return "", "", r.URL.Path
}

// tokenIn finds what may be a token in a path that was not taken for one with a
// token: because of a slash too many, in capitals, or below a proxy's own path.
var tokenIn = regexp.MustCompile(`(?i)(/t/+)[^/]+|[a-z2-7]{20,}`)

// safePath cuts what a stranger sent to what a log can bear, without tokens.
func safePath(path string) string {
	path = tokenIn.ReplaceAllString(path, "${1}…")
	if len(path) > 200 {
		path = path[:200]
	}
	return printable(strings.ToValidUTF8(path, "?"))
}
