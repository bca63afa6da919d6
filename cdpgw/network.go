package cdpgw

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
)

// RequestID names a request in the protocol: source, generation and the
// request's own id, joined by dots, so that it is unique in the space and the
// same at every gateway. All requests of a chain of redirects have the id of the
// first; it stands for the last one, as in Chrome.
type RequestID string

func requestID(src subjects.SourceID, r *network.Request) RequestID {
	id := r.ID()
	if r.Root != "" {
		id = r.Root
	}
	return RequestID(string(src) + "." + r.Generation + "." + string(id))
}

// networkState is what the client was told of the Network domain.
type networkState struct {
	enabled bool
	// streams are the bodies that go out with their data as they come.
	streams map[*network.Request]*bodyStream
	// held are the responses that may turn out to be redirects.
	held map[*network.Request]*heldResponse
}

var networkMethods = map[string]method{
	"Network.enable":                         on((*session).networkEnable),
	"Network.disable":                        on((*session).networkDisable),
	"Network.getResponseBody":                on((*session).networkGetResponseBody),
	"Network.getRequestPostData":             on((*session).networkGetRequestPostData),
	"Network.searchInResponseBody":           on((*session).networkSearchInResponseBody),
	"Network.streamResourceContent":          on((*session).networkStreamResourceContent),
	"Network.configureDurableMessages":       constant(empty{}),
	"Network.setAttachDebugStack":            constant(empty{}),
	"Network.setBlockedURLs":                 constant(empty{}),
	"Network.setCacheDisabled":               constant(empty{}),
	"Network.setBypassServiceWorker":         constant(empty{}),
	"Network.loadNetworkResource":            on((*session).networkLoadNetworkResource),
	"Network.setExtraHTTPHeaders":            refuse("natscope watches requests and does not change them."),
	"Network.replayXHR":                      refuse("natscope does not send requests for a source. Copy the request as cURL or as fetch and send it yourself."),
	"Network.overrideNetworkState":           constant(empty{}),
	"Network.emulateNetworkConditionsByRule": constant(map[string][]string{"ruleIds": {}}),
	"Network.clearAcceptedEncodingsOverride": constant(empty{}),
	"Network.getSecurityIsolationStatus":     constant(map[string]empty{"status": {}}),
}

// networkEnable replays the requests that the sources kept, in the order of their starts.
func (s *session) networkEnable(empty) (any, error) {
	if s.network.enabled {
		return nil, nil
	}
	s.network.enabled = true
	type row struct {
		src *fold.Source
		r   *network.Request
	}
	var rows []row
	for _, src := range s.sources() {
		for _, r := range src.Net.Requests {
			rows = append(rows, row{src, r})
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(a.r.Origin+a.r.Start.T, b.r.Origin+b.r.Start.T) })
	for _, x := range rows {
		for _, m := range (projection{hub: s.gateway.hub, source: x.src}).replay(x.r) {
			s.send(m)
		}
	}
	return nil, nil
}

func (s *session) networkDisable(empty) (any, error) {
	for _, st := range s.network.streams {
		st.stop()
	}
	for _, h := range s.network.held {
		h.timer.Stop()
	}
	s.network = networkState{}
	return nil, nil
}

// request finds the request that a client names.
func (s *session) request(id RequestID) (*fold.Source, *network.Request, error) {
	parts := strings.Split(string(id), ".")
	if len(parts) != 3 {
		return nil, nil, failf("No resource with given identifier found")
	}
	src := s.source(subjects.SourceID(parts[0]))
	if src == nil {
		return nil, nil, failf("No resource with given identifier found: its source is gone.")
	}
	r := src.Net.Last(parts[1], network.RequestID(parts[2]))
	if r == nil {
		return nil, nil, failf("No resource with given identifier found: natscope keeps the last %d requests of a source, and this one was evicted.", s.gateway.limits.Requests)
	}
	return src, r, nil
}

// body names a body of a request.
func (s *session) body(src *fold.Source, r *network.Request, d subjects.Direction) subjects.BodySubject {
	return subjects.BodySubject{Space: s.target.space, Source: src.ID, Generation: subjects.Generation(r.Generation), Request: r.ID(), Direction: d}
}

// requestChanged tells one change of a request. While its body is streamed to
// this connection, sizes and the end follow the stream.
func (s *session) requestChanged(b *batch, i int, c fold.Change) {
	for _, r := range c.Request.Evicted {
		if st := s.network.streams[r]; st != nil {
			time.AfterFunc(streamRest, st.stop)
		}
	}
	if st := s.network.streams[c.Request.Request]; st != nil && s.streamed(st, c, b.shared(i)) {
		return
	}
	if s.hold(c.Source, c.Request, b.shared(i)) {
		return
	}
	for _, m := range b.shared(i) {
		s.send(m)
	}
}
