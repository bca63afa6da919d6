package access

import (
	"context"
	"net/http"
	"path"
	"slices"
)

// Role is what somebody may do with the programs that they see.
type Role string

// The roles.
const (
	// RoleView sees everything and changes nothing: no evaluation, no edits, no debugger.
	RoleView Role = "view"
	// RoleDebug may do everything.
	RoleDebug Role = "debug"
)

// Grant is what one token, or the lack of a need for one, allows. The zero Grant allows nothing.
type Grant struct {
	// Name is whose grant it is, for the audit and the log; empty where no token is needed.
	Name string
	// Role is what may be done. An unknown role allows nothing.
	Role Role
	// Spaces are patterns (*, ? and [a-z]) of the spaces that may be seen; none means all.
	Spaces []string
	// Sources are patterns of the source ids that may be seen; none means all.
	Sources []string
}

// Everything is the grant of whoever reaches a gateway that needs no token.
var Everything = Grant{Role: RoleDebug}

// Controls reports whether the grant allows to change programs.
func (g Grant) Controls() bool { return g.Role == RoleDebug }

// Space reports whether the grant allows to see a space at all.
func (g Grant) Space(space string) bool {
	return (g.Role == RoleView || g.Role == RoleDebug) && matchesAny(g.Spaces, space)
}

// Source reports whether the grant allows to see a source. The space is asked for with Space.
func (g Grant) Source(source string) bool { return matchesAny(g.Sources, source) }

// Narrow reports whether the grant leaves out some sources.
func (g Grant) Narrow() bool { return len(g.Sources) > 0 }

// equal reports whether two grants allow the same.
func (g Grant) equal(o Grant) bool {
	return g.Name == o.Name && g.Role == o.Role && slices.Equal(g.Spaces, o.Spaces) && slices.Equal(g.Sources, o.Sources)
}

func matchesAny(patterns []string, name string) bool {
	if len(patterns) == 0 {
		return true
	}
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(p, name)
		return ok && err == nil
	})
}

// admission is what the door knows of a request that it let in.
type admission struct {
	grant  Grant
	prefix string
	holds  func() bool
}

type admissionKey struct{}

// GrantOf returns what a request may do. A request that came through no Door may do nothing.
func GrantOf(r *http.Request) Grant {
	a, _ := r.Context().Value(admissionKey{}).(admission)
	return a.grant
}

// PrefixOf returns the beginning of the path that carried the request's token
// and that the Door took off, such as "/t/abc"; empty if there was none. Links
// that a page or a listing gives out begin with it.
func PrefixOf(r *http.Request) string {
	a, _ := r.Context().Value(admissionKey{}).(admission)
	return a.prefix
}

// Holds returns a function that reports whether the request's grant is still
// given: false once its token was withdrawn or now means something else. It is
// cheap and safe for concurrent use.
func Holds(r *http.Request) func() bool {
	a, _ := r.Context().Value(admissionKey{}).(admission)
	if a.holds == nil {
		return func() bool { return false }
	}
	return a.holds
}

func with(r *http.Request, a admission) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), admissionKey{}, a))
}
