package cdpgw

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/natscope/natscope/subjects/realm"
	"github.com/natscope/natscope/subjects/tree"
)

// The commands of Runtime that are about a context: each goes to the realm of
// its source, in order, and is answered when the realm has answered.
var evaluateMethods = map[string]method{
	"Runtime.evaluate":                on((*session).runtimeEvaluate),
	"Runtime.compileScript":           on((*session).runtimeCompileScript),
	"Runtime.runScript":               inContext("runtime.runScript"),
	"Runtime.globalLexicalScopeNames": on((*session).runtimeGlobalLexicalScopeNames),
	"Runtime.getHeapUsage":            inContext("runtime.getHeapUsage"),
	"Runtime.terminateExecution":      on((*session).runtimeTerminateExecution),
}

// inContext is a method that goes to the realm of the context that it names.
func inContext(m realm.Method) method {
	return on(func(s *session, p rawParams) (any, error) {
		at, err := s.contextOf(p, m)
		if err != nil {
			return nil, err
		}
		return s.passed(at, m, p, s.translatorOf(at))
	})
}

// contextOf returns the realm of the context that raw parameters name.
func (s *session) contextOf(p rawParams, m realm.Method) (liveAt, error) {
	var c contextParams
	if err := p.read(&c); err != nil {
		return liveAt{}, err
	}
	return s.contextRealm(c, m)
}

// passed sends a command to a realm with its parameters, save the context's, and
// answers what the realm does.
func (s *session) passed(at liveAt, m realm.Method, p rawParams, tr translator) (any, error) {
	s.attachFor(at)
	params := json.RawMessage(encode(p.without("uniqueContextId", "contextId", "executionContextId")))
	if err := s.allowed(m, params); err != nil {
		return nil, err
	}
	selected := s.selectedFor(at, p)
	return s.queued(at.realmOf, func(ctx context.Context, t *turn) (any, error) {
		defer t.lane.runs(m)()
		s.tellSelected(at, t.lane, selected)
		raw, err := s.ask(ctx, at, m, params, t.over)
		if errors.Is(err, realm.ErrNoSession) {
			// The realm forgot the session: nothing of it is needed here.
			s.tellSelected(at, t.lane, selected)
			raw, err = s.ask(ctx, at, m, params, nil)
		}
		if err != nil {
			return nil, err
		}
		return tr.translate(raw), nil
	}), nil
}

// allowed refuses what could change a program to whoever may only look.
func (s *session) allowed(m realm.Method, params json.RawMessage) error {
	if !s.target.grant.Controls() && m.ChangesWith(params) {
		return failf("%s", errOnlyLook)
	}
	return nil
}

// translatorOf translates what a realm says for the root session.
func (s *session) translatorOf(at liveAt) translator {
	return translator{prefix: at.prefix(), context: at.context, script: func(id string) ScriptID { return s.debugger.scripts.of(scriptRef{at.context, id}, "") }}
}

// runtimeEvaluate evaluates in the realm of a context.
func (s *session) runtimeEvaluate(p rawParams) (any, error) {
	at, err := s.contextOf(p, realm.MethodEvaluate)
	if err != nil {
		return s.explained(p, nil, err)
	}
	result, err := s.passed(at, realm.MethodEvaluate, p, s.translatorOf(at))
	return s.explained(p, result, err)
}

// explained makes sure that a person reads why what they entered was not
// evaluated: DevTools shows nothing at all for an evaluation that fails.
func (s *session) explained(p rawParams, result any, err error) (any, error) {
	if string(p["objectGroup"]) != `"console"` || p.flag("throwOnSideEffect") {
		return result, err
	}
	if err != nil {
		s.complain(toProtocol(err).Message)
		return result, err
	}
	o, ok := result.(ordered)
	if !ok {
		return result, nil
	}
	run := o.run
	o.run = func(ctx context.Context) (any, error) {
		v, err := run(ctx)
		if err != nil && ctx.Err() == nil {
			s.during(func() { s.complain(toProtocol(err).Message) })
		}
		return v, err
	}
	return o, nil
}

// runtimeCompileScript tells DevTools whether input is complete. Where nothing
// can be evaluated it is: then the evaluation says why.
func (s *session) runtimeCompileScript(p rawParams) (any, error) {
	at, err := s.contextOf(p, "runtime.compileScript")
	if err != nil {
		return empty{}, nil
	}
	if p.flag("persistScript") && !s.target.grant.Controls() {
		return nil, failf("%s", errOnlyLook)
	}
	return s.passed(at, "runtime.compileScript", p, s.translatorOf(at))
}

// runtimeGlobalLexicalScopeNames lists the names of let, const and class. Where
// nothing can be evaluated there are none, which spares DevTools an error at every key.
func (s *session) runtimeGlobalLexicalScopeNames(p rawParams) (any, error) {
	at, err := s.contextOf(p, "runtime.globalLexicalScopeNames")
	if err != nil {
		return map[string][]string{"names": {}}, nil
	}
	return s.passed(at, "runtime.globalLexicalScopeNames", p, s.translatorOf(at))
}

// runs counts a command that terminateExecution is about, until the function is called that it returns.
func (l *liveLane) runs(m realm.Method) func() {
	if m != realm.MethodEvaluate && m != realm.MethodCallFunctionOn {
		return func() {}
	}
	l.running.Add(1)
	return func() { l.running.Add(-1) }
}

// runtimeTerminateExecution ends what runs for this connection, in whichever
// realm: the command names none. A realm for which nothing runs may be busy with
// the program's own work and is left alone. It waits for no evaluation: at most
// for a moment, until those before it are sent.
func (s *session) runtimeTerminateExecution(empty) (any, error) {
	const m realm.Method = "runtime.terminateExecution"
	var able []liveAt
	for _, src := range s.sources() {
		at, err := s.liveRealm(src, m)
		if l := s.realms.lanes[at.realmOf]; err == nil && l != nil && l.running.Load() > 0 {
			able = append(able, at)
		}
	}
	if !s.target.grant.Controls() {
		return nil, failf("%s", errOnlyLook)
	}
	if len(able) == 0 {
		at, err := s.rootRealm(m)
		if err != nil {
			return nil, err
		}
		able = append(able, at)
	}
	turns := make(map[realmOf]*turn)
	for _, at := range able {
		turns[at.realmOf] = s.turn(at.realmOf)
	}
	over := func() {
		for _, t := range turns {
			t.over()
		}
	}
	return ordered{over: over, run: func(ctx context.Context) (any, error) {
		defer over()
		errs := make(chan error, len(able))
		for _, at := range able {
			s.slow.Go(func() {
				moment, cancel := context.WithTimeout(ctx, terminateWait)
				_ = turns[at.realmOf].wait(moment)
				cancel()
				_, err := s.ask(ctx, at, m, json.RawMessage("{}"), nil)
				errs <- err
			})
		}
		var err error
		for range able {
			err = errors.Join(err, <-errs)
		}
		if err != nil && len(able) == 1 {
			return nil, err
		}
		return nil, nil
	}}, nil
}

// terminateWait is how long terminateExecution waits for commands before it to be sent.
const terminateWait = 250 * time.Millisecond

// selections are the nodes that a person selected, as one realm is told of them.
type selections struct {
	// nodes are those that are remembered, oldest first; 0 for nodes of other sources.
	nodes []tree.NodeID
	// count is how many there were ever.
	count int
}

// selectedFor returns what a realm has to know of selections before a command that may use $0.
func (s *session) selectedFor(at liveAt, p rawParams) selections {
	if s.realms.inspections == 0 || !at.can(realm.MethodInspected) || !p.flag("includeCommandLineAPI") {
		return selections{}
	}
	x := selections{count: s.realms.inspections}
	for i := maxInspected - 1; i >= 0; i-- {
		if i >= x.count {
			continue
		}
		id := tree.NodeID(0)
		if n, ok := s.inspected(i); ok && n.place == placeTree && n.source.ID == at.source {
			id = n.entry.ID
		}
		x.nodes = append(x.nodes, id)
	}
	return x
}

// tellSelected tells a realm of the selections that it does not know yet.
func (s *session) tellSelected(at liveAt, lane *liveLane, x selections) {
	told := int(lane.told.Load())
	if x.count <= told {
		return
	}
	// The session has to be there first, for whatever it was told before it is gone with it.
	if _, err := s.gateway.realms.Open(s.conn.ctx, at.realmOf.at(), s.id); err != nil {
		return
	}
	for _, id := range x.nodes[max(len(x.nodes)-(x.count-told), 0):] {
		if params, err := json.Marshal(realm.InspectedParams{ID: id}); err == nil {
			s.gateway.realms.Tell(at.realmOf.at(), s.id, realm.MethodInspected, params)
		}
	}
	lane.told.Store(int64(x.count))
}

// threwSideEffect reports whether a result is the refusal of a realm to evaluate what could change something.
func threwSideEffect(result json.RawMessage) bool {
	var r struct {
		Details struct {
			Exception struct {
				Description string `json:"description"`
			} `json:"exception"`
		} `json:"exceptionDetails"`
	}
	return json.Unmarshal(result, &r) == nil && strings.HasPrefix(r.Details.Exception.Description, realm.SideEffect)
}
