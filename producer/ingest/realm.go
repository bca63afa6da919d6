package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"

	"github.com/natscope/natscope/producer"
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
var realmGroups = []string{
	realm.GroupRuntime, realm.GroupConsole, realm.GroupSources, realm.GroupDebugger, realm.GroupProfiler, realm.GroupHeap,
	string(realm.MethodResolveNode), string(realm.MethodNodeOf), string(realm.MethodInspected),
}

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

// pageSession is one session at a page. It waits for nobody.
type pageSession struct {
	r   *pageRealm
	id  string
	out producer.SessionOut
}

// Open begins a session. The page hears of it before every command of the
// session; one that refuses says so at each of them.
func (r *pageRealm) Open(_ context.Context, who realm.Session, out producer.SessionOut) (producer.RealmSession, error) {
	s := &pageSession{r: r, id: who.Gateway + "/" + who.ID, out: out}
	r.mu.Lock()
	r.sessions[s.id] = s
	r.mu.Unlock()
	r.x.notify(Command{Method: realm.MethodOpenSession, Session: s.id})
	return s, nil
}

// Do sends a command to the page, which carries commands out in the order in which they come.
func (s *pageSession) Do(ctx context.Context, m realm.Method, params json.RawMessage, reply func(result any, err error)) {
	cmd := Command{Method: m, Params: params, Session: s.id}
	done := func(result json.RawMessage, err error) {
		if err != nil {
			reply(nil, err)
			return
		}
		reply(result, nil)
	}
	s.r.x.ask(ctx, cmd, func(result json.RawMessage, err error) {
		if !errors.Is(err, realm.ErrNoSession) {
			done(result, err)
			return
		}
		// The page had no connection when the session was opened.
		s.r.x.notify(Command{Method: realm.MethodOpenSession, Session: s.id})
		s.r.x.ask(ctx, cmd, done)
	})
}

// Close ends the session at the page.
func (s *pageSession) Close(error) {
	s.r.mu.Lock()
	if s.r.sessions[s.id] == s {
		delete(s.r.sessions, s.id)
	}
	s.r.mu.Unlock()
	s.r.x.notify(Command{Method: realm.MethodCloseSession, Session: s.id})
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
