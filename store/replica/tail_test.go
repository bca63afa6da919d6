package replica

import (
	"errors"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// delivered is a message as a consumer delivers it.
type delivered struct {
	jetstream.Msg
	seq uint64
}

func (d delivered) Metadata() (*jetstream.MsgMetadata, error) {
	return &jetstream.MsgMetadata{Sequence: jetstream.SequencePair{Consumer: d.seq, Stream: d.seq}}, nil
}
func (d delivered) Subject() string      { return "s" }
func (d delivered) Headers() nats.Header { return nil }
func (d delivered) Data() []byte         { return nil }

// TestTailLeavesNoHole: when a tail fails while messages come, such as after a
// process stood still, what its reader gets ends somewhere but has no hole.
func TestTailLeavesNoHole(t *testing.T) {
	for range 200 {
		tail := &tail{msgs: make(chan entry, tailQueue), failed: make(chan struct{}), done: make(chan struct{}), next: 1}
		delivering := make(chan struct{})
		go func() {
			defer close(delivering)
			for seq := uint64(1); seq <= 100; seq++ {
				if seq == 50 {
					tail.fail(errors.New("no heartbeat"))
				}
				tail.deliver(delivered{seq: seq})
			}
		}()
		<-delivering
		close(tail.msgs)
		last := uint64(0)
		for m := range tail.msgs {
			if m.seq != last+1 {
				t.Fatalf("message %d comes after %d", m.seq, last)
			}
			last = m.seq
		}
		if last < 49 {
			t.Fatalf("only %d messages came before the trouble", last)
		}
	}
}
