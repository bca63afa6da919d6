package cdpgw

import (
	"context"
	"encoding/base64"
	"strconv"
)

// The bounds of what one connection may load.
const (
	// maxResources is how many addresses are offered to one connection.
	maxResources = 20000
	// maxStreams is how many loaded resources a client may hold open.
	maxStreams = 64
	// maxRead is how much one read returns, in bytes.
	maxRead = 1 << 20
)

// loadResource reads a resource that was offered. It is called without locks.
type loadResource func(ctx context.Context) ([]byte, error)

// resourceState holds what a connection may load by address, and what it has
// loaded. session.mu guards it.
//
// Only what was offered can be loaded: the gateway must not fetch addresses for
// whoever is connected to it. For every other address DevTools gets an error,
// and tries to load it by itself.
type resourceState struct {
	offered map[string]loadResource
	streams map[string]*resourceStream
	last    int
}

type resourceStream struct {
	data []byte
	at   int
}

// offerResource lets the client load an address, as the source map of a script
// that it is told of. It reports whether there was room. session.mu is held.
func (s *session) offerResource(address string, load loadResource) bool {
	if s.resource.offered == nil {
		s.resource.offered = make(map[string]loadResource)
	}
	if _, known := s.resource.offered[address]; !known && len(s.resource.offered) >= maxResources {
		return false
	}
	s.resource.offered[address] = load
	return true
}

// withdrawResource takes an offer back, when its script is gone. session.mu is held.
func (s *session) withdrawResource(address string) { delete(s.resource.offered, address) }

type loadResourceParams struct {
	URL string `json:"url"`
}

type loadedResource struct {
	Success        bool    `json:"success"`
	NetError       int     `json:"netError,omitempty"`
	NetErrorName   string  `json:"netErrorName,omitempty"`
	HTTPStatusCode int     `json:"httpStatusCode,omitempty"`
	Stream         string  `json:"stream,omitempty"`
	Headers        headers `json:"headers,omitempty"`
}

func (s *session) networkLoadNetworkResource(p loadResourceParams) (any, error) {
	load := s.resource.offered[p.URL]
	if load == nil {
		return nil, failf("natscope loads nothing but the source maps of scripts that it announced; %.200s is none.", p.URL)
	}
	if len(s.resource.streams) >= maxStreams {
		return nil, failf("%d resources are open on this connection; close some with IO.close.", maxStreams)
	}
	return later(func(ctx context.Context) (any, error) {
		ctx, cancel := context.WithTimeout(ctx, s.gateway.limits.Command)
		defer cancel()
		data, err := load(ctx)
		if err != nil {
			return nil, err
		}
		return map[string]loadedResource{"resource": {Success: true, HTTPStatusCode: 200, Stream: s.openStream(data), Headers: headers{}}}, nil
	}), nil
}

// openStream keeps loaded data until the client has read and closed it.
func (s *session) openStream(data []byte) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.resource.streams == nil {
		s.resource.streams = make(map[string]*resourceStream)
	}
	s.resource.last++
	handle := "resource-" + strconv.Itoa(s.resource.last)
	s.resource.streams[handle] = &resourceStream{data: data}
	return handle
}

var ioMethods = map[string]method{
	"IO.read":  on((*session).ioRead),
	"IO.close": on((*session).ioClose),
}

type ioReadParams struct {
	Handle string `json:"handle"`
	Offset *int   `json:"offset"`
	Size   int    `json:"size"`
}

type ioReadResult struct {
	Base64Encoded bool   `json:"base64Encoded"`
	Data          string `json:"data"`
	EOF           bool   `json:"eof"`
}

// ioRead returns the next bytes of a stream. The end comes with an empty read
// alone: DevTools drops data that comes together with it.
func (s *session) ioRead(p ioReadParams) (any, error) {
	st := s.resource.streams[p.Handle]
	if st == nil {
		return nil, failf("Invalid stream handle %.80q", p.Handle)
	}
	if p.Offset != nil {
		st.at = min(max(*p.Offset, 0), len(st.data))
	}
	size := maxRead
	if p.Size > 0 {
		size = min(p.Size, maxRead)
	}
	data := st.data[st.at:min(st.at+size, len(st.data))]
	st.at += len(data)
	return ioReadResult{Base64Encoded: true, Data: base64.StdEncoding.EncodeToString(data), EOF: len(data) == 0}, nil
}

type ioCloseParams struct {
	Handle string `json:"handle"`
}

func (s *session) ioClose(p ioCloseParams) (any, error) {
	if s.resource.streams[p.Handle] == nil {
		return nil, failf("Invalid stream handle %.80q", p.Handle)
	}
	delete(s.resource.streams, p.Handle)
	return nil, nil
}
