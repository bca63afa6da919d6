package cdpgw

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/natscope/natscope/subjects/realm"
)

// farFile begins the addresses of source maps that are files of the program's
// machine. DevTools reads file: addresses by itself, on its own machine; for a
// scheme that it does not know it asks whom it is connected to.
const farFile = "natscope-file:"

// offerMap makes the source map of a child's script one that the client can
// load, and returns the script as the client is to be told of it. Debuggers that
// are no DevTools read files themselves, where they were told to find them.
func (s *session) offerMap(c *child, script json.RawMessage) json.RawMessage {
	var about struct {
		URL       string `json:"url"`
		SourceMap string `json:"sourceMapURL"`
	}
	if !c.at.can(realm.MethodLoadResource) || json.Unmarshal(script, &about) != nil || about.SourceMap == "" || strings.HasPrefix(about.SourceMap, "data:") {
		return script
	}
	base, err := url.Parse(about.URL)
	if err != nil {
		return script
	}
	u, err := base.Parse(about.SourceMap)
	if err != nil {
		return script
	}
	at, address := c.at, u.String()
	load := func(ctx context.Context) ([]byte, error) {
		raw, err := s.ask(ctx, at, realm.MethodLoadResource, encode(realm.LoadResourceParams{URL: address}), nil)
		var r realm.LoadResourceResult
		if err == nil {
			err = json.Unmarshal(raw, &r)
		}
		return []byte(r.Content), err
	}
	if u.Scheme != "file" || !s.conn.frontend {
		s.offerResource(address, load)
		return script
	}
	far := farFile + strings.TrimPrefix(address, "file:")
	var p rawParams
	if json.Unmarshal(script, &p) != nil || !s.offerResource(far, load) {
		return script
	}
	p["sourceMapURL"] = encode(far)
	return encode(p)
}
