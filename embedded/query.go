package embedded

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/natscope/natscope/cdpgw/access"
	"github.com/natscope/natscope/query"
	"github.com/natscope/natscope/query/agent"
	"github.com/natscope/natscope/query/engine"
	"github.com/natscope/natscope/query/httpapi"
	"github.com/natscope/natscope/query/service"
	"github.com/natscope/natscope/store/command"
	"github.com/natscope/natscope/subjects"
)

// startQuery answers questions about the space from the gateway's replica, over
// NATS and over HTTP.
func (i *Instance) startQuery(o Options, mux *http.ServeMux) error {
	// The answers and events of sessions come to a name of its own.
	id := subjects.GatewayID("query-" + strings.ToLower(rand.Text()[:10]))
	c, err := command.New(i.conn, o.Space, id)
	if err != nil {
		return fmt.Errorf("embedded: query: %w", err)
	}
	i.onStop("query commands", func(context.Context) error { c.Close(); return nil })
	e, err := engine.New(engine.Options{State: i.figures.state, Commander: c, Gateway: id, Limits: o.Limits})
	if err != nil {
		return fmt.Errorf("embedded: query: %w", err)
	}
	i.onStop("query engine", func(context.Context) error { e.Close(); return nil })
	s, err := service.Start(service.Options{Conn: i.conn, Space: o.Space, API: e, ChangesFor: overNATS(e, o.Role), Limits: o.Limits, Logger: o.Logger})
	if err != nil {
		return fmt.Errorf("embedded: query: %w", err)
	}
	i.onStop("query service", s.Close)
	policy := o.door().Policy
	h, err := httpapi.New(httpapi.Options{
		API:   func(r *http.Request) (query.API, error) { return granted(e, o.Space, r) },
		Guard: policy.CheckOrigin, Holds: access.Holds, Version: o.Version, Limits: o.Limits, Logger: o.Logger,
	})
	if err != nil {
		return fmt.Errorf("embedded: query: %w", err)
	}
	i.queries = h
	mux.Handle(httpapi.Root, h)
	mux.Handle("/mcp", guarded(policy, agent.NewHandler(func(r *http.Request) *mcp.Server {
		api, err := granted(e, o.Space, r)
		if err != nil {
			return nil
		}
		srv, err := agent.NewServer(agent.Options{API: api, Changes: access.GrantOf(r).Controls(), Version: o.Version, Logger: o.Logger})
		if err != nil {
			return nil
		}
		return srv
	}, o.Logger)))
	return nil
}

// guarded refuses requests of foreign web pages.
func guarded(p access.Policy, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := p.CheckOrigin(r); err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// granted returns what somebody may ask and do.
func granted(e *engine.Engine, space subjects.Space, r *http.Request) (query.API, error) {
	g := access.GrantOf(r)
	if !g.Space(string(space)) {
		return nil, fmt.Errorf("this token does not allow the space %s", space)
	}
	if g.Narrow() {
		e = e.Only(func(id subjects.SourceID) bool { return g.Source(string(id)) })
	}
	if g.Controls() {
		e = e.As(strings.TrimSpace(g.Name + " " + r.RemoteAddr))
	}
	return e, nil
}

// overNATS returns what those do who ask for changes over NATS: whether they may
// is decided by the permissions of NATS users, unless nobody may.
func overNATS(e *engine.Engine, role access.Role) func(service.Asker) query.API {
	if role == access.RoleView {
		return nil
	}
	return func(a service.Asker) query.API { return e.As(whoOverNATS(a)) }
}

// whoOverNATS names for the audit who asks over NATS. A message does not prove
// who sent it, so what the asker says of itself is marked as that.
func whoOverNATS(a service.Asker) string {
	who := "a NATS client"
	if a.Says != "" {
		who += " that says it is " + a.Says
	}
	if a.Inbox != "" && a.Inbox != "_INBOX" {
		who += ", answered at " + a.Inbox
	}
	return who
}
