package ingest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/natscope/natscope/subjects/realm"
)

// pageRealm is the live realm of a page, as its producer serves it: the page
// holds the objects and carries everything out.
type pageRealm struct {
	x *session

	mu       sync.Mutex // guards all below; it is a leaf
	sessions map[string]*pageSession
}

func newPageRealm(x *session) *pageRealm {
	return &pageRealm{x: x, sessions: make(map[string]*pageSession)}
}

// realmGroups are the groups of methods that need a session at the page.
var realmGroups = []string{"runtime", "console", "sources", "debugger", "profiler", "heap", "tree.resolve", "tree.nodeOf", "tree.inspected"}

// Capabilities lists what the page says that its sessions answer.
func (r *pageRealm) Capabilities() []string {
	var out []string
	for _, c := range r.x.hello.Load().Capabilities {
		for _, group := range realmGroups {
			if c == group || strings.HasPrefix(c, group+".") {
				out = append(out, c)
				break
			}
		}
	}
	return out
}

// out is where the events of a session go.
type out interface {
	Emit(event string, data any)
}

// pageSession is one session at a page. It waits for nobody.
type pageSession struct {
	r   *pageRealm
	id  string
	out out
}

// open begins a session. The page hears of it before every command of the session.
func (r *pageRealm) open(ctx context.Context, who realm.Session, o out) *pageSession {
	s := &pageSession{r: r, id: who.Gateway + "/" + who.ID, out: o}
	r.mu.Lock()
	r.sessions[s.id] = s
	r.mu.Unlock()
	// A page that refuses says so at each command.
	r.x.ask(ctx, Command{Method: "session.open", Session: s.id}, func(json.RawMessage, error) {})
	return s
}

// Do sends a command to the page, which carries commands out in the order in which they come.
func (s *pageSession) Do(ctx context.Context, m realm.Method, params json.RawMessage, reply func(result any, err error)) {
	s.r.x.ask(ctx, Command{Method: m, Params: params, Session: s.id}, func(result json.RawMessage, err error) {
		if err != nil {
			reply(nil, err)
			return
		}
		reply(result, nil)
	})
}

// Close ends the session at the page.
func (s *pageSession) Close(error) {
	s.r.mu.Lock()
	if s.r.sessions[s.id] == s {
		delete(s.r.sessions, s.id)
	}
	s.r.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), aliveWait)
	s.r.x.ask(ctx, Command{Method: "session.close", Session: s.id}, func(json.RawMessage, error) { cancel() })
}

// tell passes an event of the page on to its session. One for a session that is gone changes nothing.
func (r *pageRealm) tell(e *PageEvent) {
	r.mu.Lock()
	s := r.sessions[e.Session]
	r.mu.Unlock()
	if s != nil {
		s.out.Emit(e.Event, e.Data)
	}
}

// String names the session for logs.
func (s *pageSession) String() string { return fmt.Sprintf("session %s at %s", s.id, s.r.x.id) }
