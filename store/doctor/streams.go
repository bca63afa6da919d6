package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/natscope/natscope/subjects"
)

// maxSkew is how far this machine's clock may be from the server's before times in the panels mislead.
const maxSkew = time.Second

// streams looks at the streams of the space and returns the record stream's
// description, nil if it cannot be read.
func (p *patient) streams(ctx context.Context) *jetstream.StreamInfo {
	s := subjects.Storage{}
	rec := p.stream(ctx, subjects.RecordStream(p.space, s), true)
	p.stream(ctx, subjects.BodyStream(p.space, s), false)
	p.stream(ctx, subjects.AuditStream(p.space, s), false)
	p.stream(ctx, subjects.StateStream(p.space, s), false)
	return rec
}

// stream compares a stream with what it should be.
func (p *patient) stream(ctx context.Context, want jetstream.StreamConfig, clock bool) *jetstream.StreamInfo {
	check := "stream " + want.Name
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	asked := time.Now()
	info, err := p.info(ctx, want.Name)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		p.fail(check, "it does not exist", fmt.Sprintf("start a store, which creates it: natscope store --space %s", p.space))
		return nil
	case err != nil:
		p.fail(check, "it cannot be read: "+err.Error()+p.lastError(), "allow this user to publish on $JS.API.STREAM.INFO."+want.Name)
		return nil
	}
	if clock {
		p.clock(info.TimeStamp, asked)
	}
	before := len(p.found)
	if wrong := differences(info.Config, want); len(wrong) > 0 {
		p.fail(check, strings.Join(wrong, "; "), "let natscope store create or update it, or set these with nats stream edit "+want.Name)
	}
	p.cluster(check, info)
	if c := info.Config; c.Discard == jetstream.DiscardNew && c.MaxBytes > 0 && info.State.Bytes > uint64(c.MaxBytes)*9/10 {
		p.fail(check, fmt.Sprintf("%s of %s are used, and it refuses more", bytes(info.State.Bytes), bytes(uint64(c.MaxBytes))), "raise its max_bytes, or lower the limits of sources")
	}
	if len(p.found) == before {
		p.ok(check, "%d messages, %s of %s, %d replicas, %s storage", info.State.Msgs, bytes(info.State.Bytes), limit(info.Config.MaxBytes), info.Config.Replicas, info.Config.Storage)
	}
	return info
}

// info describes a stream.
func (p *patient) info(ctx context.Context, name string) (*jetstream.StreamInfo, error) {
	s, err := p.js.Stream(ctx, name)
	if err != nil {
		return nil, err
	}
	return s.CachedInfo(), nil
}

// differences lists the settings of a stream that natscope depends on and that are not as they should be.
func differences(got, want jetstream.StreamConfig) []string {
	var out []string
	wrong := func(bad bool, format string, v ...any) {
		if bad {
			out = append(out, fmt.Sprintf(format, v...))
		}
	}
	wrong(!slices.Equal(got.Subjects, want.Subjects), "its subjects are %q instead of %q", got.Subjects, want.Subjects)
	wrong(got.Retention != jetstream.LimitsPolicy, "its retention is %s instead of limits", got.Retention)
	wrong(got.Discard != want.Discard, "it discards %s instead of %s", got.Discard, want.Discard)
	wrong(!got.AllowDirect, "it does not allow direct gets")
	wrong(want.AllowAtomicPublish && !got.AllowAtomicPublish, "it does not allow atomic batches")
	wrong(!want.AllowRollup && got.AllowRollup, "it allows rollups, with which one source can wipe it")
	wrong(!want.AllowAtomicPublish && got.AllowAtomicPublish, "it allows atomic batches, which records must not use")
	wrong(got.AllowMsgSchedules, "it allows schedules, with which one source can publish as another")
	wrong(want.MaxMsgsPerSubject > 0 && got.MaxMsgsPerSubject != want.MaxMsgsPerSubject, "it keeps %d messages a subject instead of %d", got.MaxMsgsPerSubject, want.MaxMsgsPerSubject)
	wrong(got.MaxMsgSize > 0 && got.MaxMsgSize < want.MaxMsgSize, "it takes messages up to %d bytes instead of %d", got.MaxMsgSize, want.MaxMsgSize)
	wrong(got.Sealed, "it is sealed")
	return out
}

// cluster looks at the replicas of a stream.
func (p *patient) cluster(check string, info *jetstream.StreamInfo) {
	c := info.Cluster
	if c == nil || info.Config.Replicas < 2 {
		return
	}
	if c.Leader == "" {
		p.fail(check, "it has no leader, so nothing can be written", "wait for the election; if it stays, check that most servers of the cluster run")
	}
	for _, r := range c.Replicas {
		if r.Offline || !r.Current {
			p.warn(check, fmt.Sprintf("its replica on %s is offline or behind by %d operations", r.Name, r.Lag), "check that server; two failures at once would stop the stream")
		}
	}
}

// clock compares the server's clock with this machine's.
func (p *patient) clock(server, asked time.Time) {
	if server.IsZero() {
		return
	}
	middle := asked.Add(time.Since(asked) / 2)
	skew := server.Sub(middle)
	if skew.Abs() > maxSkew {
		p.warn("clock", fmt.Sprintf("this machine's clock differs from the server's by %s", skew.Round(time.Millisecond)), "synchronise both with NTP; otherwise times of different sources cannot be compared")
		return
	}
	p.ok("clock", "within %s of the server's", skew.Abs().Round(time.Millisecond)+time.Millisecond)
}

func limit(n int64) string {
	if n <= 0 {
		return "no limit"
	}
	return bytes(uint64(n))
}
