package cdpgw

import (
	"strconv"
	"strings"

	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/console"
	"github.com/natscope/natscope/subjects/network"
)

// A line that belongs to a request, or to a trace, ends with an object that says
// so: "GET /orders 200 · 4bf92f35". Its text can be searched for, also across the
// programs that a trace went through, and it opens to the whole ids.

// linkPrefix begins the ids of these objects.
const linkPrefix = "link"

// link names a console entry whose request and trace are meant.
type link struct {
	source subjects.SourceID
	order  uint64
}

func (l link) id() ObjectID {
	return ObjectID(linkPrefix + ":" + string(l.source) + ":" + strconv.FormatUint(l.order, 10))
}

// parseLink reads an id that link.id made.
func parseLink(id ObjectID) (link, bool) {
	parts := strings.Split(string(id), ":")
	if len(parts) != 3 || parts[0] != linkPrefix || !subjects.IsToken(parts[1]) {
		return link{}, false
	}
	order, err := strconv.ParseUint(parts[2], 10, 64)
	return link{subjects.SourceID(parts[1]), order}, err == nil
}

// traceShown is how many characters of a trace id a line shows.
const traceShown = 8

// traceOf returns the trace id of a traceparent, empty if it is none.
func traceOf(traceparent string) string {
	parts := strings.Split(traceparent, "-")
	if len(parts) < 4 || len(parts[1]) != 32 {
		return ""
	}
	return parts[1]
}

// linkOf returns the object that a line ends with; false for a line without request and trace.
func linkOf(src *fold.Source, e *console.Entry) (remoteObject, bool) {
	if e.Message.Type == "table" {
		return remoteObject{}, false // DevTools takes what follows the table for the names of columns.
	}
	text := requestText(src.Net.Get(e.Generation, e.Message.Request))
	if t := traceOf(e.Message.Trace); t != "" {
		text = strings.TrimPrefix(text+" · "+t[:traceShown], " · ")
	}
	if text == "" {
		return remoteObject{}, false
	}
	return remoteObject{Type: "object", ClassName: "Request", Description: text, ObjectID: link{src.ID, e.Order}.id()}, true
}

// requestText names a request in a few words; empty if it is not known (any more).
func requestText(r *network.Request) string {
	if r == nil {
		return ""
	}
	text := r.Start.Value.Method + " " + cut(pathOf(r.Start.Value.URL), 60)
	if r.Response != nil && r.Response.Value.Status > 0 {
		text += " " + strconv.Itoa(r.Response.Value.Status)
	}
	return text
}

// pathOf returns the path of an address, without what is asked for.
func pathOf(address string) string {
	_, rest, ok := strings.Cut(address, "://")
	if !ok {
		rest = address
	}
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		rest = rest[i:]
	}
	path, _, _ := strings.Cut(rest, "?")
	return path
}

// linkProperties opens the object of a link.
func (s *session) linkProperties(l link, accessors bool) (any, error) {
	src := s.source(l.source)
	if src == nil {
		return nil, failf("The source of this object is gone.")
	}
	e := entryOf(src, l.order)
	if e == nil || e.Message == nil {
		return nil, failf("This object belongs to a console line that is no longer kept.")
	}
	out := getPropertiesResult{Result: []propertyDescriptor{}}
	add := func(name, text string) {
		if text != "" {
			out.Result = append(out.Result, propertyDescriptor{Name: name, Value: textObject(text), Enumerable: true, IsOwn: true})
		}
	}
	if accessors {
		return out, nil
	}
	if r := src.Net.Get(e.Generation, e.Message.Request); r != nil {
		add("method", r.Start.Value.Method)
		add("url", r.Start.Value.URL)
		if r.Response != nil && r.Response.Value.Status > 0 {
			out.Result = append(out.Result, propertyDescriptor{Name: "status", Value: numberObject(strconv.Itoa(r.Response.Value.Status)), Enumerable: true, IsOwn: true})
		}
	}
	add("request", string(e.Message.Request))
	add("trace", traceOf(e.Message.Trace))
	add("traceparent", e.Message.Trace)
	return out, nil
}
