package producer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/realm"
)

// dialTimeout bounds one attempt to connect.
const dialTimeout = 2 * time.Second

// reconnectMax bounds the wait between two attempts, whatever the limits say:
// views must be current 5 s after a server's return.
const reconnectMax = 2 * time.Second

// maxAcks is how many acknowledgements may wait for the loop: more than the lanes ask for.
const maxAcks = 64

// link is a connection with what the producer listens to on it.
type link struct {
	nc       *nats.Conn
	owned    bool
	inbox    string
	statuses chan nats.Status
	acks     *nats.Subscription
	// acked brings the acknowledgements.
	acked chan *nats.Msg
	// served are the subscriptions of the present generation.
	served []*nats.Subscription
}

// dialled is what the dialler comes back with.
type dialled struct {
	nc  *nats.Conn
	err error
}

// connect takes the connection that the application gave, or starts the dialler.
func (l *loop) connect() {
	if nc := l.p.o.Conn; nc != nil {
		l.attach(nc, false)
		return
	}
	l.helpers.Go(func() {
		nc, err := nats.Connect(l.p.o.URL, l.dialOptions()...)
		select {
		case l.links <- dialled{nc, err}:
		case <-l.ctx.Done():
			if nc != nil {
				nc.Close()
			}
		}
	})
}

// ctxDialer makes a dial end with the loop.
type ctxDialer struct{ ctx context.Context }

func (d ctxDialer) Dial(network, address string) (net.Conn, error) {
	return (&net.Dialer{Timeout: dialTimeout}).DialContext(d.ctx, network, address)
}

func (l *loop) dialOptions() []nats.Option {
	limits := l.p.o.Limits
	first, most := limits.ReconnectMin, max(min(limits.ReconnectMax, reconnectMax), limits.ReconnectMin)
	own := []nats.Option{
		nats.Name("natscope producer " + string(l.p.ID())),
		nats.SetCustomDialer(ctxDialer{l.ctx}),
		nats.Timeout(dialTimeout),
		nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1),
		nats.IgnoreAuthErrorAbort(),
		// The queues are the buffer: what nats.go would keep could be sent twice.
		nats.ReconnectBufSize(-1),
		nats.PingInterval(2 * time.Second),
		nats.MaxPingsOutstanding(2),
		// A server that stopped reading must not hold the loop for long.
		nats.FlusherTimeout(2 * time.Second),
		nats.CustomReconnectDelay(func(attempts int) time.Duration {
			wait := min(first<<min(max(attempts-1, 0), 10), most)
			return wait/2 + rand.N(wait/2+1)
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { l.give(order{kind: orderError, err: err}) }),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) {
			l.give(order{kind: orderError, err: fmt.Errorf("connecting to NATS: %w", err)})
		}),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				l.give(order{kind: orderError, err: err})
			}
		}),
	}
	return append(own, l.p.o.NATS...)
}

// give hands an order to the loop and never blocks. It reports whether the loop will see it.
func (l *loop) give(o order) bool {
	select {
	case l.orders <- o:
		return true
	default:
		return false
	}
}

func (l *loop) dialled(d dialled) {
	if d.err != nil {
		l.p.trouble("no connection", fmt.Errorf("connecting to NATS: %w", d.err))
		l.redialAt = time.Now().Add(reconnectMax)
		return
	}
	if err := d.nc.LastError(); err != nil && !d.nc.IsConnected() {
		l.p.trouble("no connection", fmt.Errorf("connecting to NATS: %w", err))
	}
	l.attach(d.nc, true)
}

// attach begins to use a connection.
func (l *loop) attach(nc *nats.Conn, owned bool) {
	k := &link{nc: nc, owned: owned, inbox: nc.NewInbox(), statuses: nc.StatusChanged()}
	l.link = k
	var err error
	// The loop reads the channel itself: a callback would wake one goroutine more
	// for every frame. An acknowledgement that finds it full counts as lost, and
	// the message is sent again.
	k.acked = make(chan *nats.Msg, maxAcks)
	k.acks, err = nc.ChanSubscribe(k.inbox+".*", k.acked)
	if err != nil {
		l.lostLink(err)
		return
	}
	l.serve()
}

// serve listens to what the store and the gateways ask of the present generation.
func (l *loop) serve() {
	for _, s := range l.link.served {
		_ = s.Unsubscribe()
	}
	l.link.served = nil
	id := l.p.ident.Load()
	l.listen(subjects.Control(l.p.o.Space, id.source, id.generation), l.onControl)
	l.listen(subjects.Command(l.p.o.Space, id.source, id.generation), l.onCommand)
	if l.claims.held {
		l.listen(subjects.ClaimSubject(l.p.o.Space, id.source), l.onClaim)
	}
}

// listen subscribes for as long as the present generation is served.
func (l *loop) listen(subject string, f nats.MsgHandler) {
	s, err := l.link.nc.Subscribe(subject, f)
	if err != nil {
		l.p.trouble("not reachable", fmt.Errorf("subscribing to %s: %w", subject, err))
		return
	}
	l.link.served = append(l.link.served, s)
}

// lostLink gives a connection up for good, and dials again if it is the producer's own.
func (l *loop) lostLink(err error) {
	if err == nil {
		err = errors.New("the connection was closed")
	}
	owned := l.link.owned
	l.unlink()
	l.setConnected(false)
	if !owned {
		l.p.trouble("no connection", fmt.Errorf("the connection given in Options.Conn cannot be used any more: %w", err))
		return
	}
	l.p.trouble("no connection", err)
	l.redialAt = time.Now().Add(l.p.o.Limits.ReconnectMin)
}

// leave makes sure that the server knows that nobody listens any more: whoever
// asks a closed source must hear at once that there is no responder. What was on
// its way meanwhile is answered, since whoever asked may wait for minutes.
func (l *loop) leave() {
	if l.link == nil {
		return
	}
	l.endCommands()
	served := l.link.served
	l.link.served = nil
	drained := make(chan struct{}, len(served))
	for _, s := range served {
		s.SetClosedHandler(func(string) { drained <- struct{}{} })
		if s.Drain() != nil {
			drained <- struct{}{}
		}
	}
	l.emit()
	ctx, cancel := context.WithTimeout(l.ctx, time.Second)
	defer cancel()
	for range served {
		select {
		case <-drained:
		case <-ctx.Done():
			return
		}
	}
	_ = l.link.nc.FlushWithContext(ctx)
}

// endCommands ends all commands and sessions, for good.
func (l *loop) endCommands() {
	l.p.sessions.closeAll(fmt.Errorf("%w: the program ends", realm.ErrGone), true)
	l.p.commands.close()
}

// unlink stops using the connection and closes it if it is the producer's own.
func (l *loop) unlink() {
	k := l.link
	if k == nil {
		return
	}
	l.link = nil
	for _, s := range append(k.served, k.acks) {
		if s != nil {
			_ = s.Unsubscribe()
		}
	}
	k.nc.RemoveStatusListener(k.statuses)
	if k.owned {
		k.nc.Close()
	}
}

// status deals with a change of the connection.
func (l *loop) status(now time.Time, s nats.Status) {
	switch s {
	case nats.CLOSED:
		l.lostLink(l.link.nc.LastError())
		l.resendAll(now)
	case nats.DISCONNECTED, nats.RECONNECTING:
		// The connection may be back already; what was in flight may be lost all the same.
		l.resendAll(now)
	}
}

// resendAll makes every message in flight go out again. Both copies may
// arrive: the chain stores one.
func (l *loop) resendAll(now time.Time) {
	for _, x := range l.lanes {
		if x.out != nil {
			x.tries = min(x.tries, 1)
			x.retry(now)
		}
	}
}
