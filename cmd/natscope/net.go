package main

import (
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/natscope/natscope/query"
	"github.com/natscope/natscope/subjects/network"
)

// listFlags are the flags of commands that print a list and may follow it.
type listFlags struct {
	askFlags
	filter, text string
	limit        int
	follow       bool
}

func (f *listFlags) registerList(c *cobra.Command, limit int) {
	fl := c.Flags()
	fl.StringVar(&f.filter, "filter", "", "an expression that they must fulfil; docs/query.md has the language")
	fl.StringVar(&f.text, "text", "", "a text that they must contain; case does not matter")
	fl.IntVarP(&f.limit, "limit", "n", limit, "how many of the newest to show")
	fl.BoolVarP(&f.follow, "follow", "f", false, "go on with what comes, until Ctrl+C")
	c.ValidArgsFunction = f.sourceNames
}

func (f *listFlags) page(sources []string) query.Page {
	return query.Page{Sources: sources, Filter: f.filter, Text: f.text, Limit: min(f.limit, query.MaxLimit)}
}

// newest reads the newest things of a list, page by page until there are enough.
func newest[A any](f *listFlags, sources []string, ask func(query.Page) ([]A, query.Paged, error)) ([]A, error) {
	p := f.page(sources)
	var out []A
	for len(out) < f.limit {
		p.Limit = min(f.limit-len(out), query.MaxLimit)
		part, paged, err := ask(p)
		if err != nil {
			return nil, err
		}
		out = append(part, out...)
		if !paged.More {
			break
		}
		p.Before = paged.Prev
	}
	return out, nil
}

// events follows events of one kind, the newest things first of all.
func (a *asker) events(f *listFlags, sources []string, kind string, print func(query.Event) error) error {
	q := query.WatchRequest{Sources: sources, Kinds: []string{kind}, Filter: f.filter, Text: f.text, Last: min(f.limit, query.MaxLast)}
	if f.limit <= 0 {
		q.Last = -1
	}
	return query.Follow(a.ctx, a.API, q, func(e query.Event) error {
		if e.Kind == query.EventReset && !a.json {
			a.printf("%s\n", a.paint(yellow, "-- "+e.Reason+" --"))
			return a.err
		}
		if e.Kind != kind {
			return a.err
		}
		if err := print(e); err != nil {
			return err
		}
		return a.err
	}, nil)
}

func newNet() *cobra.Command {
	var f listFlags
	var failed bool
	c := f.command("net [source...]", "List captured requests", `Lists the requests that programs made and served, in order of their starts. With -f it
goes on with each request that ends.`, cobra.ArbitraryArgs, func(a *asker, args []string) error {
		if f.follow {
			if failed {
				f.filter = both(f.filter, "failed")
			}
			return a.followNet(&f, args)
		}
		list, err := newest(&f, args, func(p query.Page) ([]query.RequestSummary, query.Paged, error) {
			x, err := ask(a, a.Requests, query.RequestsRequest{Page: p, Failed: failed})
			return x.Requests, x.Paged, err
		})
		if err != nil {
			return err
		}
		if a.json {
			return a.value(list)
		}
		t := a.table(7, "TIME", "REQUEST", "DIR", "METHOD", "STATUS", "TIME TAKEN", "SIZE", "URL")
		for i := range list {
			t.add(netCells(&list[i])...)
		}
		t.print()
		return nil
	})
	f.registerList(c, 50)
	c.Flags().BoolVar(&failed, "failed", false, "only requests that failed or have a status of 400 or more, or one of gRPC that is not 0")
	return c
}

// both joins two expressions, of which the first may be empty.
func both(filter, more string) string {
	if filter == "" {
		return more
	}
	return "(" + filter + ") && " + more
}

// requestNumber is a request's id for people to type.
func requestNumber(r *query.RequestSummary) string {
	return string(r.Source) + "#" + strconv.FormatUint(r.Number, 10)
}

func netCells(r *query.RequestSummary) []cell {
	status := cell{strconv.Itoa(r.Status), green}
	switch {
	case r.Status == 0:
		status = cell{r.State, dim}
		if r.State != "running" {
			status.style = red
		}
	case r.Status >= 400:
		status.style = red
	case r.Status >= 300:
		status.style = yellow
	}
	url := r.URL
	if r.Error != "" {
		url += "  (" + r.Error + ")"
	}
	taken := span(r.DurationMS)
	if r.State == "running" {
		taken = "running"
	}
	return []cell{
		{clock(r.Time), dim}, {requestNumber(r), cyan}, {string(r.Direction), dim}, {r.Method, bold}, status, {taken, plainStyle}, {bytesText(r.Bytes), plainStyle}, {url, plainStyle},
	}
}

// followNet prints requests as they end.
func (a *asker) followNet(f *listFlags, sources []string) error {
	return a.events(f, sources, query.EventRequest, func(e query.Event) error {
		if a.json {
			return a.line(e.Request)
		}
		if e.Request.State == "running" && !e.Snapshot {
			return nil
		}
		c := netCells(e.Request)
		a.printf("%s  %s  %-6s %s  %8s  %8s  %s\n", a.paint(dim, c[0].text), a.paint(c[1].style, harmless(c[1].text, false)), harmless(c[3].text, false),
			a.paint(c[4].style, c[4].text), c[5].text, c[6].text, harmless(c[7].text, false))
		return nil
	})
}

func newRequest() *cobra.Command {
	var f askFlags
	return f.command("request id", "Show one request in full", `Shows one request with headers, timing, stack and messages. Ids are those that net
prints, such as orders-1#12; natscope body shows the bodies.`, cobra.ExactArgs(1), func(a *asker, args []string) error {
		r, err := ask(a, a.Request, query.RequestRequest{ID: query.RequestID(args[0])})
		if err != nil {
			return err
		}
		if a.json {
			return a.value(r)
		}
		a.request(&r)
		return nil
	})
}

func (a *asker) request(r *query.RequestAnswer) {
	c := netCells(&r.RequestSummary)
	a.printf("%s %s\n", a.paint(bold, harmless(r.Method, false)), harmless(r.FullURL, false))
	a.printf("%s %s  %s  %s  %s\n", a.paint(c[4].style, c[4].text), harmless(r.StatusText, false), c[5].text, c[6].text, a.paint(dim, clock(r.Time)))
	for _, x := range []struct{ name, text string }{
		{"id", string(r.ID)}, {"state", r.State}, {"error", r.Error}, {"protocol", r.Protocol}, {"remote", r.Remote}, {"client", r.Client}, {"tls", r.TLS},
		{"route", r.Route}, {"redirected from", string(r.RedirectOf)}, {"trace", r.Trace},
	} {
		if x.text != "" {
			a.printf("  %s %s\n", a.paint(dim, x.name+":"), harmless(x.text, false))
		}
	}
	a.headers("Request headers", r.RequestHeaders)
	a.body("Request body", r.RequestBody)
	a.headers("Response headers", r.ResponseHeaders)
	a.body("Response body", r.ResponseBody)
	if len(r.Timing) > 0 {
		a.printf("%s\n", a.paint(bold, "Timing"))
		for _, ph := range r.Timing {
			a.printf("  %-8s %8s\n", ph.Name, strconv.FormatFloat(ph.MS, 'f', 2, 64)+" ms")
		}
	}
	if len(r.Stack) > 0 {
		a.printf("%s\n", a.paint(bold, "Made at"))
		for _, s := range r.Stack[:min(len(r.Stack), 10)] {
			a.printf("  %s\n", harmless(s, false))
		}
	}
	if len(r.MessageList) > 0 {
		a.printf("%s\n", a.paint(bold, "Messages"))
		for _, m := range r.MessageList {
			way := "<-"
			if m.Sent {
				way = "->"
			}
			a.printf("  %s %s %s %s\n", a.paint(dim, clock(m.Time)), way, a.paint(blue, harmless(m.Event, false)), harmless(cutTo(m.Data, 200), false))
		}
	}
}

func (a *asker) headers(title string, h []network.Header) {
	if len(h) == 0 {
		return
	}
	a.printf("%s\n", a.paint(bold, title))
	for _, x := range h {
		a.printf("  %s %s\n", a.paint(blue, harmless(x[0], false)+":"), harmless(x[1], false))
	}
}

func (a *asker) body(title string, b query.BodyInfo) {
	if b.Bytes == 0 && b.Captured == 0 {
		return
	}
	text := bytesText(max(b.Bytes, 0))
	if b.Bytes < 0 {
		text = "of unknown size"
	}
	if b.Truncated {
		text += ", of which " + bytesText(b.Captured) + " were captured"
	}
	if b.Redacted {
		text += ", redacted"
	}
	if !b.Ended {
		text += ", not ended"
	}
	a.printf("%s %s\n", a.paint(bold, title), text)
}

func newSearch() *cobra.Command {
	var f askFlags
	var q query.SearchRequest
	c := f.command("search [text]", "Search requests, logs, nodes and values of all programs", `Finds requests, log lines, nodes and values by a text, or by an expression:
natscope search --filter "status >= 500 || level == 'error'".
The exit code is 3 when nothing is found.`, cobra.MaximumNArgs(1), func(a *asker, args []string) error {
		q := q
		if len(args) > 0 {
			q.Text = args[0]
		}
		if q.Text == "" && q.Filter == "" {
			return usageError(errors.New("say what to find: a text, or --filter with an expression"))
		}
		found, err := ask(a, a.Search, q)
		if err != nil {
			return err
		}
		if a.json {
			if err := a.value(found); err != nil {
				return err
			}
		} else {
			t := a.table(4, "KIND", "SOURCE", "TIME", "ID", "TEXT")
			for _, h := range found.Hits {
				t.add(cell{h.Kind, blue}, cell{string(h.Source), cyan}, cell{clock(h.Time), dim}, cell{hitID(&h), plainStyle}, cell{h.Text, plainStyle})
			}
			if len(found.Hits) > 0 {
				t.print()
			}
			if len(found.More) > 0 {
				a.printf("%s\n", a.paint(dim, "There is more of: "+strings.Join(found.More, ", ")+"; use --limit."))
			}
		}
		if len(found.Hits) == 0 {
			return errNothing
		}
		return nil
	})
	fl := c.Flags()
	fl.StringArrayVar(&q.Sources, "source", nil, "only in this source (repeatable; * stands for any text)")
	fl.StringArrayVar(&q.Kinds, "kind", nil, "only this kind: request, console, node or value (repeatable)")
	fl.StringVar(&q.Filter, "filter", "", "an expression that they must fulfil; docs/query.md has the language")
	fl.IntVarP(&q.Limit, "limit", "n", query.DefaultHits, "how many of each kind to show, at most 200")
	_ = c.RegisterFlagCompletionFunc("source", f.sourceNames) // It fails only for a flag that is not there.
	return c
}

// hitID is the id of a hit for people to type.
func hitID(h *query.Hit) string {
	switch h.Kind {
	case query.KindNode, query.KindValue:
		return shortID(query.NodeID(h.ID))
	}
	return h.ID
}
