package main

import (
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"

	"github.com/natscope/natscope/query"
)

func newWatch() *cobra.Command {
	var f listFlags
	var kinds []string
	c := f.command("watch [source...]", "Show everything that happens, as it happens", `Shows programs that come and go, requests, log lines, faults, changes of trees and the
programs' own events, as they come. With -o json each event is a line of JSON.`, cobra.ArbitraryArgs, func(a *asker, args []string) error {
		q := query.WatchRequest{Sources: args, Kinds: kinds, Filter: f.filter, Text: f.text, Last: f.limit}
		if f.limit <= 0 {
			q.Last = -1
		}
		return query.Follow(a.ctx, a.API, q, func(e query.Event) error {
			if a.json {
				return a.line(e)
			}
			return a.eventLine(&e)
		}, nil)
	})
	c.ValidArgsFunction = f.sourceNames
	fl := c.Flags()
	fl.StringArrayVar(&kinds, "kind", nil, "only this kind: "+strings.Join(query.WatchKinds(), ", ")+" (repeatable)")
	fl.StringVar(&f.filter, "filter", "", "an expression that requests, log lines, faults and commits must fulfil")
	fl.StringVar(&f.text, "text", "", "a text that they must contain; case does not matter")
	fl.IntVarP(&f.limit, "limit", "n", 0, "how many of the newest of each kind to begin with")
	return c
}

func (a *asker) eventLine(e *query.Event) error {
	switch {
	case e.Removed:
		a.printf("%s  %s\n", a.paint(cyan, string(e.SourceID)), a.paint(dim, "was evicted with everything known of it"))
	case e.Source != nil:
		s := green
		if e.Source.State != query.StateConnected {
			s = dim
		}
		a.printf("%s  %s  %s %s\n", a.paint(cyan, string(e.SourceID)), a.paint(s, e.Source.State), harmless(e.Source.Name, false), a.paint(dim, harmless(e.Source.Reason, false)))
	case e.Request != nil:
		c := netCells(e.Request)
		a.printf("%s  %s  %s  %s  %s  %s\n", c[0].text, a.paint(cyan, c[1].text), harmless(c[3].text, false), a.paint(c[4].style, c[4].text), c[5].text, harmless(c[7].text, false))
	case e.Console != nil:
		return a.logLine(e.Console)
	case e.Fault != nil:
		a.printf("%s  %s  %s\n", a.paint(cyan, string(e.SourceID)), a.paint(yellow, "fault: "+e.Fault.Kind), harmless(e.Fault.Text, false))
	case e.Commit != nil:
		return a.commit(e.Commit)
	case e.Event != nil:
		data, err := json.Marshal(e.Event.Data)
		if err != nil {
			return err
		}
		a.printf("%s  %s  %s  %s\n", a.paint(dim, clock(e.Event.Time)), a.paint(cyan, string(e.SourceID)), a.paint(magenta, harmless(e.Event.Topic, false)), harmless(string(data), false))
	case e.Kind == query.EventReset:
		a.printf("%s\n", a.paint(yellow, "-- "+e.Reason+" --"))
	}
	return a.err
}
