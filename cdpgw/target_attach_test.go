package cdpgw

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/natscope/natscope/cdpgw/access"
)

// A client that names its targets gets their children, one session each, and
// keeps apart what it left from what it was given.
func TestAttachToTarget(t *testing.T) {
	m, w, server := debugShop(t)
	c := dial(t, server, "dev")
	var version browserVersion
	c.call("Browser.getVersion", nil, &version)
	var contexts browserContexts
	c.call("Target.getBrowserContexts", nil, &contexts)
	if !strings.HasPrefix(version.Product, "natscope/") || version.ProtocolVersion != protocolVersion || contexts.IDs == nil {
		t.Errorf("%+v %+v", version, contexts)
	}
	attach := func() (ChildID, int) {
		t.Helper()
		var r struct{ SessionID ChildID }
		events := 0
		for _, e := range c.call("Target.attachToTarget", map[string]any{"targetId": "node.dev.node", "flatten": true}, &r) {
			var p attachedToTargetEvent
			if e.Method == "Target.attachedToTarget" && json.Unmarshal(e.Params, &p) == nil && p.SessionID == r.SessionID && p.TargetInfo.TargetID == "node.dev.node" {
				events++
			}
		}
		return r.SessionID, events
	}
	// Without auto-attach: the session comes with its event, once, and stays until it is left.
	first, events := attach()
	again, more := attach()
	if events != 1 || more != 0 || first != again {
		t.Errorf("%d and %d events, sessions %q and %q", events, more, first, again)
	}
	c.inChild(first, func() { c.call("Debugger.enable", nil, nil) })
	m.log("node", gen1, 9, "the source changes")
	m.Presence("svc", false)
	c.sync()
	c.inChild(first, func() { c.call("Debugger.enable", nil, nil) })
	c.call("Target.detachFromTarget", map[string]any{"sessionId": first}, nil)
	waitUntil(t, "the realm's session ends", func() bool { return len(w.heard("node", "session.close")) > 0 })
	c.in = first
	c.fails("Debugger.enable", nil, codeSession)
	c.in = ""
	c.fails("Target.detachFromTarget", map[string]any{"sessionId": first}, codeServer)

	// With auto-attach: what was not asked for stays away once it is left, what was asked for comes back without.
	kids := c.attachAll()
	if len(kids) != 0 {
		t.Errorf("what was left came back: %v", kids)
	}
	second, _ := attach()
	from := c.count()
	c.call("Target.detachFromTarget", map[string]any{"sessionId": second}, nil)
	from = c.event(from, "Target.detachedFromTarget", nil)
	var back attachedToTargetEvent
	c.event(from, "Target.attachedToTarget", &back)
	if back.SessionID == second || back.TargetInfo.Title != "node app" {
		t.Errorf("%+v", back)
	}
	from = c.count()
	c.call("Target.detachFromTarget", map[string]any{"sessionId": back.SessionID}, nil)
	m.Presence("svc", true)
	c.sync()
	all, _, _ := c.snapshot()
	for _, e := range all[from:] {
		if e.Method == "Target.attachedToTarget" && strings.Contains(string(e.Params), "node app") {
			t.Errorf("forced upon the client: %s", e.raw)
		}
	}
	for _, p := range []map[string]any{{"targetId": "dev", "flatten": true}, {"targetId": "node.dev.nobody", "flatten": true}, {"flatten": true}, {"targetId": "node.dev.node"}} {
		c.fails("Target.attachToTarget", p, codeServer)
	}
	c.valid()

	dialNode(t, server, "dev/node").fails("Target.attachToTarget", map[string]any{"targetId": "node.dev.node", "flatten": true}, codeNotFound)
}

// Who may only look attaches to nothing, and hears why.
func TestNoAttachToLookAt(t *testing.T) {
	_, _, server := debugShop(t, func(o *Options) { o.Grant = access.Grant{Role: access.RoleView} })
	e := dial(t, server, "dev").fails("Target.attachToTarget", map[string]any{"targetId": "node.dev.node", "flatten": true}, codeServer)
	if !strings.Contains(e.Message, "look") && !strings.Contains(e.Message, "view") {
		t.Error(e.Message)
	}
}
