package subjects

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// TestRecordStreamsLoseNothing checks the options that would be ways to lose data or to get around permissions.
func TestRecordStreamsLoseNothing(t *testing.T) {
	for _, s := range []Storage{{}, {Memory: true, Replicas: 3, RecordBytes: 1 << 20, RecordAge: time.Minute, BodyBytes: 1 << 20, BodyAge: time.Minute, AuditAge: time.Minute}} {
		for _, c := range []jetstream.StreamConfig{RecordStream("dev", s), BodyStream("dev", s), AuditStream("dev", s)} {
			switch {
			case c.AllowRollup || c.AllowAtomicPublish || c.AllowMsgTTL || c.NoAck || c.Sealed || c.Mirror != nil || len(c.Sources) > 0:
				t.Errorf("%s allows what record streams must not: %+v", c.Name, c)
			case c.Discard != jetstream.DiscardOld || c.Retention != jetstream.LimitsPolicy || !c.DenyDelete || !c.AllowDirect:
				t.Errorf("%s is not an append-only stream that discards the oldest: %+v", c.Name, c)
			case c.MaxAge <= 0 || c.MaxBytes <= 0 || c.MaxMsgSize != 1<<20:
				t.Errorf("%s has no limit: %+v", c.Name, c)
			case c.Replicas != max(1, s.Replicas):
				t.Errorf("%s has %d replicas", c.Name, c.Replicas)
			case (c.Storage == jetstream.MemoryStorage) != s.Memory:
				t.Errorf("%s is stored as %s", c.Name, c.Storage)
			}
		}
	}
}

func TestStreamNames(t *testing.T) {
	for want, c := range map[string]jetstream.StreamConfig{
		"NATSCOPE_REC_dev natscope.dev.rec.>":              RecordStream("dev", Storage{}),
		"NATSCOPE_BODY_dev natscope.dev.body.>":            BodyStream("dev", Storage{}),
		"NATSCOPE_AUDIT_dev natscope.dev.audit.>":          AuditStream("dev", Storage{}),
		"KV_NATSCOPE_STATE_dev $KV.NATSCOPE_STATE_dev.*.>": StateStream("dev", Storage{}),
	} {
		if got := c.Name + " " + c.Subjects[0]; got != want || len(c.Subjects) != 1 {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	s := StateStream("dev", Storage{})
	if s.MaxMsgsPerSubject != 1 || !s.AllowAtomicPublish || s.Discard != jetstream.DiscardNew {
		t.Errorf("the state stream is no bucket with atomic batches: %+v", s)
	}
}
