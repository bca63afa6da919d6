// Package redact takes secrets out of what a producer records of requests:
// header values, query and form fields, members of JSON, and whatever matches a
// pattern. What was taken out shows as Mark.
//
// It owns: the rules, and that nothing is half redacted: a body that cannot be
// checked as a whole is withheld. It must not know: who records, NATS, net/http's
// life of a request. It starts no goroutine; a Redactor is safe for concurrent use.
package redact

import (
	"errors"
	"fmt"
	"net/textproto"
	"regexp"
	"strings"
)

// Mark stands in place of what was taken out.
const Mark = "[redacted]"

// ErrRules says that rules cannot work. The text around it names the rule.
var ErrRules = errors.New("redact: invalid rules")

// Rules say what must not leave the process. The zero value says nothing.
//
// Names of query keys and JSON members are compared without regard to case, "_"
// and "-": one rule access_token is for accessToken and Access-Token, too.
type Rules struct {
	// Headers are names of header lines whose values are taken out, in requests,
	// responses and trailers. Of Cookie and Set-Cookie the names of the cookies
	// stay, of Authorization the scheme.
	Headers []string
	// Query are keys whose values are taken out of the query of a URL, of forms,
	// and of URLs in the headers Location, Content-Location and Referer.
	Query []string
	// JSON are paths of members whose values are taken out of JSON bodies and
	// messages: a name alone is for members at any depth, names with dots between
	// are a path from the top, in which "*" is any name. Arrays are no level of their own.
	JSON []string
	// Patterns are regular expressions (package regexp) whose matches are taken
	// out of URLs, header values, bodies and messages.
	Patterns []string
}

// Secrets are rules for what is a secret nearly everywhere: credentials in
// headers, tokens and passwords in queries, forms and JSON, and texts that are
// known to be keys by their form.
func Secrets() Rules {
	return Rules{
		Headers: []string{
			"Authorization", "Proxy-Authorization", "Cookie", "Set-Cookie", "X-Api-Key", "Api-Key", "X-Auth-Token", "X-Access-Token",
			"X-Csrf-Token", "X-Xsrf-Token", "X-Amz-Security-Token", "X-Goog-Api-Key", "X-Vault-Token", "X-Forwarded-Access-Token", "Private-Token",
		},
		Query: []string{
			"access_token", "refresh_token", "id_token", "token", "api_key", "key", "password", "passwd", "pwd", "secret", "client_secret",
			"code", "sig", "signature", "X-Amz-Signature", "X-Amz-Credential", "X-Amz-Security-Token", "X-Goog-Signature",
		},
		JSON: []string{
			"access_token", "refresh_token", "id_token", "token", "api_key", "password", "passwd", "pwd", "passphrase", "secret", "client_secret",
			"secret_key", "secret_access_key", "private_key", "authorization", "session_token", "card_number", "cvv", "cvc", "pin", "ssn",
		},
		Patterns: []string{
			`eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`, // JSON web tokens
			`\b(?:AKIA|ASIA)[0-9A-Z]{16}\b`,                           // AWS
			`\bgh[pousr]_[A-Za-z0-9]{30,}\b`, `\bgithub_pat_[A-Za-z0-9_]{30,}\b`,
			`\b[sr]k_(?:live|test)_[A-Za-z0-9]{16,}\b`, // Stripe
			`\bxox[abeoprs]-[A-Za-z0-9-]{10,}`,         // Slack
			`(?i)\bbearer [A-Za-z0-9._~+/=-]{16,}`,
			`-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----`,
		},
	}
}

// And returns rules that take out what either takes out.
func (r Rules) And(more Rules) Rules {
	join := func(a, b []string) []string { return append(append([]string(nil), a...), b...) }
	return Rules{
		Headers: join(r.Headers, more.Headers), Query: join(r.Query, more.Query),
		JSON: join(r.JSON, more.JSON), Patterns: join(r.Patterns, more.Patterns),
	}
}

// Redactor applies rules. A nil Redactor changes nothing.
type Redactor struct {
	headers map[string]bool
	query   map[string]bool
	// anywhere are JSON members at any depth, paths those with a path from the top.
	anywhere map[string]bool
	paths    [][]string
	patterns []*regexp.Regexp
}

// Compile checks rules. It returns nil for rules that say nothing. The error wraps ErrRules.
func (r Rules) Compile() (*Redactor, error) {
	if len(r.Headers)+len(r.Query)+len(r.JSON)+len(r.Patterns) == 0 {
		return nil, nil
	}
	out := &Redactor{headers: make(map[string]bool), query: make(map[string]bool), anywhere: make(map[string]bool)}
	for _, name := range r.Headers {
		out.headers[textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name))] = true
	}
	for _, key := range r.Query {
		out.query[plain(key)] = true
	}
	for _, path := range r.JSON {
		names := strings.Split(path, ".")
		for i, n := range names {
			if n == "" {
				return nil, fmt.Errorf("%w: JSON path %.80q has an empty name: write names with a dot between them, as in card.number", ErrRules, path)
			}
			if n != "*" {
				names[i] = plain(n)
			}
		}
		switch {
		case len(names) > 1:
			out.paths = append(out.paths, names)
		case names[0] == "*":
			return nil, fmt.Errorf("%w: the JSON path %q is for every member: use a pattern, or do not capture bodies", ErrRules, path)
		default:
			out.anywhere[names[0]] = true
		}
	}
	for _, p := range r.Patterns {
		re, err := regexp.Compile(p)
		if err != nil {
			return nil, fmt.Errorf("%w: pattern %.80q: %w", ErrRules, p, err)
		}
		if re.MatchString("") {
			return nil, fmt.Errorf("%w: pattern %.80q matches the empty text, so it would match everywhere", ErrRules, p)
		}
		out.patterns = append(out.patterns, re)
	}
	return out, nil
}

// plain is a name as it is compared.
func plain(name string) string {
	name = strings.ToLower(name)
	if strings.ContainsAny(name, "_-") {
		name = strings.NewReplacer("_", "", "-", "").Replace(name)
	}
	return name
}

// Text returns s without what matches a pattern.
func (r *Redactor) Text(s string) string {
	if r == nil {
		return s
	}
	for _, p := range r.patterns {
		s = p.ReplaceAllLiteralString(s, Mark)
	}
	return s
}

// Header returns the value of a header line as it may be told.
func (r *Redactor) Header(name, value string) string {
	if r == nil {
		return value
	}
	name = textproto.CanonicalMIMEHeaderKey(name)
	if r.headers[name] {
		return hidden(name, value)
	}
	switch name {
	case "Location", "Content-Location", "Referer":
		return r.URL(value)
	}
	return r.Text(value)
}

// hidden keeps of a value what tells no secret: the scheme of credentials, the names of cookies.
func hidden(name, value string) string {
	switch name {
	case "Authorization", "Proxy-Authorization":
		if scheme, _, ok := strings.Cut(value, " "); ok {
			return scheme + " " + Mark
		}
	case "Cookie":
		parts := strings.Split(value, ";")
		for i, c := range parts {
			parts[i] = hiddenCookie(c)
		}
		return strings.Join(parts, ";")
	case "Set-Cookie":
		cookie, attributes, ok := strings.Cut(value, ";")
		if cookie = hiddenCookie(cookie); ok {
			cookie += ";" + attributes
		}
		return cookie
	}
	return Mark
}

func hiddenCookie(c string) string {
	if name, _, ok := strings.Cut(c, "="); ok {
		return name + "=" + Mark
	}
	return Mark
}

// URL returns a URL without the values of the query keys of the rules, in its
// query and its fragment, nor what matches a pattern. Everything else stays as it
// is written.
func (r *Redactor) URL(u string) string {
	if r == nil {
		return u
	}
	if len(r.query) > 0 {
		head, fragment, hasFragment := strings.Cut(u, "#")
		if u = r.queryOf(head); hasFragment {
			// Some put tokens behind the hash, and some have whole addresses there.
			if strings.Contains(fragment, "?") {
				fragment = r.queryOf(fragment)
			} else {
				fragment = r.form(fragment)
			}
			u += "#" + fragment
		}
	}
	return r.Text(u)
}

// queryOf redacts what is behind the question mark.
func (r *Redactor) queryOf(u string) string {
	if head, query, ok := strings.Cut(u, "?"); ok {
		return head + "?" + r.form(query)
	}
	return u
}
