package v8

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/source"
)

// The times of attaching.
const (
	// pollEvery is how often an endpoint is asked for targets by default.
	pollEvery = time.Second
	// retryAfter is how long a target that could not be attached to is left alone.
	retryAfter = 3 * time.Second
	// closeWithin bounds the goodbye of one source.
	closeWithin = 3 * time.Second
)

// maxTargets is how many targets one Attacher observes at once; more are told of in the log.
const maxTargets = 512

// ErrOptions says that Attach was given options that cannot work.
var ErrOptions = errors.New("v8: invalid options")

// Options says what to attach to and where the sources go.
type Options struct {
	// Endpoints are addresses of inspectors, in the forms of ParseEndpoints.
	Endpoints []string
	// Directory, if set, is watched for files that each name one inspector: its
	// first line is an address in the forms of ParseEndpoints. A file that goes
	// takes nothing with it: a source ends with its program.
	Directory string
	// Instance tells programs of the same name on different machines apart; the
	// default is the name of this host, or of the endpoint's where that is another one.
	Instance string
	// Space is the namespace of the sources. The default is subjects.DefaultSpace.
	Space subjects.Space
	// Conn is the connection to NATS that all sources share. It stays open at
	// Close. Without it each source connects to URL by itself, with NATS as further options.
	Conn *nats.Conn
	URL  string
	NATS []nats.Option
	// Limits bounds the queues and bodies of each source. Zero fields have their defaults.
	Limits subjects.Limits
	// Poll is how often an endpoint is asked for new targets. The default is a second.
	Poll time.Duration
	// HoldWorkers makes worker threads wait at their start until they are observed,
	// so that nothing that they log is missed: engines do not keep it for later as
	// they do for the process itself. A thread then starts as late as natscope is,
	// which is right for a program that natscope runs, and wrong for one in production.
	HoldWorkers bool
	// Inject says what is put into Node programs beyond what their inspector tells. The zero value is nothing.
	Inject Inject
	// Attached, if set, is called when a target has become a source, from a goroutine of its own.
	Attached func(Attached)
	// Logger tells of targets that come and go, and of trouble. Nil means silence.
	Logger *slog.Logger
}

// Attached is a target that has become a source.
type Attached struct {
	// Endpoint is where its inspector listens, HOST:PORT.
	Endpoint string
	// Source is its id when it opened; see producer.Producer.ID.
	Source subjects.SourceID
	// Descriptor is what the source says of itself.
	Descriptor source.Descriptor
}

// Attacher finds targets and makes each of them a source for as long as it lives.
type Attacher struct {
	o      Options
	ctx    context.Context
	cancel context.CancelFunc
	all    sync.WaitGroup
	// observed counts the targets that are observed.
	observed atomic.Int64

	mu       sync.Mutex // guards all below
	watchers map[string]*watcher
	// seen is the time of the last console message that was recorded, by realm:
	// an engine replays its console to whoever comes, also to who comes back.
	seen map[source.RealmID]float64
}

// Attach begins to watch. It returns at once; programs that are not there yet,
// or not any more, are waited for. The caller ends it with Close. The error wraps
// ErrOptions or ErrEndpoint.
func Attach(o Options) (*Attacher, error) {
	var endpoints []string
	for _, e := range o.Endpoints {
		list, err := ParseEndpoints(e)
		if err != nil {
			return nil, err
		}
		endpoints = append(endpoints, list...)
	}
	if len(endpoints) == 0 && o.Directory == "" {
		return nil, fmt.Errorf("%w: there is nothing to attach to; set Endpoints or Directory", ErrOptions)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Poll <= 0 {
		o.Poll = pollEvery
	}
	a := &Attacher{o: o, watchers: make(map[string]*watcher), seen: make(map[source.RealmID]float64)}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	for _, e := range endpoints {
		a.watch(e, len(endpoints) > 1, false)
	}
	if o.Directory != "" {
		a.all.Go(a.watchDirectory)
	}
	return a, nil
}

// Close leaves all programs and ends their sources. Programs that a session had
// paused run on. It returns when all is gone, or ctx ends.
func (a *Attacher) Close(ctx context.Context) error {
	a.cancel()
	done := make(chan struct{})
	go func() { a.all.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("v8: close: not every source said goodbye: %w", ctx.Err())
	}
}

// watch begins to watch an endpoint unless it is watched. quiet says that nobody
// need hear that there is nothing, as in a range of ports; once that the endpoint
// goes with its program.
func (a *Attacher) watch(endpoint string, quiet, once bool) *watcher {
	a.mu.Lock()
	defer a.mu.Unlock()
	if w := a.watchers[endpoint]; w != nil || a.ctx.Err() != nil {
		return w
	}
	w := &watcher{a: a, endpoint: endpoint, quiet: quiet, once: once, targets: make(map[string]*observer), failed: make(map[string]time.Time), over: make(map[string]bool), kicks: make(chan struct{}, 1)}
	a.watchers[endpoint] = w
	a.all.Go(w.run)
	return w
}

// instance tells programs of one name apart.
func (a *Attacher) instance(endpoint string) string {
	if a.o.Instance != "" {
		return a.o.Instance
	}
	host, _, _ := net.SplitHostPort(endpoint)
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		host, _ = os.Hostname()
	}
	return host
}

// watcher asks one endpoint for its targets.
type watcher struct {
	a        *Attacher
	endpoint string
	// quiet says that an endpoint that does not answer is not worth a word; once
	// says that it belongs to one program, which has another one at its next start.
	quiet, once bool
	kicks       chan struct{}

	mu      sync.Mutex // guards all below
	targets map[string]*observer
	failed  map[string]time.Time
	// over are programs that end. Deno lists them while it waits for its debuggers
	// to leave, and would wait for one that comes back.
	over map[string]bool
}

// run polls until the Attacher is closed.
func (w *watcher) run() {
	tick := time.NewTicker(w.a.o.Poll)
	defer tick.Stop()
	silent, misses := false, 0
	for {
		err := w.poll()
		switch {
		case err != nil && !silent && !w.quiet:
			w.a.o.Logger.Info("no inspector answers yet, waiting for it", "endpoint", w.endpoint, "error", err)
			silent = true
		case err == nil:
			silent, misses = false, 0
		}
		if err != nil && w.once {
			if misses++; misses > 2 {
				w.a.forget(w)
				return
			}
		}
		select {
		case <-w.a.ctx.Done():
			return
		case <-tick.C:
		case <-w.kicks:
		}
	}
}

// forget stops watching an endpoint that is not expected to come back.
func (a *Attacher) forget(w *watcher) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.watchers[w.endpoint] == w {
		delete(a.watchers, w.endpoint)
	}
}

// kick makes the watcher look at once.
func (w *watcher) kick() {
	select {
	case w.kicks <- struct{}{}:
	default:
	}
}

// poll asks for targets and begins to observe new ones.
func (w *watcher) poll() error {
	if w.settled() {
		return nil
	}
	ctx, cancel := context.WithTimeout(w.a.ctx, 5*time.Second)
	defer cancel()
	var list []listed
	if err := get(ctx, w.endpoint, "/json/list", &list); err != nil {
		return err
	}
	var e engine
	if err := get(ctx, w.endpoint, "/json/version", &e); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range list {
		if x := w.targets[t.ID]; x != nil {
			x.listed(t)
			continue
		}
		if !t.wanted() || w.a.ctx.Err() != nil || time.Since(w.failed[t.ID]) < retryAfter || w.over[t.ID] {
			continue
		}
		if w.a.observed.Load() >= maxTargets {
			w.a.o.Logger.Warn("too many targets; this one is not observed", "endpoint", w.endpoint, "title", t.Title, "most", maxTargets)
			continue
		}
		x := newObserver(w, t, e)
		w.targets[t.ID] = x
		w.a.observed.Add(1)
		w.a.all.Go(x.run)
	}
	for id := range w.over {
		if !slices.ContainsFunc(list, func(t listed) bool { return t.ID == id }) {
			delete(w.over, id)
		}
	}
	for id, at := range w.failed {
		if time.Since(at) > time.Minute {
			delete(w.failed, id)
		}
	}
	return nil
}

// settled reports whether there is nothing to look for: the inspector of a
// process has exactly one target, and that one is observed.
func (w *watcher) settled() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, x := range w.targets {
		if !x.engine.isBrowser() {
			return true
		}
	}
	return false
}

// ended takes an observer off the list. One that never got to see anything is left alone for a while.
func (w *watcher) ended(x *observer, failed bool) {
	w.mu.Lock()
	delete(w.targets, x.target.ID)
	if x.gone.Load() {
		w.over[x.target.ID] = true
	}
	if failed {
		w.failed[x.target.ID] = time.Now()
	}
	w.mu.Unlock()
	w.a.observed.Add(-1)
	w.kick()
}

// since is the time of the last console message of a realm that is recorded, and recorded notes a later one.
func (a *Attacher) since(r source.RealmID) float64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.seen[r]
}

func (a *Attacher) recorded(r source.RealmID, t float64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.seen) >= 4*maxTargets && a.seen[r] == 0 {
		clear(a.seen) // The worst of it is a message that is shown twice.
	}
	a.seen[r] = max(a.seen[r], t)
}
