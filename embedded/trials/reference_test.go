package trials

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/store/replica"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/tree"
)

// journal reads the record stream from its start, without any of natscope's
// readers, and keeps all of it: what retention takes later is still here.
type journal struct {
	mu    sync.Mutex
	msgs  []jetstream.Msg
	last  uint64
	bytes uint64
	fault string
}

// keepJournal begins a journal that ends with the test. The stream is there and empty.
func keepJournal(t testing.TB, js jetstream.JetStream) *journal {
	t.Helper()
	c, err := js.OrderedConsumer(t.Context(), subjects.RecordStreamName(subjects.DefaultSpace), jetstream.OrderedConsumerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	j := &journal{}
	cc, err := c.Consume(j.take)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cc.Stop(); <-cc.Closed() })
	return j
}

func (j *journal) take(m jetstream.Msg) {
	j.mu.Lock()
	defer j.mu.Unlock()
	meta, err := m.Metadata()
	switch {
	case err != nil:
		j.fault = err.Error()
	case meta.Sequence.Stream != j.last+1:
		j.fault = fmt.Sprintf("the journal has %d, and then %d", j.last, meta.Sequence.Stream)
	}
	if err == nil {
		j.last = meta.Sequence.Stream
	}
	j.bytes += uint64(len(m.Data()))
	j.msgs = append(j.msgs, m)
}

// end is the sequence of the newest message, bytes the sum of all payloads.
func (j *journal) end() (last, bytes uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.last, j.bytes
}

// reference folds all of the journal.
func (j *journal) reference(t testing.TB, limits subjects.Limits) *fold.Space {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.fault != "" {
		t.Fatalf("the journal is not complete: %s", j.fault)
	}
	s := fold.New(subjects.DefaultSpace, limits)
	for i, m := range j.msgs {
		s.Apply(m.Subject(), subjects.StreamSeq(i+1), subjects.Header(m.Headers()), m.Data())
	}
	return s
}

// dump writes down everything that a fold of records holds, one fact a line.
// Presence is left out: it is no part of the fold.
func dump(s *fold.Space) []string {
	var out []string
	put := func(what string, values ...any) {
		var b strings.Builder
		b.WriteString(what)
		for _, v := range values {
			data, err := json.Marshal(v)
			if err != nil {
				data = []byte(err.Error())
			}
			b.WriteByte(' ')
			b.Write(data)
		}
		out = append(out, b.String())
	}
	for _, src := range s.Sources() {
		put("source", src.ID, src.Element, src.Generation, src.Covered, src.LastT, src.Late, src.Unknown, src.FaultCount)
		put("life", src.Life)
		put("planes", src.Planes)
		put("faults", src.Faults)
		put("tree", src.Tree.Profile, src.Tree.Revision, src.Tree.Registry, src.Tree.Truncated, src.Tree.Commit, src.Tree.Detached, src.Tree.Len())
		if src.Tree.Root != nil {
			src.Tree.Root.Walk(func(e *tree.Entry) bool {
				put("node", e.Depth(), e.Backend, e.Node, len(e.Children))
				return true
			})
		}
		put("requests", src.Net.Started, src.Net.Evicted)
		for _, q := range src.Net.Requests {
			put("request", q)
		}
		put("console", src.Console.Count, src.Console.Evicted)
		for _, e := range src.Console.Entries {
			put("entry", e)
		}
	}
	return out
}

func dumpOf(r *replica.Replica) (out []string) {
	r.View(func(s *fold.Space) { out = dump(s) })
	return out
}

// differ returns the first line in which two dumps differ, or nothing.
func differ(want, got []string) string {
	for i := range max(len(want), len(got)) {
		at := func(s []string) string {
			if i < len(s) {
				return tail(s[i], 1200)
			}
			return "nothing more"
		}
		if at(want) != at(got) {
			return fmt.Sprintf("line %d of %d (got %d):\nwant %s\ngot  %s", i+1, len(want), len(got), at(want), at(got))
		}
	}
	return ""
}
