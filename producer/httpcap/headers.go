package httpcap

import (
	"encoding/base64"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/natscope/natscope/producer/redact"
	"github.com/natscope/natscope/subjects/network"
)

// secrets knows what must not be told of a request: what the rules of the source
// say, and in its headers what repeats the password of its URL, which http.Client
// turns into an Authorization header.
type secrets struct {
	basic string
	rules *redact.Redactor
}

func newSecrets(u *url.URL, rules *redact.Redactor) secrets {
	s := secrets{rules: rules}
	if u.User == nil {
		return s
	}
	if password, _ := u.User.Password(); password != "" {
		s.basic = "Basic " + base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password))
	}
	return s
}

// header returns the value of a header as it may be recorded: valid UTF-8
// without the URL's password, and as the rules want it.
func (s secrets) header(name, value string) string {
	switch {
	case s.basic != "" && value == s.basic && strings.EqualFold(name, "Authorization"):
		return "Basic xxxxx"
	case strings.Contains(value, "@") && (strings.EqualFold(name, "Location") || strings.EqualFold(name, "Content-Location") || strings.EqualFold(name, "Referer")):
		if u, err := url.Parse(value); err == nil {
			value = u.Redacted()
		}
	}
	return text(s.rules.Header(name, value))
}

// url returns a URL as it may be recorded. It is never empty.
func (s secrets) url(u *url.URL) string { return s.rules.URL(redactURL(u)) }

// error returns the text of an error as it may be recorded.
func (s secrets) error(err error) string { return s.rules.Text(errorText(err)) }

// headerList appends the lines of h, names in alphabetical order because
// http.Header keeps none, values of one name in theirs.
func headerList(dst []network.Header, h http.Header, s secrets) []network.Header {
	var buf [32]string
	names := buf[:0]
	for name := range h {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for _, v := range h[name] {
			dst = append(dst, network.Header{text(name), s.header(name, v)})
		}
	}
	return dst
}

// redactURL returns the URL with xxxxx in place of a password. It is never empty.
func redactURL(u *url.URL) string {
	s := ""
	if u.User == nil {
		s = u.String()
	} else {
		s = u.Redacted()
	}
	if s == "" {
		return "about:blank"
	}
	return text(s)
}

// text returns s as valid UTF-8. Header values may hold any bytes; those that
// are not UTF-8 are read as ISO 8859-1, as browsers do, so that no byte is lost.
func text(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + len(s)/2)
	for i := 0; i < len(s); i++ {
		b.WriteRune(rune(s[i]))
	}
	return b.String()
}

// requestType says what kind of request it is; Go programs fetch, unless they ask for another protocol.
func requestType(req *http.Request) string {
	if strings.EqualFold(req.Header.Get("Upgrade"), "websocket") {
		return "websocket"
	}
	return "fetch"
}

// statusText returns the words of the status line without the number.
func statusText(resp *http.Response) string {
	_, words, _ := strings.Cut(resp.Status, " ")
	return text(words)
}

// protocolName names a protocol as ALPN does.
func protocolName(proto string, major int) string {
	switch {
	case proto == "HTTP/1.1":
		return "http/1.1"
	case major == 2:
		return "h2"
	case major == 3:
		return "h3"
	}
	return strings.ToLower(text(proto))
}

// mediaType splits a Content-Type into its type and its charset.
func mediaType(v string) (mimeType, charset string) {
	if v == "" {
		return "", ""
	}
	head, rest, _ := strings.Cut(v, ";")
	mimeType = text(strings.ToLower(strings.TrimSpace(head)))
	if !strings.Contains(strings.ToLower(rest), "charset") {
		return mimeType, ""
	}
	if _, params, err := mime.ParseMediaType(v); err == nil {
		charset = text(params["charset"])
	}
	return mimeType, charset
}
