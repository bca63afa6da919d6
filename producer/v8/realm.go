package v8

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/producer/client"
	"github.com/natscope/natscope/subjects/realm"
	"github.com/natscope/natscope/subjects/tree"
)

// The groups of methods that an engine answers beyond those of package realm.
// Like those, each is a domain of the engine's protocol.
const (
	// GroupNodeWorker is the domain NodeWorker: worker threads.
	GroupNodeWorker = "nodeWorker"
	// GroupNodeRuntime is the domain NodeRuntime: the end of a process.
	GroupNodeRuntime = "nodeRuntime"
	// GroupNodeTracing is the domain NodeTracing: trace events.
	GroupNodeTracing = "nodeTracing"
	// GroupSchema is the domain Schema: what else there is.
	GroupSchema = "schema"
)

// domains are the protocol's names of groups that are not the same but for a capital.
var domains = map[string]string{realm.GroupHeap: "HeapProfiler"}

// groups is the other way round.
var groups = map[string]string{"HeapProfiler": realm.GroupHeap}

// commandOf names a method in the engine's protocol.
func commandOf(m realm.Method) (string, bool) {
	group, name, ok := strings.Cut(string(m), ".")
	if !ok || group == "" || name == "" {
		return "", false
	}
	if d := domains[group]; d != "" {
		return d + "." + name, true
	}
	return strings.ToUpper(group[:1]) + group[1:] + "." + name, true
}

// eventOf names an event of the engine's protocol as sessions know it; false for domains that are not the session's.
func eventOf(method string) (string, bool) {
	domain, name, _ := strings.Cut(method, ".")
	switch domain {
	case "Runtime", "Debugger", "Profiler", "NodeWorker", "NodeRuntime", "NodeTracing":
		return strings.ToLower(domain[:1]) + domain[1:] + "." + name, true
	}
	if g := groups[domain]; g != "" {
		return g + "." + name, true
	}
	return "", false
}

// The bounds of sessions.
const (
	// maxStep is how many events, and maxStepBytes how many bytes of them, go out
	// before the session waits for its asker: an engine announces thousands of scripts at once.
	maxStep      = 512
	maxStepBytes = 2 << 20
	// stepWithin bounds that waiting. Who takes longer has gone.
	stepWithin = 30 * time.Second
	// maxCalls is how many calls of console methods keep their objects for a session.
	maxCalls = 1000
)

// Capabilities implements producer.Realm.
func (x *observer) Capabilities() []string {
	if x.parent != nil && x.engine.isDeno() {
		return []string{realm.GroupRuntime, GroupSchema}
	}
	list := []string{realm.GroupRuntime, realm.GroupDebugger, realm.GroupProfiler, realm.GroupHeap, string(realm.MethodLoadResource), GroupSchema}
	if !x.engine.isBrowser() {
		list = append(list, GroupNodeRuntime)
		if x.parent == nil {
			list = append(list, GroupNodeWorker, GroupNodeTracing)
		}
	}
	if x.hasTree() {
		list = append(list, string(realm.MethodResolveNode), string(realm.MethodNodeOf), string(realm.MethodInspected))
	}
	return list
}

// Open implements producer.Realm. The connection is made in the background; commands wait for it.
func (x *observer) Open(ctx context.Context, _ realm.Session, out producer.SessionOut) (producer.RealmSession, error) {
	s := &session{x: x, ctx: ctx, out: out}
	s.catalog.base = make(map[string]struct{})
	return s, nil
}

// session is one private connection to the engine, for one asker: objects,
// breakpoints and pauses of one belong to no other.
type session struct {
	x   *observer
	ctx context.Context
	out producer.SessionOut

	// paused says that the program is paused as this session sees it, depth whether it asked for asynchronous stacks.
	paused atomic.Bool
	depth  atomic.Bool
	// stays says that the asker ends the connection itself when the program ends.
	stays atomic.Bool
	// catalog is what the scripts of the session refer to.
	catalog catalog

	mu      sync.Mutex // guards all below
	channel *channel
	dialing bool
	waiting []waitingCommand
	closed  bool
	// selected are the nodes that the person selected, the newest first.
	selected []tree.NodeID

	// All below belongs to the reader of the connection.

	main  int64
	calls [][]string
	step  int
	bytes int
}

// waitingCommand is one that waits for the connection.
type waitingCommand struct {
	method string
	params json.RawMessage
	reply  func(any, error)
}

// channel is a connection to one target.
type channel struct {
	*peer
	close  func()
	closed <-chan struct{}
}

// Do implements producer.RealmSession.
func (s *session) Do(ctx context.Context, m realm.Method, params json.RawMessage, reply func(any, error)) {
	if m == realm.MethodLoadResource {
		s.loadResource(ctx, params, reply)
		return
	}
	if s.treeCommand(m, params, reply) {
		return
	}
	method, ok := commandOf(m)
	if !ok {
		reply(nil, fmt.Errorf("%w: %.80q is no command of an engine", realm.ErrUnsupported, m))
		return
	}
	if method == "Runtime.terminateExecution" && !s.x.engine.isBrowser() {
		// Measured: it ends the whole process, with "async hook stack has become corrupted".
		reply(nil, fmt.Errorf("%w: Node does not survive the termination of what it runs; pause it instead", realm.ErrRefused))
		return
	}
	params = s.adapt(ctx, method, params)
	before, after := s.aroundSelected(method, params)
	if before != nil {
		s.command("Runtime.evaluate", before, func(any, error) {})
		defer s.command("Runtime.evaluate", after, func(any, error) {})
	}
	s.command(method, params, func(result any, err error) {
		raw, ok := result.(producer.Verbatim)
		if err != nil || !ok {
			reply(result, err)
			return
		}
		s.brand(method, json.RawMessage(raw), reply)
	})
}

// command sends a command of the engine's protocol, once there is a connection.
func (s *session) command(method string, params json.RawMessage, reply func(any, error)) {
	s.mu.Lock()
	c := s.channel
	switch {
	case s.closed:
		s.mu.Unlock()
		reply(nil, fmt.Errorf("%w: the session was closed", realm.ErrNoSession))
		return
	case c == nil:
		s.waiting = append(s.waiting, waitingCommand{method, params, reply})
		if !s.dialing {
			s.dialing = true
			s.x.w.a.all.Go(s.dial)
		}
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	s.send(c, method, params, reply)
}

// send sends a command.
func (s *session) send(c *channel, method string, params json.RawMessage, reply func(any, error)) {
	var p any
	if len(params) > 0 {
		p = params
	}
	c.start(method, p, func(result json.RawMessage, err error) {
		if err != nil {
			reply(nil, refusal(method, err))
			return
		}
		reply(producer.Verbatim(result), nil)
	})
}

// refusal turns an engine's error into one that travels, with the engine's words.
func refusal(method string, err error) error {
	var p *protocolError
	switch {
	case errors.As(err, &p) && p.Code == notFound:
		return fmt.Errorf("%w: the engine does not know %s", realm.ErrUnsupported, method)
	case errors.As(err, &p) && p.Code == codeOverlong:
		return fmt.Errorf("%w: %s", realm.ErrTooLarge, p.Message)
	case errors.As(err, &p) && p.Code == -32602:
		return fmt.Errorf("%w: %w", realm.ErrMalformed, err)
	case errors.As(err, &p):
		return &realm.Error{Code: realm.CodeFailed, Message: p.Error()}
	case errors.Is(err, errHungUp):
		return fmt.Errorf("%w: the program's inspector closed the connection", realm.ErrGone)
	}
	return fmt.Errorf("%w: %w", realm.ErrFailed, err)
}

// dial makes the connection and sends what waits.
func (s *session) dial() {
	c, err := s.x.dial(s.ctx, s.event)
	s.mu.Lock()
	waiting := s.waiting
	s.waiting, s.dialing = nil, false
	closed := s.closed
	if err == nil && !closed {
		s.channel = c
	}
	if err == nil && !closed {
		// Under the lock, so that no later command overtakes those that waited. Sending does not block.
		for _, w := range waiting {
			s.send(c, w.method, w.params, w.reply)
		}
		waiting = nil
	}
	s.mu.Unlock()
	switch {
	case err != nil:
		err = fmt.Errorf("%w: the program's inspector refuses another connection: %w", realm.ErrGone, err)
	case closed:
		c.close()
		err = fmt.Errorf("%w: the session was closed", realm.ErrNoSession)
	default:
		s.x.w.a.all.Go(func() { s.watch(c) })
	}
	for _, w := range waiting {
		w.reply(nil, err)
	}
}

// watch forgets the connection when it ends. The next command makes another one, without the objects of this one.
func (s *session) watch(c *channel) {
	<-c.closed
	c.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.channel == c {
		s.channel = nil
	}
	s.paused.Store(false)
}

// Close implements producer.RealmSession. What the session paused runs on, since
// its connection ends.
func (s *session) Close(error) {
	s.mu.Lock()
	s.closed = true
	c := s.channel
	s.channel = nil
	s.mu.Unlock()
	if c != nil {
		c.close()
	}
}

// adapt changes what an engine would do badly.
func (s *session) adapt(ctx context.Context, method string, params json.RawMessage) json.RawMessage {
	switch method {
	case "Runtime.evaluate":
		return s.adaptEvaluate(ctx, params)
	case "Debugger.setAsyncCallStackDepth":
		var p struct {
			MaxDepth int `json:"maxDepth"`
		}
		_ = json.Unmarshal(params, &p)
		s.depth.Store(p.MaxDepth > 0)
	case "NodeRuntime.notifyWhenWaitingForDisconnect":
		var p struct {
			Enabled bool `json:"enabled"`
		}
		_ = json.Unmarshal(params, &p)
		s.stays.Store(p.Enabled)
	case "Debugger.disable":
		// The engine runs on without a word.
		s.paused.Store(false)
	}
	return params
}

// adaptEvaluate takes the mode of a console away where it cannot work. Its result
// is a promise in the engine: while the program is paused nobody settles that, and
// with asynchronous stacks Node counts the making of it as a side effect. It gives
// what is evaluated in a process as long as its asker waits: an endless loop would
// stop the process for good, since Node does not hear its inspector meanwhile.
func (s *session) adaptEvaluate(ctx context.Context, params json.RawMessage) json.RawMessage {
	var p map[string]json.RawMessage
	if s.x.engine.isBrowser() && !s.paused.Load() || json.Unmarshal(params, &p) != nil || p == nil {
		return params
	}
	paused, depth := s.paused.Load(), s.depth.Load() && !s.x.engine.isBrowser()
	if paused || depth && string(p["throwOnSideEffect"]) == "true" {
		delete(p, "replMode")
	}
	if paused {
		delete(p, "awaitPromise")
	}
	if deadline, ok := ctx.Deadline(); ok && !paused && p["timeout"] == nil && !s.x.engine.isBrowser() {
		p["timeout"] = json.RawMessage(strconv.FormatInt(max(time.Until(deadline).Milliseconds(), 1), 10))
	}
	out, err := json.Marshal(p)
	if err != nil {
		return params
	}
	return out
}

// event takes an event of the session's connection, on its reader. It may wait
// for the asker, which holds up the connection and with it the engine.
func (s *session) event(method string, params json.RawMessage) {
	name, ok := eventOf(method)
	if !ok {
		return
	}
	params = timed(method, fit(method, params))
	switch method {
	case "Debugger.paused":
		s.paused.Store(true)
	case "Debugger.resumed":
		s.paused.Store(false)
	case "Debugger.scriptParsed", "Debugger.scriptFailedToParse":
		if s.hide(params) {
			return
		}
		if method == "Debugger.scriptParsed" {
			s.catalog.add(params)
		}
	case "Runtime.consoleAPICalled":
		s.keep(params)
	}
	s.tell(name, params)
	switch method {
	case "Runtime.executionContextCreated":
		var c executionContext
		if s.main == 0 && json.Unmarshal(params, &c) == nil && c.Context.Aux.IsDefault {
			s.main = c.Context.ID
		}
	case "Runtime.executionContextDestroyed":
		s.ended(params)
	}
}

// hide leaves out a script of natscope's own, and keeps the debugger from stepping into it.
func (s *session) hide(params json.RawMessage) bool {
	var p struct {
		ID  string `json:"scriptId"`
		URL string `json:"url"`
	}
	if !bytes.Contains(params, []byte(client.Scheme)) || json.Unmarshal(params, &p) != nil || !hidden(p.URL) {
		return false
	}
	s.command("Debugger.setBlackboxedRanges", encode(map[string]any{
		"scriptId": p.ID, "positions": []map[string]int{{"lineNumber": 0, "columnNumber": 0}},
	}), func(any, error) {})
	return true
}

// tell sends an event, and waits for the asker now and then, so that neither the
// events of an engine that has much to say nor the pieces of a snapshot pile up.
func (s *session) tell(name string, params json.RawMessage) {
	s.step++
	s.bytes += len(params)
	if s.step < maxStep && s.bytes < maxStepBytes && name != "heap.addHeapSnapshotChunk" {
		s.out.Emit(name, producer.Verbatim(params))
		return
	}
	s.step, s.bytes = 0, 0
	ctx, cancel := context.WithTimeout(s.ctx, stepWithin)
	defer cancel()
	if err := s.out.EmitWait(ctx, name, producer.Verbatim(params)); err != nil && !errors.Is(err, realm.ErrTooLarge) {
		// A snapshot with a hole is none, and an asker that does not listen has gone.
		s.x.w.a.o.Logger.Debug("a session ends, since its asker does not take events", "event", name, "error", err)
		s.hangUp()
	}
}

// hangUp ends the connection, which resumes the program.
func (s *session) hangUp() {
	s.mu.Lock()
	c := s.channel
	s.mu.Unlock()
	if c != nil {
		c.close()
	}
}

// ended leaves a program that ends: it waits until its inspectors have gone.
func (s *session) ended(params json.RawMessage) {
	var c struct {
		ID int64 `json:"executionContextId"`
	}
	if json.Unmarshal(params, &c) != nil || c.ID != s.main || s.x.engine.isBrowser() || s.stays.Load() {
		return
	}
	s.hangUp()
}

// keep remembers the objects of a console message, and lets go of those of an old
// one: a program that logs large objects must not keep all of them because somebody looks.
func (s *session) keep(params json.RawMessage) {
	var m struct {
		Args []struct {
			ObjectID string `json:"objectId"`
		} `json:"args"`
	}
	if json.Unmarshal(params, &m) != nil {
		return
	}
	var ids []string
	for _, a := range m.Args {
		if a.ObjectID != "" {
			ids = append(ids, a.ObjectID)
		}
	}
	s.calls = append(s.calls, ids)
	if len(s.calls) <= maxCalls {
		return
	}
	old := s.calls[0]
	s.calls[0] = nil
	s.calls = s.calls[1:]
	s.mu.Lock()
	c := s.channel
	s.mu.Unlock()
	if c == nil {
		return
	}
	for _, id := range old {
		c.start("Runtime.releaseObject", map[string]string{"objectId": id}, func(json.RawMessage, error) {})
	}
}

// dial opens a connection of its own to the target.
func (x *observer) dial(ctx context.Context, event func(string, json.RawMessage)) (*channel, error) {
	if x.gone.Load() || x.parent != nil && x.parent.gone.Load() {
		// An engine that waits for its debuggers to leave would wait for this one.
		return nil, fmt.Errorf("%w: the program ended", errHungUp)
	}
	if x.parent != nil && x.engine.isDeno() {
		return x.shareWorker(), nil
	}
	if x.parent != nil {
		return x.dialWorker(ctx, event)
	}
	l, err := dial(ctx, x.target.socket(x.w.endpoint), event)
	if err != nil {
		return nil, err
	}
	return &channel{l.peer, l.close, l.closed}, nil
}
