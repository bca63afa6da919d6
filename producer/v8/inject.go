package v8

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/producer/client"
	"github.com/natscope/natscope/producer/ingest"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/tree"
)

// What an inspector does not tell, the client of package client does, which is
// evaluated in the program over the observing connection. It speaks the protocol of
// pages (package ingest): its texts come as calls of a binding, and what it is told
// goes there by calls of a function. So there is no other connection, and one source.

// Inject says what is put into Node programs. Other engines are left as they are.
type Inject struct {
	// Network captures the requests that a program answers, and those that it
	// makes where its engine does not tell them itself.
	Network bool
	// Cordis shows the tree of a Cordis runtime, and Details what its nodes are.
	Cordis, Details bool
	// Redact takes the usual credentials out of requests, in the program, as
	// producer.RedactSecrets does. Engines' own domain Network, which cannot, is
	// then used of no program, browsers' included.
	Redact bool
}

// any reports whether there is anything to put into programs.
func (i Inject) any() bool { return i.Network || i.Cordis }

// The bounds of what injected clients send.
const (
	// maxInjectedText is the largest text, in bytes.
	maxInjectedText = 4 << 20
	// injectedRecords is how many records a second a client sends at most.
	injectedRecords = 20_000
	// readyWithin is how long a thread that was held has to say that it is ready;
	// tryAgain is when one that is not is tried again, maxTries times in all.
	readyWithin = time.Second
	tryAgain    = 200 * time.Millisecond
	maxTries    = 5
	// withdrawWithin is how long a program has to put back what was put into it.
	withdrawWithin = time.Second
)

// readyText is what preload.cjs says in a thread.
const readyText = "ready"

// injectedScript is the client, as one expression.
var injectedScript = sync.OnceValues(func() (string, error) { return client.Attached(client.Files()) })

// injected is the client in one program. What it says is taken on the reader of the observing connection.
type injected struct {
	x *observer
	// name is the binding, and expression what is evaluated.
	name, expression string
	// once is for threads, which are told to begin by what they say or by a timer.
	once sync.Once

	mu sync.Mutex // guards all below
	// prod is there once the source is, hello once the client is.
	prod  *producer.Producer
	hello bool
	last  uint64
	// resnapshot says that tree records are useless until a snapshot comes.
	resnapshot bool
	bodies     ingest.Bodies
	// tries counts the evaluations that failed.
	tries int
}

// wantsInjection reports whether the client belongs into this program.
func (x *observer) wantsInjection() bool {
	return x.w.a.o.Inject.any() && strings.HasPrefix(x.engine.Browser, "node.js/")
}

// inject evaluates the client. It runs on the reader of the connection, and does
// not wait; done is called there when the program has answered, or never will.
func (x *observer) inject(done func()) {
	o := &x.w.a.o
	script, err := injectedScript()
	if err != nil || x.main.Load() == 0 {
		o.Logger.Warn("requests and Cordis trees of this program are not seen", "title", x.target.Title, "error", err)
		done()
		return
	}
	i := &injected{x: x, name: "natscope$" + rand.Text(), resnapshot: true}
	x.injected.Store(i)
	options := map[string]any{
		"binding": i.name, "incoming": o.Inject.Network, "outgoing": o.Inject.Network, "native": !o.Inject.Redact,
		"cordis": o.Inject.Cordis, "details": o.Inject.Details,
	}
	if o.Inject.Redact {
		options["redact"] = "secrets"
	}
	text, _ := json.Marshal(options)
	// In this context only: a binding for all contexts would show in those of vm.
	x.peer.start("Runtime.addBinding", map[string]any{"name": i.name, "executionContextId": x.main.Load()}, func(json.RawMessage, error) {})
	i.expression = script + "(typeof require === 'function' ? require : process.getBuiltinModule, " + string(text) + ")\n//# sourceURL=" + client.Scheme + "attached/start.js"
	if !x.held {
		i.evaluate(done)
		return
	}
	// A thread that waits at its start has no modules yet. It says when it has (preload.cjs), if nothing keeps it from that.
	time.AfterFunc(readyWithin, func() { i.once.Do(func() { i.evaluate(func() {}) }) })
	done()
}

// evaluate puts the client into the program. It may be called on any goroutine;
// done is called once the program has answered, or never will.
func (i *injected) evaluate(done func()) {
	x, log := i.x, i.x.w.a.o.Logger
	x.peer.start("Runtime.evaluate", map[string]any{
		"expression": i.expression, "contextId": x.main.Load(), "includeCommandLineAPI": true, "returnByValue": true, "silent": true,
	}, func(result json.RawMessage, err error) {
		late, err := injectionResult(result, err)
		i.mu.Lock()
		i.tries++
		again := err != nil && i.tries < maxTries
		i.mu.Unlock()
		switch {
		case errors.Is(err, errHungUp):
		case again && x.parent != nil:
			// A thread that has just begun.
			time.AfterFunc(tryAgain, func() { i.evaluate(func() {}) })
		case err != nil:
			log.Warn("requests and Cordis trees of this program are not seen", "title", x.target.Title, "error", err)
		case late:
			x.findCordis()
		}
		done()
	})
}

// injectionResult reads the answer of the client's start.
func injectionResult(result json.RawMessage, err error) (late bool, _ error) {
	var r struct {
		Result struct {
			Value struct {
				Late  bool   `json:"late"`
				Error string `json:"error"`
			} `json:"value"`
		} `json:"result"`
		Exception *struct {
			Exception struct {
				Description string `json:"description"`
			} `json:"exception"`
		} `json:"exceptionDetails"`
	}
	if err == nil {
		err = json.Unmarshal(result, &r)
	}
	switch {
	case err == nil && r.Exception != nil:
		err = errors.New(cut(r.Exception.Exception.Description, 300))
	case err == nil && r.Result.Value.Error != "":
		err = errors.New(cut(r.Result.Value.Error, 300))
	}
	return r.Result.Value.Late, err
}

// call calls a method of what was put into the program. arguments are values of the protocol.
func (x *observer) call(method string, arguments []map[string]any, more map[string]any, done func(json.RawMessage, error)) {
	params := map[string]any{
		"functionDeclaration": portFunction(method), "executionContextId": x.main.Load(), "arguments": arguments, "silent": true,
	}
	for k, v := range more {
		params[k] = v
	}
	x.peer.start("Runtime.callFunctionOn", params, done)
}

// portFunction is the text of a function that calls a method of what was put into the program.
func portFunction(method string) string {
	return "function(...a){return globalThis[Symbol.for('natscope.port')]?." + method + "(...a)}\n//# sourceURL=" + client.Scheme + "call/" + method + ".js\n"
}

// cordisModule is the address of a module of Cordis that a program has loaded.
var cordisModule = regexp.MustCompile(`^file://.*/node_modules/(?:@[\w.-]+/)?cordis/.*\.m?js(?:[?#].*)?$`)

// findCordis looks for a runtime in a program that ran before natscope came. What
// code it has loaded is told without a debugger, by what the engine counts anyway.
func (x *observer) findCordis() {
	ignore := func(json.RawMessage, error) {}
	x.peer.start("Profiler.enable", nil, ignore)
	x.peer.start("Profiler.getBestEffortCoverage", nil, func(result json.RawMessage, err error) {
		var coverage struct {
			Result []struct {
				URL string `json:"url"`
			} `json:"result"`
		}
		if err != nil || json.Unmarshal(result, &coverage) != nil {
			return
		}
		var urls []string
		for _, s := range coverage.Result {
			if cordisModule.MatchString(s.URL) && !slices.Contains(urls, s.URL) && len(urls) < 64 {
				urls = append(urls, s.URL)
			}
		}
		if len(urls) > 0 {
			x.adoptCordis(urls)
		}
	})
	x.peer.start("Profiler.disable", nil, ignore)
}

// adoptCordis shows the runtime of modules of Cordis. Its contexts are found by
// their prototype, which costs the program one collection of its garbage.
func (x *observer) adoptCordis(urls []string) {
	const group = "natscope"
	ignore := func(json.RawMessage, error) {}
	object := func(result json.RawMessage, err error, field string) string {
		var r map[string]struct {
			ObjectID string `json:"objectId"`
		}
		if err != nil {
			return ""
		}
		_ = json.Unmarshal(result, &r)
		return r[field].ObjectID
	}
	x.call("load", []map[string]any{{"value": urls}}, map[string]any{"awaitPromise": true, "objectGroup": group}, func(result json.RawMessage, err error) {
		prototype := object(result, err, "result")
		if prototype == "" {
			return
		}
		x.peer.start("Runtime.queryObjects", map[string]string{"prototypeObjectId": prototype, "objectGroup": group}, func(result json.RawMessage, err error) {
			if contexts := object(result, err, "objects"); contexts != "" {
				x.call("adopt", []map[string]any{{"objectId": contexts}}, nil, ignore)
			}
			x.peer.start("Runtime.releaseObjectGroup", map[string]string{"objectGroup": group}, ignore)
		})
	})
}

// called takes a text of the client.
func (i *injected) called(params json.RawMessage) {
	var b struct {
		Name    string `json:"name"`
		Payload string `json:"payload"`
	}
	if json.Unmarshal(params, &b) != nil || b.Name != i.name || len(b.Payload) > maxInjectedText {
		return
	}
	if b.Payload == readyText {
		i.once.Do(func() { i.evaluate(func() {}) })
		return
	}
	m, err := ingest.ParseMessage([]byte(b.Payload))
	i.mu.Lock()
	var out []any
	switch {
	case err != nil && m.N == 0:
	case err != nil:
		out = i.acknowledge(m.N)
	case m.Hello != nil:
		i.hello = true
		out = i.welcome()
	case m.Type == ingest.MsgPing:
		out = []any{map[string]string{"type": ingest.MsgPong}}
	case i.prod == nil || !m.Numbered():
	default:
		if m.N > i.last {
			i.apply(m)
		}
		out = i.acknowledge(m.N)
	}
	i.mu.Unlock()
	i.tell(out...)
}

// acknowledge is called with mu held.
func (i *injected) acknowledge(n uint64) []any {
	i.last = max(i.last, n)
	return []any{ingest.Ack{Type: ingest.MsgAck, N: i.last}}
}

// tell sends messages to the client.
func (i *injected) tell(messages ...any) {
	for _, m := range messages {
		text, err := json.Marshal(m)
		if err == nil {
			i.x.call("deliver", []map[string]any{{"value": string(text)}}, nil, func(json.RawMessage, error) {})
		}
	}
}

// begin makes what the client says records of a source.
func (i *injected) begin(p *producer.Producer) {
	p.OnSnapshot(func() []subjects.Record {
		i.mu.Lock()
		i.resnapshot = true
		hello := i.hello
		i.mu.Unlock()
		if hello {
			i.tell(map[string]string{"type": ingest.MsgResnapshot})
		}
		return nil
	})
	i.mu.Lock()
	i.prod = p
	out := i.welcome()
	i.mu.Unlock()
	i.tell(out...)
}

// welcome admits the client once both it and the source are there. It is called with mu held.
func (i *injected) welcome() []any {
	if !i.hello || i.prod == nil {
		return nil
	}
	l := i.x.w.a.o.Limits.WithDefaults()
	return []any{ingest.Welcome{
		Type: ingest.MsgWelcome, Version: ingest.ProtocolVersion, Source: i.prod.ID(), Generation: i.prod.Generation(), Space: i.x.w.a.o.Space,
		Resumed: i.last > 0, Last: i.last, Resnapshot: i.resnapshot,
		Limits: ingest.PageLimits{
			RequestBodyBytes: l.RequestBodyBytes, ResponseBodyBytes: l.ResponseBodyBytes, BodyChunkBytes: l.BodyChunkBytes,
			Nodes: l.ComponentNodes, Depth: l.TreeDepth, Handles: l.Handles, CordisNodes: l.CordisNodes,
			MessageBytes: 1 << 20, RecordsPerSecond: injectedRecords,
			ReconnectMin: l.ReconnectMin.Milliseconds(), ReconnectMax: l.ReconnectMax.Milliseconds(),
		},
	}}
}

// apply gives a numbered message to the producer, which only enqueues. It is called with mu held.
func (i *injected) apply(m ingest.Message) {
	switch {
	case m.Records != nil:
		i.records(m.Records)
	case m.Body != nil:
		i.bodies.Take(i.prod, m.Body, m.Data)
	}
}

func (i *injected) records(r *ingest.Records) {
	if r.Plane != subjects.PlaneTree && r.Plane != subjects.PlaneNet {
		return
	}
	if r.Dropped > 0 {
		i.prod.Lost(r.Plane, r.Dropped)
	}
	for _, rec := range r.Records {
		if r.Plane == subjects.PlaneTree && i.resnapshot {
			if rec.Topic != tree.TopicSnapshot && rec.Topic != tree.TopicBegin {
				continue
			}
			i.resnapshot = false
		}
		// The client's clock counts from 1970.
		i.prod.RecordAt(r.Plane, rec.Topic, rec.T-i.x.origin, rec.Data)
	}
}

// withdraw takes the client out of a program that goes on. It waits a moment for
// it: what is on its way when a connection ends need not arrive.
func (i *injected) withdraw() {
	done := make(chan struct{})
	i.x.call("stop", []map[string]any{}, nil, func(json.RawMessage, error) { close(done) })
	t := time.NewTimer(withdrawWithin)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
}

// hidden reports whether a script is one of natscope's own, which nobody means to see.
func hidden(url string) bool { return strings.HasPrefix(url, client.Scheme) }
