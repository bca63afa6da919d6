package v8

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// ErrEndpoint says that an address of an inspector cannot be one. The text around it says what it takes.
var ErrEndpoint = errors.New("v8: not the address of an inspector")

// maxRange is how many ports one range may have.
const maxRange = 1024

// maxList is the most bytes of an answer of the discovery.
const maxList = 8 << 20

// ParseEndpoints reads an address of inspectors as people write it: HOST:PORT,
// HOST:PORT-PORT for a range, :PORT or PORT for this machine, or a ws:// or http://
// URL, of which only the host counts. The result is HOST:PORT, one or more of them.
// The error wraps ErrEndpoint.
func ParseEndpoints(text string) ([]string, error) {
	address := strings.TrimSpace(text)
	if strings.Contains(address, "://") {
		u, err := url.Parse(address)
		if err != nil || u.Host == "" {
			return nil, fmt.Errorf("%w: %.100q has no host", ErrEndpoint, text)
		}
		address = u.Host
	}
	if !strings.Contains(address, ":") {
		address = ":" + address
	}
	host, ports, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("%w: %.100q: write HOST:PORT or HOST:PORT-PORT, as in 127.0.0.1:9229", ErrEndpoint, text)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	from, to, isRange := strings.Cut(ports, "-")
	first, err := strconv.ParseUint(from, 10, 16)
	last := first
	if err == nil && isRange {
		last, err = strconv.ParseUint(to, 10, 16)
	}
	switch {
	case err != nil || first == 0:
		return nil, fmt.Errorf("%w: %.100q: ports are numbers from 1 to 65535", ErrEndpoint, text)
	case last < first || last-first >= maxRange:
		return nil, fmt.Errorf("%w: %.100q: a range goes upwards and has at most %d ports", ErrEndpoint, text, maxRange)
	}
	var out []string
	for p := first; p <= last; p++ {
		out = append(out, net.JoinHostPort(host, strconv.FormatUint(p, 10)))
	}
	return out, nil
}

// listed is one target as an inspector lists it.
type listed struct {
	ID          string `json:"id"`
	Type        string `json:"type"`
	Title       string `json:"title"`
	URL         string `json:"url"`
	Description string `json:"description"`
	Socket      string `json:"webSocketDebuggerUrl"`
}

// engine is what an inspector says of itself.
type engine struct {
	Browser string `json:"Browser"`
	V8      string `json:"V8-Version"`
}

// runtime names language and version for people.
func (e engine) runtime() string {
	name, version, ok := strings.Cut(e.Browser, "/")
	if !ok {
		return or(e.Browser, "V8 "+e.V8)
	}
	if name == "node.js" {
		name = "node"
	}
	return name + " " + version
}

// isBrowser reports whether the targets are pages and workers of a browser.
func (e engine) isBrowser() bool {
	return strings.Contains(e.Browser, "Chrom") || strings.Contains(e.Browser, "Edg")
}

// isDeno reports whether the targets are programs in Deno.
func (e engine) isDeno() bool { return strings.HasPrefix(e.Browser, "Deno") }

// discovery asks inspectors what they have. It follows no redirect and uses no proxy: an inspector does neither.
var discovery = &http.Client{
	Timeout:       3 * time.Second,
	Transport:     &http.Transport{DisableKeepAlives: true, DialContext: (&net.Dialer{Timeout: 2 * time.Second}).DialContext},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// get reads one JSON document of an inspector.
func get(ctx context.Context, endpoint, path string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+endpoint+path, nil)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrEndpoint, endpoint, err)
	}
	res, err := discovery.Do(req)
	if err != nil {
		return fmt.Errorf("v8: ask %s: %w", endpoint, err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, maxList))
	if err != nil {
		return fmt.Errorf("v8: ask %s: %w", endpoint, err)
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("v8: %s answers %s to %s: it is not an inspector", endpoint, res.Status, path)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("v8: what %s answers to %s is not JSON: it is not an inspector", endpoint, path)
	}
	return nil
}

// socket is the address of a target's connection: the host is the one that was
// asked, since an inspector behind a forwarded port knows only its own.
func (t listed) socket(endpoint string) string {
	u, err := url.Parse(t.Socket)
	if err != nil || u.Path == "" {
		return "ws://" + endpoint + "/" + url.PathEscape(t.ID)
	}
	u.Host, u.Scheme, u.User = endpoint, "ws", nil
	return u.String()
}

// wanted reports whether a target is a program that people mean, and not a part
// of the browser itself or of a tool in it. The workers of a page come with it:
// those of Chromium do not answer by themselves.
func (t listed) wanted() bool {
	switch t.Type {
	case "node", "deno", "page", "iframe", "shared_worker", "service_worker", "webview":
	default:
		return false
	}
	for _, scheme := range []string{"devtools:", "chrome-devtools:", "chrome-extension:", "chrome:", "edge:", "chrome-untrusted:"} {
		if strings.HasPrefix(t.URL, scheme) {
			return false
		}
	}
	return t.ID != "" && len(t.ID) <= 128
}
