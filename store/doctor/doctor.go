// Package doctor examines a running natscope from outside: the NATS server, the
// streams and the bucket of a space, the stores that keep it and the sources in
// it. Each finding says what was seen and, if something is wrong, what to do.
//
// It owns the checks and their order. It changes nothing: it only reads and
// listens. It must not know CDP or how findings are printed. Examine starts no
// goroutine of its own.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/natscope/natscope/subjects"
)

// Level says how a check went.
type Level string

// The levels, from good to bad.
const (
	// OK means that nothing is to be done.
	OK Level = "ok"
	// Warn means that it works, but not as well as it should.
	Warn Level = "warn"
	// Fail means that something does not work.
	Fail Level = "fail"
)

// Finding is the result of one check.
type Finding struct {
	// Check names what was looked at, such as "stream NATSCOPE_REC_dev".
	Check string `json:"check"`
	// Level says how it went.
	Level Level `json:"level"`
	// Text says what was seen, in a sentence.
	Text string `json:"text"`
	// Fix says what to do; empty with OK.
	Fix string `json:"fix,omitempty"`
}

// checkTimeout bounds one request of a check.
const checkTimeout = 5 * time.Second

// oldestServer is the first nats-server with all that the state bucket needs: atomic batches.
const oldestServer = "2.12.0"

// patient is the examination of one space.
type patient struct {
	conn  *nats.Conn
	js    jetstream.JetStream
	space subjects.Space
	found []Finding
}

// Examine carries out all checks and returns their findings in order. listen is
// how long it waits for heartbeats and for stores to show that they work; 3 s
// are enough, since sources beat every 2 s.
func Examine(ctx context.Context, conn *nats.Conn, space subjects.Space, listen time.Duration) []Finding {
	p := &patient{conn: conn, space: space}
	p.server()
	js, err := jetstream.New(conn)
	if err != nil {
		p.fail("JetStream", err.Error(), "check the connection's options")
		return p.found
	}
	p.js = js
	if !p.jetStream(ctx) {
		return p.found
	}
	rec := p.streams(ctx)
	beats := p.listen(ctx, rec, listen)
	p.sources(ctx, beats)
	return p.found
}

func (p *patient) ok(check, format string, v ...any) {
	p.found = append(p.found, Finding{Check: check, Level: OK, Text: fmt.Sprintf(format, v...)})
}

func (p *patient) warn(check, text, fix string) {
	p.found = append(p.found, Finding{Check: check, Level: Warn, Text: text, Fix: fix})
}

func (p *patient) fail(check, text, fix string) {
	p.found = append(p.found, Finding{Check: check, Level: Fail, Text: text, Fix: fix})
}

// server looks at the server of the connection.
func (p *patient) server() {
	const check = "server"
	v := p.conn.ConnectedServerVersion()
	rtt, err := p.conn.RTT()
	if err != nil {
		p.fail(check, "the server does not answer: "+err.Error(), "check the network between here and "+p.conn.ConnectedUrlRedacted())
		return
	}
	switch {
	case older(v, oldestServer):
		p.fail(check, fmt.Sprintf("nats-server %s cannot write state atomically", v), "upgrade to "+oldestServer+" or newer")
	case rtt > 100*time.Millisecond:
		p.warn(check, fmt.Sprintf("nats-server %s answers after %s", v, rtt.Round(time.Millisecond)), "run stores and gateways closer to the server")
	default:
		p.ok(check, "nats-server %s at %s answers after %s", v, p.conn.ConnectedUrlRedacted(), rtt.Round(10*time.Microsecond))
	}
	if limit := p.conn.MaxPayload(); limit < 1<<20 {
		p.warn("max_payload", fmt.Sprintf("messages may have %d bytes, so frames are small and state is cut into many parts", limit), "set max_payload to 1MB or more")
	}
}

// jetStream looks at the account's JetStream and reports whether it can be used.
func (p *patient) jetStream(ctx context.Context) bool {
	const check = "JetStream"
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	info, err := p.js.AccountInfo(ctx)
	switch {
	case err == nil:
		p.ok(check, "%d streams, %s in files, %s in memory", info.Streams, bytes(info.Store), bytes(info.Memory))
		return true
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		p.fail(check, "JetStream is not enabled", "start the server with JetStream (nats-server -js) and allow it for this account")
		return false
	case p.denied():
		// A least-privilege user may not ask for the account; the streams tell the rest.
		p.ok(check, "this user may not ask for the account's usage, which nothing needs")
		return true
	}
	p.fail(check, "no answer: "+err.Error()+p.lastError(), "check that the server runs JetStream and that a cluster has a leader (nats server report jetstream)")
	return false
}

// denied reports whether the server refused something that this connection did.
func (p *patient) denied() bool {
	return errors.Is(p.conn.LastError(), nats.ErrPermissionViolation)
}

// lastError is what the server said of the connection, for the end of a sentence.
func (p *patient) lastError() string {
	if err := p.conn.LastError(); err != nil {
		return " (the server said: " + err.Error() + ")"
	}
	return ""
}

// older compares two versions such as 2.12.0; what it cannot read is not older.
func older(v, than string) bool {
	var a, b [3]int
	if n, _ := fmt.Sscanf(v, "%d.%d.%d", &a[0], &a[1], &a[2]); n < 2 {
		return false
	}
	_, _ = fmt.Sscanf(than, "%d.%d.%d", &b[0], &b[1], &b[2])
	for i := range a {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}

// bytes writes a size for people.
func bytes(n uint64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d B", n)
}
