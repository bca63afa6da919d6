package v8

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/subjects/realm"
)

// The bounds of loading what scripts refer to.
const (
	// maxResource is the most bytes of a source map.
	maxResource = 48 << 20
	// maxCatalog is how many addresses of source maps a session remembers.
	maxCatalog = 50_000
	// resourceWithin bounds the loading of one.
	resourceWithin = 20 * time.Second
)

// catalog holds the addresses that the scripts of a session name as their source
// maps: nothing else can be loaded.
type catalog struct {
	mu   sync.Mutex // guards base
	base map[string]struct{}
}

// add takes a script.
func (c *catalog) add(params json.RawMessage) {
	var p struct {
		URL       string `json:"url"`
		SourceMap string `json:"sourceMapURL"`
	}
	if json.Unmarshal(params, &p) != nil || p.SourceMap == "" || len(p.SourceMap) > 4096 {
		return // A long one is the map itself.
	}
	address := p.SourceMap
	if base, err := url.Parse(p.URL); err == nil {
		if u, err := base.Parse(p.SourceMap); err == nil {
			address = u.String()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.base) < maxCatalog {
		c.base[address] = struct{}{}
	}
}

func (c *catalog) has(address string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.base[address]
	return ok
}

// loadResource answers realm.MethodLoadResource.
func (s *session) loadResource(ctx context.Context, params json.RawMessage, reply func(any, error)) {
	p, err := realm.ParseParams[realm.LoadResourceParams](params)
	if err != nil {
		reply(nil, err)
		return
	}
	if !s.catalog.has(p.URL) {
		reply(nil, fmt.Errorf("%w: no script of this session names %.200q as its source map, and nothing else can be loaded", realm.ErrRefused, p.URL))
		return
	}
	if id, ok := strings.CutPrefix(p.URL, insideMap); ok {
		s.loadInside(ctx, id, reply)
		return
	}
	s.x.w.a.all.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, resourceWithin)
		defer cancel()
		data, err := s.x.fetch(ctx, p.URL)
		switch {
		case err != nil:
			reply(nil, fmt.Errorf("%w: %.200q cannot be loaded: %w", realm.ErrNotFound, p.URL, err))
		case !utf8.Valid(data):
			reply(nil, fmt.Errorf("%w: %.200q is not text", realm.ErrFailed, p.URL))
		default:
			reply(realm.LoadResourceResult{Content: string(data)}, nil)
		}
	})
}

// insideMap begins the address of a source map that a script has inside, and that
// is too long to be told with the script. The script's id follows.
const insideMap = "natscope-inside:"

// loadInside takes a source map out of the script that has it.
func (s *session) loadInside(ctx context.Context, id string, reply func(any, error)) {
	params, _ := json.Marshal(map[string]string{"scriptId": id})
	s.Do(ctx, "debugger.getScriptSource", params, func(result any, err error) {
		raw, _ := result.(producer.Verbatim)
		var r struct {
			Source string `json:"scriptSource"`
		}
		if err == nil {
			err = json.Unmarshal(raw, &r)
		}
		if err != nil {
			reply(nil, err)
			return
		}
		data, err := mapInside(r.Source)
		if err != nil {
			reply(nil, fmt.Errorf("%w: the source map of script %.40s: %w", realm.ErrFailed, id, err))
			return
		}
		reply(realm.LoadResourceResult{Content: data}, nil)
	})
}

// mapInside decodes the source map at the end of a script.
func mapInside(script string) (string, error) {
	i := strings.LastIndex(script, "sourceMappingURL=data:")
	if i < 0 {
		return "", fmt.Errorf("the script has none inside")
	}
	head, data, ok := strings.Cut(script[i:], ",")
	if !ok {
		return "", fmt.Errorf("its address is cut short")
	}
	if end := strings.IndexAny(data, " \t\r\n'\""); end >= 0 {
		data = data[:end]
	}
	if !strings.HasSuffix(head, ";base64") {
		return url.PathUnescape(data)
	}
	text, err := base64.StdEncoding.DecodeString(data)
	if err == nil && !utf8.Valid(text) {
		err = fmt.Errorf("it is not text")
	}
	return string(text), err
}

// fetch reads a file of the program's machine, or asks a web server.
func (x *observer) fetch(ctx context.Context, address string) ([]byte, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	switch u.Scheme {
	case "file":
		if !x.local() {
			return nil, fmt.Errorf("the program runs on another machine; run natscope attach there")
		}
		f, err := os.Open(filepath.FromSlash(u.Path))
		if err != nil {
			return nil, err
		}
		defer f.Close()
		if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
			return nil, fmt.Errorf("it is no file")
		}
		data, err := readBounded(f)
		if err != nil {
			return nil, err
		}
		return completeMap(data, u), nil
	case "http", "https":
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return nil, err
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return nil, err
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("the server answers %s", res.Status)
		}
		return readBounded(res.Body)
	}
	return nil, fmt.Errorf("addresses of the kind %.20q cannot be loaded", u.Scheme)
}

// local reports whether the program runs on this machine.
func (x *observer) local() bool {
	host, _, _ := net.SplitHostPort(x.w.endpoint)
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func readBounded(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxResource+1))
	if err == nil && len(data) > maxResource {
		return nil, fmt.Errorf("it has more than %d bytes", maxResource)
	}
	return data, err
}

// The bounds of the sources that are put into a map.
const (
	maxSource  = 2 << 20
	maxSources = 24 << 20
)

// completeMap gives a source map that is a file the texts of its sources, where it
// lacks them, and their whole addresses: whoever reads it is on another machine
// and cannot look beside it. What is no map stays as it is.
func completeMap(data []byte, at *url.URL) []byte {
	var m map[string]json.RawMessage
	var root string
	var sources []string
	var contents []*string
	if json.Unmarshal(data, &m) != nil || json.Unmarshal(m["sources"], &sources) != nil {
		return data
	}
	_ = json.Unmarshal(m["sourceRoot"], &root)
	_ = json.Unmarshal(m["sourcesContent"], &contents)
	for len(contents) < len(sources) {
		contents = append(contents, nil)
	}
	if root != "" && root[len(root)-1] != '/' {
		root += "/"
	}
	total := 0
	for i, s := range sources {
		u, err := at.Parse(root + s)
		if err != nil || u.Scheme != "file" {
			continue
		}
		sources[i] = u.String()
		if contents[i] != nil {
			continue
		}
		file := filepath.FromSlash(u.Path)
		if st, err := os.Stat(file); err != nil || !st.Mode().IsRegular() || st.Size() > maxSource || total+int(st.Size()) > maxSources {
			continue
		}
		if text, err := os.ReadFile(file); err == nil && utf8.Valid(text) {
			t := string(text)
			contents[i], total = &t, total+len(t)
		}
	}
	m["sources"], _ = json.Marshal(sources)
	m["sourcesContent"], _ = json.Marshal(contents)
	delete(m, "sourceRoot")
	out, err := json.Marshal(m)
	if err != nil {
		return data
	}
	return out
}
