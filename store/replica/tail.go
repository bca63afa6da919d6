package replica

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// The terms of a tail.
const (
	// tailQueue is how many messages wait between NATS and the reader; behind it the server holds back.
	tailQueue = 512
	// tailBytes is how many bytes the server may send ahead.
	tailBytes = 4 << 20
	// tailHeartbeat is how often an idle server says that it lives; two missed ones end the tail.
	tailHeartbeat = time.Second
	// tailExpiry is how long one pull request lives.
	tailExpiry = 5 * time.Second
	// tailInactive is after what time the server forgets a consumer whose reader is gone.
	tailInactive = 30 * time.Second
	// requestTimeout bounds the first try of a request to the server, requestMax a later one.
	requestTimeout = time.Second
	requestMax     = 10 * time.Second
)

// errTailOrder says that the server delivered out of turn, so that the tail must begin anew.
var errTailOrder = errors.New("replica: a message was lost between server and reader")

// entry is one message of a stream.
type entry struct {
	seq uint64
	// stored is when the server stored the message.
	stored  time.Time
	subject string
	header  nats.Header
	data    []byte
}

// tail delivers the messages of one stream from a sequence on, in order,
// until its first trouble; then its reader begins another one where it stood.
// It is an ordered consumer, but not the one of the client library, which
// retries by itself with pauses of up to ten seconds and cannot be stopped
// meanwhile, while views must be current within five.
type tail struct {
	msgs chan entry
	// failed is closed at the first trouble, after which why says what it was.
	failed chan struct{}
	why    error

	once    sync.Once
	done    chan struct{}
	consume jetstream.ConsumeContext
	remove  func(context.Context) error
	next    uint64
	// pending is how many messages there were when the tail began.
	pending uint64
}

// openTail begins to deliver the messages on filter whose sequence is at least start.
func openTail(ctx context.Context, js jetstream.JetStream, stream, filter string, start uint64, timeout time.Duration) (*tail, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	config := jetstream.ConsumerConfig{
		// With a name of its own, asking for it once more makes no second one.
		Name:              rand.Text(),
		FilterSubject:     filter,
		DeliverPolicy:     jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:       max(start, 1),
		AckPolicy:         jetstream.AckNonePolicy,
		MaxDeliver:        1,
		MemoryStorage:     true,
		Replicas:          1,
		InactiveThreshold: tailInactive,
	}
	c, err := hedge(ctx, hedgeEvery, func(ctx context.Context) (jetstream.Consumer, error) {
		return js.CreateConsumer(ctx, stream, config)
	})
	if err != nil {
		return nil, fmt.Errorf("follow stream %s from %d: %w", stream, start, err)
	}
	t := &tail{
		msgs:   make(chan entry, tailQueue),
		failed: make(chan struct{}),
		done:   make(chan struct{}),
		remove: func(ctx context.Context) error { return js.DeleteConsumer(ctx, stream, config.Name) },
		next:   1,
	}
	if info := c.CachedInfo(); info != nil {
		t.pending = info.NumPending
	}
	t.consume, err = c.Consume(t.deliver,
		jetstream.PullHeartbeat(tailHeartbeat), jetstream.PullExpiry(tailExpiry), jetstream.PullMaxBytes(tailBytes),
		jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) { t.trouble(err) }))
	if err != nil {
		return nil, fmt.Errorf("follow stream %s from %d: %w", stream, start, err)
	}
	return t, nil
}

// deliver enqueues one message. It waits while the queue is full, which holds
// back the server and nobody else. Nothing follows a message that was left out:
// after the first trouble, nothing more is enqueued.
func (t *tail) deliver(m jetstream.Msg) {
	select {
	case <-t.failed:
		return
	default:
	}
	meta, err := m.Metadata()
	if err != nil {
		t.fail(err)
		return
	}
	if meta.Sequence.Consumer != t.next {
		t.fail(errTailOrder)
		return
	}
	t.next++
	select {
	case t.msgs <- entry{meta.Sequence.Stream, meta.Timestamp, m.Subject(), m.Headers(), m.Data()}:
	case <-t.done:
	case <-t.failed:
	}
}

// trouble ends the tail unless it goes on by itself.
func (t *tail) trouble(err error) {
	// A pull request met a server that had not heard of the subscription yet; the next one will do.
	if errors.Is(err, nats.ErrNoResponders) {
		return
	}
	t.fail(err)
}

func (t *tail) fail(err error) {
	t.once.Do(func() {
		t.why = err
		close(t.failed)
	})
}

// stop ends the tail and returns at once. What was delivered before is dropped.
func (t *tail) stop() {
	close(t.done)
	t.consume.Stop()
}

// discard is stop for a tail that was short: it also removes the consumer from the server.
func (t *tail) discard() {
	t.stop()
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	_ = t.remove(ctx) // The server does it by itself when this fails.
}
