package v8

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/source"
)

// The bounds of observing.
const (
	// enableWithin is how long a program has to answer that it is observed. One
	// that does not is shown all the same: what it does not answer now it may later.
	enableWithin = 5 * time.Second
	// maxQueued is how many events, and maxQueuedBytes how many bytes of them, wait to become records.
	maxQueued      = 8192
	maxQueuedBytes = 64 << 20
)

// library is what descriptors name as their producer.
const library = "natscope-v8/1"

// observer stands for one target: it makes records of what the target does, and
// the target's source answers its sessions.
type observer struct {
	w      *watcher
	target listed
	engine engine
	// parent is the process of a worker thread, whose connection it shares; nil for targets of their own.
	parent *observer
	// key is what a worker thread is found by over another connection.
	key string
	// held says that the thread waits until it is told to start.
	held bool

	queue eventQueue
	// peer is the connection that observes. close ends it, closed tells that it ended.
	peer   *peer
	close  func()
	closed <-chan struct{}
	// gone says that the target's world is over, so that none of its objects can be read.
	gone atomic.Bool
	// enabled says that the engine has told all that it kept from before.
	enabled atomic.Bool
	// injected is the client in the program, nil if there is none.
	injected atomic.Pointer[injected]
	// alive says that the connection is there.
	alive atomic.Bool

	// main is the id of the context that a page load or process has of its own, pid the process id; both are set by events of the connection.
	main atomic.Int64
	pid  atomic.Int64
	// described is closed when the first context was announced.
	described chan struct{}
	once      sync.Once

	mu      sync.Mutex // guards all below
	title   string
	prod    *producer.Producer
	workers map[string]*observer // by session
	ended   bool

	// All below belongs to the goroutine of run.

	load     int
	console  consoleReader
	network  networkReader
	realm    source.RealmID
	origin   float64
	skipTill float64
}

func newObserver(w *watcher, t listed, e engine) *observer {
	x := &observer{w: w, target: t, engine: e, title: t.Title, described: make(chan struct{}), workers: make(map[string]*observer)}
	x.queue.wake = make(chan struct{}, 1)
	return x
}

// run observes until the target ends or the Attacher is closed.
func (x *observer) run() {
	failed := true
	defer func() { x.w.ended(x, failed) }()
	l, err := dial(x.w.a.ctx, x.target.socket(x.w.endpoint), x.event)
	if err != nil {
		if x.w.a.ctx.Err() == nil {
			x.w.a.o.Logger.Warn("cannot attach", "endpoint", x.w.endpoint, "title", x.target.Title, "error", err)
		}
		return
	}
	x.peer, x.close, x.closed = l.peer, l.close, l.closed
	l.route = x.routed
	defer func() { l.close(); <-l.closed }()
	failed = false
	x.observe()
}

// observe does the work of run on a connection that is there.
func (x *observer) observe() {
	x.alive.Store(true)
	defer x.end()
	x.enable()
	if err := x.open(); err != nil {
		x.w.a.o.Logger.Error("cannot make a source", "title", x.target.Title, "error", err)
		return
	}
	for {
		select {
		case <-x.w.a.ctx.Done():
			x.leave("natscope detached from the program")
			return
		case <-x.closed:
			x.drain()
			x.leave(x.reason())
			return
		case <-x.queue.wake:
			x.drain()
		}
	}
}

// enable begins the observation. What an engine does not have is not observed.
func (x *observer) enable() {
	ctx, cancel := context.WithTimeout(x.w.a.ctx, enableWithin)
	defer cancel()
	ignore := func(json.RawMessage, error) {}
	if x.parent == nil {
		watchThreads(x.peer, x.engine.isBrowser(), x.w.a.o.HoldWorkers, ignore)
	}
	if x.parent == nil && x.engine.isBrowser() {
		x.peer.start("Page.enable", nil, ignore)
		x.peer.start("Log.enable", nil, ignore)
	}
	if !x.w.a.o.Inject.Redact {
		x.peer.start("Network.enable", map[string]any{"maxPostDataSize": maxPostData}, ignore)
	}
	enabled := make(chan error, 1)
	x.peer.start("Runtime.enable", nil, func(_ json.RawMessage, err error) {
		x.enabled.Store(true)
		if err == nil && x.wantsInjection() {
			x.inject(func() { enabled <- nil })
		} else {
			enabled <- err
		}
		if x.held {
			// Commands are carried out in order, so that the thread starts when it is observed.
			x.peer.start("Runtime.runIfWaitingForDebugger", nil, ignore)
		}
	})
	select {
	case err := <-enabled:
		if err != nil && !errors.Is(err, errHungUp) {
			x.w.a.o.Logger.Warn("the program cannot be observed", "title", x.target.Title, "error", err)
		}
	case <-ctx.Done():
		if x.w.a.ctx.Err() == nil {
			x.w.a.o.Logger.Warn("the program does not answer its inspector; it is shown, and observed once it does", "title", x.target.Title)
		}
	}
}

// reason says why the connection ended.
func (x *observer) reason() string {
	if x.gone.Load() {
		return "the program ended"
	}
	return "the program's inspector closed the connection"
}

// open makes the source.
func (x *observer) open() error {
	x.load++
	x.realm = source.RealmID(fmt.Sprintf("v8:%s:%s", x.w.endpoint, x.target.ID))
	if x.load > 1 {
		x.realm += source.RealmID(":" + strconv.Itoa(x.load))
	}
	x.skipTill = x.w.a.since(x.realm)
	service, instance := x.names()
	o := &x.w.a.o
	started := make(chan source.Descriptor, 1)
	p, err := producer.Start(producer.Options{
		Service: service, Instance: instance, Name: x.name(), Kind: x.kind(),
		Space: o.Space, Conn: o.Conn, URL: o.URL, NATS: o.NATS, Limits: o.Limits, Logger: o.Logger,
		Describe: func(d *source.Descriptor) { x.describe(d); started <- *d },
		Alive:    func(context.Context) bool { return x.alive.Load() },
	})
	if err != nil {
		return fmt.Errorf("v8: start the source of %q: %w", x.target.Title, err)
	}
	p.Serve(x)
	d := <-started
	x.origin = d.Origin
	x.console = consoleReader{x: x}
	x.network = networkReader{x: x}
	x.mu.Lock()
	x.prod = p
	x.mu.Unlock()
	if i := x.injected.Load(); i != nil {
		i.begin(p)
	}
	o.Logger.Info("attached", "source", string(p.ID()), "name", d.Name, "runtime", d.Runtime, "endpoint", x.w.endpoint)
	if o.Attached != nil {
		a := Attached{x.w.endpoint, p.ID(), d}
		x.w.a.all.Go(func() { o.Attached(a) })
	}
	return nil
}

// leave ends the source.
func (x *observer) leave(reason string) {
	x.mu.Lock()
	p := x.prod
	x.prod = nil
	x.mu.Unlock()
	if p == nil {
		return
	}
	x.w.a.o.Logger.Info("detached", "source", string(p.ID()), "reason", reason)
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	if err := p.Leave(ctx, reason); err != nil {
		x.w.a.o.Logger.Warn("a source could not say goodbye", "source", string(p.ID()), "error", err)
	}
}

// end closes the connection and takes the worker threads along.
func (x *observer) end() {
	x.alive.Store(false)
	if i := x.injected.Load(); i != nil && !x.gone.Load() {
		i.withdraw()
	}
	x.close()
	x.mu.Lock()
	x.ended = true
	workers := x.workers
	x.workers = nil
	x.mu.Unlock()
	for _, w := range workers {
		w.close()
	}
}

// listed takes news of a target that is observed already.
func (x *observer) listed(t listed) {
	x.mu.Lock()
	p, same := x.prod, x.title == t.Title
	x.title = t.Title
	x.mu.Unlock()
	if p != nil && !same && x.kind() == source.KindClient {
		p.Update(source.Update{Title: &t.Title})
	}
}

// kind is host for processes and their threads, client for what a browser runs.
func (x *observer) kind() source.Kind {
	if x.engine.isBrowser() {
		return source.KindClient
	}
	return source.KindHost
}

// pidSuffix is how an engine marks the name of a process with its id.
var pidSuffix = regexp.MustCompile(`^(.*)\[(\d+)\]$`)

// url is where the target's world comes from, now.
func (x *observer) url() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.target.URL
}

// name is what people see.
func (x *observer) name() string {
	x.mu.Lock()
	title, url := x.title, x.target.URL
	x.mu.Unlock()
	if x.parent != nil {
		return strings.TrimSpace(x.parent.name() + " " + title)
	}
	if !x.engine.isBrowser() {
		if m := pidSuffix.FindStringSubmatch(title); m != nil && m[1] != "" {
			title = m[1]
		}
		return or(scriptName(or(strings.TrimPrefix(url, "file://"), title)), x.target.Type)
	}
	if x.target.Type != "page" {
		return strings.ReplaceAll(x.target.Type, "_", " ") + " " + or(title, url)
	}
	return or(or(title, url), x.target.Type)
}

// scriptName names a program by its main file, with the folder where many have one of that name.
func scriptName(file string) string {
	file = strings.ReplaceAll(file, "\\", "/")
	base := path.Base(file)
	stem, _, _ := strings.Cut(base, ".")
	switch stem {
	case "index", "main", "server", "app", "start", "cli", "worker":
		if dir := path.Base(path.Dir(file)); dir != "." && dir != "/" {
			return dir + "/" + base
		}
	case "", "/":
		return ""
	}
	return base
}

// names are the parts of the source's id. They are the same when the same
// program runs again: a process is found by its inspector's port, unless that
// is another one each time; a page by its tab.
func (x *observer) names() (service, instance string) {
	instance = x.w.a.instance(x.w.endpoint)
	switch {
	case x.parent != nil:
		service, instance = x.parent.names()
		return service + " " + x.target.Title, instance
	case x.engine.isBrowser():
		return x.target.Type, x.target.ID
	}
	if !x.w.once {
		_, port, _ := net.SplitHostPort(x.w.endpoint)
		instance += ":" + port
	}
	return x.name(), instance
}

// describe says what is known of the program.
func (x *observer) describe(d *source.Descriptor) {
	d.Realm, d.Library = x.realm, library
	d.Runtime, d.URL = x.engine.runtime(), x.target.URL
	d.Hostname, d.PID = "", int(x.pid.Load())
	if x.kind() == source.KindClient {
		// The title that it has now: the target's is that of the moment when it was found.
		x.mu.Lock()
		d.Title, d.Service, d.Instance = x.title, "", ""
		x.mu.Unlock()
		return
	}
	if d.Hostname, _, _ = net.SplitHostPort(x.w.endpoint); x.local() {
		d.Hostname, _ = os.Hostname()
	}
}

// event takes one event of the connection, on its reader: what the program's
// end or its threads depend on is done at once, the rest waits in the queue.
func (x *observer) event(method string, params json.RawMessage) {
	switch method {
	case "Runtime.executionContextCreated":
		x.contextCreated(params)
	case "Runtime.executionContextDestroyed":
		x.contextDestroyed(params)
	case "Page.frameNavigated":
		x.queue.push(method, params, !x.enabled.Load())
	case "NodeWorker.attachedToWorker", "Target.attachedToTarget":
		x.workerAttached(params)
	case "NodeWorker.receivedMessageFromWorker":
		x.workerMessage(params)
	case "NodeWorker.detachedFromWorker", "Target.detachedFromTarget":
		x.workerDetached(params)
	case "Runtime.bindingCalled":
		if i := x.injected.Load(); i != nil {
			i.called(params)
		}
	case "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded":
		x.queue.push(method, params, !x.enabled.Load())
	default:
		if strings.HasPrefix(method, "Network.") {
			x.queue.push(method, params, !x.enabled.Load())
		}
	}
}

// context is an engine's description of an execution context.
type executionContext struct {
	Context struct {
		ID   int64  `json:"id"`
		Name string `json:"name"`
		Aux  struct {
			IsDefault bool   `json:"isDefault"`
			FrameID   string `json:"frameId"`
		} `json:"auxData"`
	} `json:"context"`
}

func (x *observer) contextCreated(params json.RawMessage) {
	var c executionContext
	if json.Unmarshal(params, &c) != nil || !c.Context.Aux.IsDefault {
		return
	}
	x.main.CompareAndSwap(0, c.Context.ID)
	if m := pidSuffix.FindStringSubmatch(c.Context.Name); m != nil {
		pid, _ := strconv.ParseInt(m[2], 10, 32)
		x.pid.CompareAndSwap(0, pid)
	}
	x.once.Do(func() { close(x.described) })
}

// contextDestroyed leaves a program that ends: it waits until its inspectors have gone.
func (x *observer) contextDestroyed(params json.RawMessage) {
	var c struct {
		ID int64 `json:"executionContextId"`
	}
	if json.Unmarshal(params, &c) != nil || c.ID != x.main.Load() || x.engine.isBrowser() {
		return
	}
	x.gone.Store(true)
	x.close()
}

// drain makes records of all events that wait.
func (x *observer) drain() {
	for {
		batch, lost := x.queue.take()
		if p := x.producer(); p != nil && lost > 0 {
			p.Lost(subjects.PlaneConsole, lost)
		}
		if len(batch) == 0 {
			x.console.release()
			return
		}
		for i, e := range batch {
			x.record(e, len(batch)-i)
		}
	}
}

func (x *observer) producer() *producer.Producer {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.prod
}

// record makes a record of one event. behind is how many wait.
func (x *observer) record(e event, behind int) {
	switch e.method {
	case "Page.frameNavigated":
		x.navigated(e.params)
	case "Runtime.consoleAPICalled":
		x.console.message(e, behind)
	case "Runtime.exceptionThrown":
		x.console.exception(e, behind)
	case "Log.entryAdded":
		x.console.entry(e)
	default:
		x.network.event(e.method, e.params)
	}
}

// navigated begins a new generation when a page was loaded anew, since nothing of the old one lives.
func (x *observer) navigated(params json.RawMessage) {
	var n struct {
		Frame struct {
			ID       string `json:"id"`
			ParentID string `json:"parentId"`
			LoaderID string `json:"loaderId"`
			URL      string `json:"url"`
		} `json:"frame"`
	}
	if json.Unmarshal(params, &n) != nil || n.Frame.ParentID != "" || n.Frame.ID != x.target.ID {
		return
	}
	x.mu.Lock()
	x.target.URL = n.Frame.URL // Workers of the page read it for their names.
	x.mu.Unlock()
	document, held := x.network.document, x.network.held
	if document != n.Frame.LoaderID {
		x.network.arrived()
		document, held = "", nil
	}
	x.leave("the page was loaded anew")
	if err := x.open(); err != nil {
		x.w.a.o.Logger.Error("cannot make a source", "title", x.target.Title, "error", err)
		return
	}
	x.network.document, x.network.held = document, held
	x.network.arrived()
}
