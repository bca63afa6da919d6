package proctree

import (
	"bytes"
	"strconv"
	"strings"
	"time"
)

// maxName is how many bytes of a name in a trace are kept.
const maxName = 300

// group is what goroutines have in common.
type group struct {
	// site is the function that created them, or the one that they started in.
	site string
	// loc is where that happened, file:line, if known.
	loc string
	// state is what they wait for.
	state string
}

// summary is what is known of the goroutines of a group.
type summary struct {
	count int
	// longest is how long one of them has been waiting, in whole minutes.
	longest time.Duration
	// at counts the functions of the program that they wait in.
	at map[string]int
}

// most is how many groups, and how many functions of a group, are told apart.
const (
	mostGroups    = 1000
	mostFunctions = 16
)

// census counts goroutines by their groups.
type census struct {
	groups map[group]*summary
	// other is how many goroutines are in none of the groups.
	other int
}

func newCensus() *census { return &census{groups: make(map[group]*summary)} }

// add counts n goroutines of a group that wait in a function.
func (c *census) add(g group, n int, at string, waiting time.Duration) {
	s := c.groups[g]
	if s == nil {
		if len(c.groups) >= mostGroups {
			c.other += n
			return
		}
		s = &summary{at: make(map[string]int)}
		c.groups[g] = s
	}
	s.count += n
	s.longest = max(s.longest, waiting)
	if _, ok := s.at[at]; ok || len(s.at) < mostFunctions {
		s.at[at] += n
	}
}

// where is the function in which most wait.
func (s *summary) where() string {
	best := ""
	for f, n := range s.at {
		if m := s.at[best]; f != "" && (best == "" || n > m || n == m && f < best) {
			best = f
		}
	}
	return best
}

// parse counts the goroutines of a text of runtime.Stack. It takes any text, and
// what it does not understand counts for nothing.
func (c *census) parse(text []byte) {
	for len(text) > 0 {
		var block []byte
		block, text, _ = bytes.Cut(text, []byte("\n\n"))
		c.goroutine(block)
	}
}

// goroutine counts one goroutine: a header, frames of two lines each, and who
// created it.
func (c *census) goroutine(block []byte) {
	header, rest, _ := bytes.Cut(block, []byte("\n"))
	state, waiting, ok := parseHeader(header)
	if !ok {
		return
	}
	g := group{site: "main", state: state}
	at, last := "", ""
	for len(rest) > 0 {
		var line, place []byte
		line, rest, _ = bytes.Cut(rest, []byte("\n"))
		if by, ok := bytes.CutPrefix(line, []byte("created by ")); ok {
			place, _, _ = bytes.Cut(rest, []byte("\n"))
			by, _, _ = bytes.Cut(by, []byte(" in goroutine "))
			g.site, g.loc = text(by), text(parsePlace(place))
			break
		}
		if len(line) == 0 || line[0] == '\t' {
			continue
		}
		name := parseFunction(line)
		if last = string(name); at == "" && isOwn(last) {
			at = text(name)
		}
	}
	if at == "" {
		at = text([]byte(last))
	}
	c.add(g, 1, at, waiting)
}

// parseHeader reads "goroutine 7 [select, 5 minutes, locked to thread]:".
func parseHeader(line []byte) (state string, waiting time.Duration, ok bool) {
	rest, ok := bytes.CutPrefix(line, []byte("goroutine "))
	if !ok {
		return "", 0, false
	}
	_, rest, ok = bytes.Cut(rest, []byte("["))
	if !ok {
		return "", 0, false
	}
	inside, _, ok := bytes.Cut(rest, []byte("]"))
	if !ok {
		return "", 0, false
	}
	first, more, _ := bytes.Cut(inside, []byte(", "))
	for _, suffix := range []string{" (scan)", " (durable)"} {
		first = bytes.TrimSuffix(first, []byte(suffix))
	}
	for len(more) > 0 {
		var part []byte
		part, more, _ = bytes.Cut(more, []byte(", "))
		if minutes, ok := bytes.CutSuffix(part, []byte(" minutes")); ok {
			if n, err := strconv.ParseInt(string(minutes), 10, 32); err == nil && n > 0 {
				waiting = time.Duration(n) * time.Minute
			}
		}
	}
	return text(first), waiting, len(first) > 0
}

// parseFunction takes the name out of "net/http.(*conn).serve(0xc000, {0x1, 0x2})".
func parseFunction(line []byte) []byte {
	if i := bytes.LastIndexByte(line, '('); i > 0 {
		return line[:i]
	}
	return line
}

// parsePlace takes file:line out of "\t/src/main.go:12 +0x1d".
func parsePlace(line []byte) []byte {
	line = bytes.TrimSpace(line)
	if i := bytes.LastIndex(line, []byte(" +0x")); i > 0 {
		return line[:i]
	}
	return line
}

// isOwn reports whether a function is neither one of the runtime nor one that
// only waits on behalf of others.
func isOwn(function string) bool {
	for _, prefix := range []string{"runtime.", "internal/", "sync.", "syscall.", "time.Sleep", "os/signal.", "panic"} {
		if strings.HasPrefix(function, prefix) {
			return false
		}
	}
	return function != ""
}

// text makes a valid, short string of a part of a trace.
func text(b []byte) string {
	s := strings.ToValidUTF8(string(b[:min(len(b), maxName)]), "?")
	// The linker hides the dots of an import path's last part.
	return strings.ReplaceAll(s, "%2e", ".")
}
