package httpcap

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/natscope/natscope/producer/redact"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
)

// Fake stands for a producer: it keeps every record and body, and folds the
// records as every reader does.
type Fake struct {
	// Max are the limits that capture is told.
	Max subjects.Limits
	// Discard makes it count only.
	Discard bool
	// Panics makes every record panic after the first n, to test containment; negative never.
	Panics int

	// Redact are the rules that capture is told.
	Redact redact.Rules

	start   time.Time
	mu      sync.Mutex
	records []subjects.Record
	bodies  map[string]*FakeBody
	lost    uint64
}

// NewFake returns a fake with the default limits.
func NewFake() *Fake {
	return &Fake{Max: subjects.DefaultLimits(), Panics: -1, start: time.Now(), bodies: make(map[string]*FakeBody)}
}

// NewTransport is Transport with a fake in place of a producer.
func NewTransport(f *Fake, next http.RoundTripper, opts ...Option) http.RoundTripper {
	return newTransport(f, next, opts...)
}

func (f *Fake) Now() float64 { return float64(time.Since(f.start)) / 1e6 }
func (f *Fake) Redactor() *redact.Redactor {
	r, err := f.Redact.Compile()
	if err != nil {
		panic(err)
	}
	return r
}

func (f *Fake) Limits() subjects.Limits { return f.Max }

func (f *Fake) Lost(plane subjects.Plane, n uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost += n
}

// LostCount returns how many records were reported as lost.
func (f *Fake) LostCount() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lost
}

func (f *Fake) RecordAt(plane subjects.Plane, topic string, t float64, data json.RawMessage) {
	if f.Discard {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.Panics >= 0 && len(f.records) >= f.Panics {
		panic("a bug in the capture")
	}
	f.records = append(f.records, subjects.Record{T: t, Topic: topic, Data: bytes.Clone(data)})
}

func (f *Fake) Body(id network.RequestID, d subjects.Direction) bodySink {
	b := &FakeBody{limit: f.Max.ResponseBodyBytes}
	if d == subjects.RequestBody {
		b.limit = f.Max.RequestBodyBytes
	}
	if f.Discard {
		b.limit = 0
		return b
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	key := string(id) + "." + string(d)
	if f.bodies[key] != nil {
		panic("two bodies for " + key)
	}
	f.bodies[key] = b
	return b
}

// Topics returns the topics of the records so far, in order.
func (f *Fake) Topics() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for _, r := range f.records {
		out = append(out, r.Topic)
	}
	return out
}

// Captured returns one captured body, or nil.
func (f *Fake) Captured(id network.RequestID, d subjects.Direction) *FakeBody {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.bodies[string(id)+"."+string(d)]
}

// Fold folds the records and returns the requests in order. It fails on every
// record that a reader would reject or ignore: those of unknown or ended
// requests are bugs of the capture.
func (f *Fake) Fold() ([]*network.Request, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var s network.State
	last := -1.0
	for i, r := range f.records {
		c, err := s.Apply("g", r.T, r.Topic, r.Data, network.Keep{})
		if err != nil {
			return nil, fmt.Errorf("record %d, %s: %w", i, r.Data, err)
		}
		if c == nil {
			return nil, fmt.Errorf("record %d, %s %s, changes nothing", i, r.Topic, r.Data)
		}
		last = max(last, r.T)
	}
	for key, b := range f.bodies {
		if n := b.Ends(); n > 1 {
			return nil, fmt.Errorf("body %s ended %d times", key, n)
		}
	}
	return slices.Clone(s.Requests), nil
}

// Unended returns the bodies without an end marker.
func (f *Fake) Unended() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for key, b := range f.bodies {
		if b.Ends() == 0 {
			out = append(out, key)
		}
	}
	return out
}

// FakeBody keeps one body up to the limit, as a producer does.
type FakeBody struct {
	limit int64

	mu     sync.Mutex
	data   []byte
	cut    bool
	ends   int
	reason string
	total  int64
}

func (b *FakeBody) Write(chunk []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ends > 0 {
		panic("a chunk after the end")
	}
	if room := b.limit - int64(len(b.data)); int64(len(chunk)) > room {
		chunk, b.cut = chunk[:room], true
	}
	b.data = append(b.data, chunk...)
}

func (b *FakeBody) End(reason string, total int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ends++
	b.reason, b.total = reason, total
}

func (b *FakeBody) Captured() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return int64(len(b.data))
}

func (b *FakeBody) Truncated() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.cut
}

// Ends returns how often the body was ended.
func (b *FakeBody) Ends() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ends
}

// Content returns what was kept, why it ended and its whole size.
func (b *FakeBody) Content() (data []byte, reason string, total int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.data), b.reason, b.total
}

// NewHandler is Handler with a fake in place of a producer.
func NewHandler(f *Fake, next http.Handler, opts ...Option) http.Handler {
	return newHandler(f, next, opts...)
}

// SetDefault is Default with a fake in place of a producer.
func SetDefault(f *Fake, opts ...Option) (restore func()) { return setDefault(f, opts...) }

// Records returns the records so far.
func (f *Fake) Records() []subjects.Record {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.records)
}

// Bodies returns the bodies so far by request and direction.
func (f *Fake) Bodies() map[string]*FakeBody {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.bodies)
}

// Checking is how many bytes wait to be checked against rules.
func Checking() int64 { return checking.Load() }

// DialSocket is Dial with a fake in place of a producer.
func DialSocket(ctx context.Context, f *Fake, url string, h http.Header) (context.Context, *Socket) {
	return dial(ctx, f, url, h)
}
