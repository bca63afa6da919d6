package producer

import (
	"encoding/json"

	"github.com/natscope/natscope/subjects"
)

// mark says where the data of one record begin in the memory of its chunk, and where its line ends.
type mark struct{ data, end uint32 }

// chunk is the body of a frame in the making. Enqueuing appends to the last
// chunk of a queue and sending takes the first one, so that records are copied
// once and the queue's lock is never held for long.
type chunk struct {
	body  []byte
	marks []mark
	// head is the first record that is neither taken nor dropped.
	head int
	// lost is how many records were lost before the first one.
	lost uint64
	// topic is the topic of every record on the event plane, where it is part of the subject; empty elsewhere.
	topic string
	// exempt chunks are part of a snapshot or were taken once: the queue's bounds do not count them.
	exempt bool
	// shared chunks have lent a part of their memory to a frame, so that it cannot be used again.
	shared bool
}

// len is how many records wait.
func (c *chunk) len() int { return len(c.marks) - c.head }

// start is where the first waiting record begins.
func (c *chunk) start() uint32 {
	if c.head == 0 {
		return 0
	}
	return c.marks[c.head-1].end
}

// size is how many bytes wait.
func (c *chunk) size() int { return len(c.body) - int(c.start()) }

// prefix is how many records fit into limit bytes, at least 1.
func (c *chunk) prefix(limit int) int {
	n, start := 1, int(c.start())
	for n < c.len() && int(c.marks[c.head+n].end)-start <= limit {
		n++
	}
	return n
}

// lend moves the first n records to f.
func (c *chunk) lend(f *frame, n int) {
	start, end := c.start(), c.marks[c.head+n-1].end
	f.body = c.body[start:end:end]
	if start == 0 && n == len(c.marks) {
		f.marks = c.marks
	} else {
		f.marks = make([]mark, n)
		for i, m := range c.marks[c.head : c.head+n] {
			f.marks[i] = mark{m.data - start, m.end - start}
		}
	}
	c.head += n
}

// frame is what one message carries.
type frame struct {
	// seq numbers the first record; dropped is how many were lost just before it.
	seq, dropped uint64
	body         []byte
	marks        []mark
	topic        string
	// whole is the chunk whose memory is free again when the frame is settled, or nil.
	whole *chunk
}

// len is how many records the frame has.
func (f *frame) len() int { return len(f.marks) }

// cut shortens the only record of a frame that is larger than limit bytes.
func (f *frame) cut(plane subjects.Plane, limit int) {
	m := f.marks[0]
	data := f.body[m.data : len(f.body)-len("}\n")]
	var r subjects.Record
	// The line is of appendLine's making; the topic is all that is wanted of it.
	_ = json.Unmarshal(f.body, &r)
	data = shrink(plane, r.Topic, data, max(limit-int(m.data)-len("}\n"), 256))
	body := append(f.body[:m.data:m.data], data...)
	f.body = append(body, '}', '\n')
	f.marks = []mark{{m.data, uint32(len(f.body))}}
}
