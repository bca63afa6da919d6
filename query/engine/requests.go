package engine

import (
	"context"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/natscope/natscope/query"
	"github.com/natscope/natscope/query/filter"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
)

// stateRunning is the state of a request that has not ended.
const stateRunning = "running"

// wallOf is when a request began, in milliseconds since the Unix epoch.
func wallOf(r *network.Request) float64 { return r.Origin + r.Start.T }

func requestLane(src *fold.Source) lane[*network.Request] {
	return lane[*network.Request]{
		src: src, items: src.Net.Requests, count: src.Net.Started,
		number: func(r **network.Request) uint64 { return (*r).Order },
		wall:   func(r **network.Request) float64 { return wallOf(*r) },
	}
}

// Requests implements query.API.
func (e *Engine) Requests(ctx context.Context, q query.RequestsRequest) (query.RequestsAnswer, error) {
	f, err := newFilter(q.Filter, q.Text)
	if err != nil {
		return query.RequestsAnswer{}, err
	}
	requests, paged, err := page(ctx, e, q.Page, lister[*network.Request, query.RequestSummary]{
		list: query.ListRequests, lane: requestLane,
		take: func(v view, src *fold.Source, x **network.Request) (query.RequestSummary, int, bool) {
			if q.Failed && !failed(*x) || !f.Empty() && !f.Match(requestItem(v.now, src, *x, f)) {
				return query.RequestSummary{}, 0, false
			}
			a := summary(src.ID, *x)
			return a, 400 + len(a.URL) + len(a.Error), true
		},
	})
	return query.RequestsAnswer{Requests: requests, Paged: paged}, err
}

// failed reports whether a request failed, has a status of 400 or more, or one of gRPC that is not 0.
func failed(r *network.Request) bool {
	switch r.Ending {
	case network.Failed, network.Canceled, network.SourceGone:
		return true
	}
	return r.Response != nil && r.Response.Value.Status >= 400 || r.End != nil && r.End.Error != "" || r.GRPCStatus() != 0
}

// stateOfRequest is running or how a request ended.
func stateOfRequest(r *network.Request) string {
	if r.Ending == network.Running {
		return stateRunning
	}
	return string(r.Ending)
}

// whyFailed says why a request failed or was cut, empty if it was not.
func whyFailed(r *network.Request) string {
	switch {
	case r.Error != nil:
		return r.Error.Text
	case r.End != nil && r.End.Error != "":
		return r.End.Error
	case r.GRPCStatus() != 0:
		return r.StatusText()
	}
	return ""
}

// duration is from the start of a request to its end or its last sign, in milliseconds.
func duration(r *network.Request) float64 {
	end := max(r.LastData, r.Start.T)
	if r.Response != nil {
		end = max(end, r.Response.T)
	}
	if r.Ending != network.Running {
		end = r.EndedAt
	}
	return max(end-r.Start.T, 0)
}

// received is how many decoded bytes of a response came.
func received(r *network.Request) int64 {
	if r.End != nil {
		return r.End.Bytes
	}
	return r.Received.Bytes
}

// summary makes what lists say of a request.
func summary(id subjects.SourceID, r *network.Request) query.RequestSummary {
	s := &r.Start.Value
	out := query.RequestSummary{
		ID:     query.RequestName{Source: id, Generation: subjects.Generation(r.Generation), Request: r.ID()}.ID(),
		Source: id, Number: r.Order, Direction: s.Direction, Time: millis(wallOf(r)), Method: clean(s.Method, 100), URL: clean(s.URL, maxURL),
		State: stateOfRequest(r), Error: clean(whyFailed(r), maxURL), Type: clean(s.Type, 100), DurationMS: duration(r), Bytes: received(r),
		Messages: len(r.Messages), Trace: clean(s.Trace, maxPath), Route: clean(routeOf(r), maxPath),
	}
	if s.RedirectOf != "" {
		out.RedirectOf = query.RequestName{Source: id, Generation: subjects.Generation(r.Generation), Request: s.RedirectOf}.ID()
	}
	if r.Response != nil {
		out.Status, out.MIMEType = r.Response.Value.Status, clean(r.Response.Value.MIMEType, 200)
	}
	return out
}

// routeOf is the pattern that an incoming request was matched with.
func routeOf(r *network.Request) string {
	if r.Response != nil && r.Response.Value.Route != "" {
		return r.Response.Value.Route
	}
	return r.Start.Value.Route
}

// requestItem is a request as filters see it.
func requestItem(now time.Time, src *fold.Source, r *network.Request, f *filter.Filter) *filter.Item {
	s := &r.Start.Value
	out := &filter.Item{
		What: filter.WhatRequest, Source: string(src.ID), SourceName: src.Name(), Connected: src.Connected, Generation: r.Generation,
		Number: int(r.Order), Age: age(now, wallOf(r)), Method: s.Method, URL: s.URL, Text: s.Method + " " + s.URL, State: stateOfRequest(r),
		Failed: failed(r), Error: whyFailed(r), Type: s.Type, Direction: string(s.Direction), Duration: duration(r), Bytes: int(received(r)), Trace: s.Trace, Route: routeOf(r),
	}
	if r.Response != nil {
		out.Status, out.MIME = r.Response.Value.Status, r.Response.Value.MIMEType
	}
	if f.Uses("host") || f.Uses("path") {
		if u, err := url.Parse(s.URL); err == nil {
			out.Host, out.Path = u.Host, u.Path
		}
	}
	if len(s.Stack) > 0 && (f.Uses("loc") || f.Text() != "") {
		out.Loc = place(s.Stack[0])
	}
	return out
}

// request finds the request that an id names. The state's lock is held.
func (v view) request(id query.RequestID) (*fold.Source, *network.Request, error) {
	name, err := id.Parse()
	if err != nil {
		return nil, nil, err
	}
	src, err := v.named(name.Source, name.Order != 0)
	if err != nil {
		return nil, nil, err
	}
	if name.Order == 0 {
		if r := src.Net.Get(string(name.Generation), name.Request); r != nil {
			return src, r, nil
		}
		return nil, nil, query.Errorf(query.ErrGone, "request %.120q is not kept, or never was; list the requests of %s that are", string(id), src.ID)
	}
	for _, r := range src.Net.Requests {
		if r.Order == name.Order {
			return src, r, nil
		}
	}
	if name.Order <= src.Net.Started {
		return nil, nil, query.Errorf(query.ErrGone, "request %s is no longer kept; the oldest that is has the number %d", id, src.Net.Evicted+1)
	}
	return nil, nil, query.Errorf(query.ErrNotFound, "%s made or served %d requests, so there is no number %d", src.ID, src.Net.Started, name.Order)
}

// Request implements query.API.
func (e *Engine) Request(_ context.Context, q query.RequestRequest) (query.RequestAnswer, error) {
	var out query.RequestAnswer
	var err error
	e.view(func(v view) {
		var src *fold.Source
		var r *network.Request
		if src, r, err = v.request(q.ID); err == nil {
			out = whole(src, r)
		}
	})
	return out, err
}

// maxHeaders is how many header lines an answer has.
const maxHeaders = 200

// headers copies header lines; a nil list would not be one in JSON.
func headers(h []network.Header) []network.Header {
	out := []network.Header{}
	for _, x := range h[:min(len(h), maxHeaders)] {
		out = append(out, network.Header{clean(x[0], 200), clean(x[1], maxText)})
	}
	return out
}

// whole makes the answer that has everything of a request but its bodies.
func whole(src *fold.Source, r *network.Request) query.RequestAnswer {
	s := &r.Start.Value
	out := query.RequestAnswer{
		RequestSummary: summary(src.ID, r), FullURL: clean(s.URL, 64<<10), RequestHeaders: headers(s.Headers), ResponseHeaders: []network.Header{},
		Client: clean(s.Client, 200), RequestBody: requestBody(r), ResponseBody: responseBody(r), Stack: stackLines(s.Stack), MessagesLost: r.MessagesLost,
	}
	if r.Response != nil {
		p := &r.Response.Value
		out.StatusText, out.Protocol, out.Reused = clean(r.StatusText(), 200), clean(p.Protocol, 100), p.Reused
		out.ResponseHeaders = headers(p.Headers)
		if len(p.RequestHeaders) > 0 {
			out.RequestHeaders = headers(p.RequestHeaders)
		}
		if p.RemoteIP != "" {
			out.Remote = net.JoinHostPort(clean(p.RemoteIP, 100), strconv.Itoa(p.RemotePort))
		}
		out.Timing = phases(r)
		if t := p.TLS; t != nil {
			out.TLS = clean(strings.TrimSpace(t.Version+" "+t.Cipher), 200)
		}
	}
	newest := r.Messages[max(len(r.Messages)-query.MaxAnswerMessages, 0):]
	out.MessagesLost += uint64(len(r.Messages) - len(newest))
	for i := range newest {
		m := &newest[i].Value
		out.MessageList = append(out.MessageList, query.RequestMessage{
			Time: millis(r.Origin + newest[i].T), Sent: m.Sent, Event: clean(m.Event, 200), Opcode: m.Opcode,
			Data: clean(m.Data, maxMessageData), Base64: m.Base64, Bytes: len(m.Data),
		})
	}
	return out
}

// maxMessageData is how many bytes of a message an answer has.
const maxMessageData = 4000

func requestBody(r *network.Request) query.BodyInfo {
	if !r.Start.Value.HasBody {
		return query.BodyInfo{Ended: true}
	}
	if r.BodyEnd == nil {
		return query.BodyInfo{Bytes: max(r.Start.Value.BodyBytes, -1), Ended: r.Ending != network.Running}
	}
	b := r.BodyEnd.Value
	return query.BodyInfo{Bytes: b.Bytes, Captured: b.Captured, Truncated: b.Truncated, Redacted: b.Redacted, Ended: true}
}

func responseBody(r *network.Request) query.BodyInfo {
	if r.End == nil {
		return query.BodyInfo{Bytes: r.Received.Bytes, Captured: r.Received.Bytes, Ended: r.Ending != network.Running}
	}
	return query.BodyInfo{Bytes: r.End.Bytes, Captured: r.End.Captured, Truncated: r.End.Truncated, Redacted: r.End.Redacted, Ended: true}
}

// phases turns the times of a request into the lengths of its phases.
func phases(r *network.Request) []query.Phase {
	t := r.Response.Value.Timing
	if t == nil {
		return nil
	}
	var out []query.Phase
	add := func(name string, from, to float64) {
		if from >= 0 && to >= from {
			out = append(out, query.Phase{Name: name, MS: to - from})
		}
	}
	add("dns", t.DNSStart, t.DNSEnd)
	connected := t.ConnectEnd
	if t.TLSStart >= 0 {
		connected = t.TLSStart
	}
	add("connect", t.ConnectStart, connected)
	add("tls", t.TLSStart, t.TLSEnd)
	add("send", t.SendStart, t.SendEnd)
	add("wait", t.SendEnd, t.HeadersStart)
	if r.Ending != network.Running {
		add("receive", t.HeadersStart, r.EndedAt-r.Start.T)
	}
	return out
}
