package producer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/nats-io/nats.go"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/source"
)

// ErrOptions says that Start was given options that cannot work. The text
// around it names the field and what it takes.
var ErrOptions = errors.New("producer: invalid options")

// library is what descriptors name as their producer.
const library = "natscope-go/1"

// Options says who the source is and where its records go. The zero value is
// a host named after the program, at $NATS_URL or the default local server.
type Options struct {
	// Service and Instance name the source, with any text. They become its id.
	// The defaults are the name of the binary and the name of the host. An id is
	// unique in its space: of two programs that run at once with one id, the second
	// one gets a number behind it, and both say so.
	Service, Instance string
	// Name is the name that people see; any text. The default is Service.
	Name string
	// ID overrides the id that is made of Service and Instance. It is a token (subjects.IsToken).
	ID subjects.SourceID
	// Kind says what the source is. The default is source.KindHost.
	Kind source.Kind
	// Space is the namespace of the source. The default is subjects.DefaultSpace.
	Space subjects.Space
	// URL names one or more NATS servers, separated by commas. The default is
	// $NATS_URL, and without it nats://127.0.0.1:4222. It is not used with Conn.
	URL string
	// NATS are further options of the connection: credentials, TLS, an inbox
	// prefix. They come after the producer's own and win over them.
	NATS []nats.Option
	// Conn is a connection to use instead of one of the producer's own. It stays open at Close.
	Conn *nats.Conn
	// Limits bounds queues, frames and bodies. Zero fields have their defaults.
	Limits subjects.Limits
	// Redact says what of requests must not leave the process. It is applied where
	// requests are captured, and what was taken out shows as "[redacted]".
	Redact Redact
	// Logger tells of trouble with the connection and of losses. Nil means silence.
	Logger *slog.Logger
	// Describe may fill in or change the descriptor before it is sent. It runs
	// once, in Start. The id in the subjects does not follow changes of Service and Instance.
	Describe func(*source.Descriptor)
	// Alive says whether the program that the source stands for is still there,
	// for a producer that publishes on behalf of another program. It is asked when
	// someone else wants the source's id, on a goroutine of its own, and answers
	// before ctx ends; late is as good as no. Nil means that it is this program, which is there.
	Alive func(ctx context.Context) bool
}

// withDefaults fills in what is missing and refuses what cannot work. The error wraps ErrOptions.
func (o Options) withDefaults() (Options, error) {
	if o.Service == "" && o.ID == "" {
		o.Service = "program"
		if exe, err := os.Executable(); err == nil {
			o.Service = strings.TrimSuffix(filepath.Base(exe), ".exe")
		}
	}
	if o.Instance == "" && o.ID == "" {
		o.Instance, _ = os.Hostname()
	}
	if o.ID == "" {
		o.ID = subjects.NewSourceID(o.Service, o.Instance)
	}
	if o.Name == "" {
		if o.Name = o.Service; o.Name == "" {
			o.Name = string(o.ID)
		}
	}
	if o.Kind == "" {
		o.Kind = source.KindHost
	}
	if o.Space == "" {
		o.Space = subjects.DefaultSpace
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if !subjects.IsToken(string(o.ID)) {
		return o, fmt.Errorf("%w: ID %.80q is not a token: use 1 to %d of a-z, 0-9, \"_\" and \"-\", or leave ID empty and set Service", ErrOptions, o.ID, subjects.MaxToken)
	}
	if !subjects.IsToken(string(o.Space)) {
		return o, fmt.Errorf("%w: Space %.80q is not a token: use 1 to %d of a-z, 0-9, \"_\" and \"-\"", ErrOptions, o.Space, subjects.MaxToken)
	}
	o.Limits = clamp(o.Limits.WithDefaults())
	if o.Conn == nil {
		if o.URL == "" {
			o.URL = os.Getenv("NATS_URL")
		}
		if o.URL == "" {
			o.URL = nats.DefaultURL
		}
		if err := checkURL(o.URL); err != nil {
			return o, err
		}
	}
	return o, nil
}

// clamp brings limits into the range that readers accept and that can work at all.
func clamp(l subjects.Limits) subjects.Limits {
	d := subjects.DefaultLimits()
	within := func(v *int, low, high int) { *v = min(max(*v, low), high) }
	within(&l.FrameRecords, 1, d.FrameRecords)
	within(&l.FrameBytes, minFrame, d.FrameBytes)
	within(&l.BodyChunkBytes, 1, d.FrameBytes)
	within(&l.QueueRecords, 1, 1<<24)
	within(&l.QueueBytes, 1, 1<<30)
	within(&l.BodyQueueBytes, 1, 1<<30)
	l.RequestBodyBytes = max(l.RequestBodyBytes, 0)
	l.ResponseBodyBytes = max(l.ResponseBodyBytes, 0)
	l.Heartbeat = max(l.Heartbeat, 10*time.Millisecond)
	l.ReconnectMin = max(l.ReconnectMin, time.Millisecond)
	l.ReconnectMax = max(l.ReconnectMax, l.ReconnectMin)
	return l
}

// checkURL refuses what nats.go could never dial, so that a typing error shows at once and not as a server that is away.
func checkURL(list string) error {
	for _, s := range strings.Split(list, ",") {
		s = strings.TrimSpace(s)
		if !strings.Contains(s, "://") {
			s = "nats://" + s
		}
		u, err := url.Parse(s)
		if err != nil {
			// The error of url.Parse quotes the address, which may hold a password.
			return fmt.Errorf("%w: URL cannot be parsed: use nats://host:port", ErrOptions)
		}
		switch u.Scheme {
		case "nats", "tls", "ws", "wss":
		default:
			return fmt.Errorf("%w: URL has the scheme %.20q: use nats, tls, ws or wss", ErrOptions, u.Scheme)
		}
		if u.Hostname() == "" {
			return fmt.Errorf("%w: URL names no host: use nats://host:port", ErrOptions)
		}
	}
	return nil
}

// maxDescriptorText is how many bytes of each text of a descriptor are kept.
const maxDescriptorText = 8 << 10

// describe makes the descriptor. The error wraps ErrOptions.
func (o Options) describe(start time.Time, realm source.RealmID) (d source.Descriptor, err error) {
	d = source.Descriptor{
		Name: o.Name, Kind: o.Kind, Realm: realm,
		Origin:  float64(start.UnixNano()) / 1e6,
		Service: o.Service, Instance: o.Instance,
		Library: library,
	}
	if o.Kind != source.KindClient {
		d.Runtime, d.PID = runtime.Version(), os.Getpid()
		d.Hostname, _ = os.Hostname()
	}
	if o.Describe != nil {
		if err := contained(func() { o.Describe(&d) }); err != nil {
			return d, fmt.Errorf("%w: Describe: %w", ErrOptions, err)
		}
	}
	for _, s := range []*string{&d.Name, &d.Service, &d.Instance, &d.Runtime, &d.Hostname, &d.URL, &d.Title, &d.Library} {
		*s = cutText(*s, maxDescriptorText)
	}
	d.Realm = source.RealmID(cutText(string(d.Realm), 256))
	line, err := json.Marshal(d)
	if err == nil {
		_, err = source.ParseDescriptor(line)
	}
	if err != nil {
		return d, fmt.Errorf("%w: descriptor: %w", ErrOptions, err)
	}
	return d, nil
}

// cutText returns s as valid UTF-8 of at most limit bytes.
func cutText(s string, limit int) string {
	if len(s) > limit {
		// Not in the middle of a rune; a run of continuation bytes is no rune anyway.
		at := limit
		for at > 0 && limit-at < utf8.UTFMax && !utf8.RuneStart(s[at]) {
			at--
		}
		s = s[:at]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// contained runs f and turns a panic into an error.
func contained(f func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	f()
	return nil
}
