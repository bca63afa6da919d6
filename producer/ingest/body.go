package ingest

import (
	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
)

// maxBodies bounds the bodies of one client that are under way at once.
const maxBodies = 1024

type bodyKey struct {
	request   network.RequestID
	direction subjects.Direction
}

// openBody is a body on its way.
type openBody struct {
	body *producer.Body
	// next is the offset that the next piece must have.
	next int64
	// broken says that a piece is missing; what comes after it is of no use.
	broken bool
}

// Bodies joins the pieces of the bodies that one client sends. The zero value
// holds none. At most 1024 are under way at once: a client with more has forgotten
// to end them, and any one of them ends as aborted. It is not safe for concurrent use.
type Bodies struct {
	open map[bodyKey]*openBody
}

// Take passes one piece of a body on to p. A body is a prefix: when a piece is
// missing, because the client or a former session lost it, the rest is ignored
// and the body ends as truncated.
func (x *Bodies) Take(p *producer.Producer, part *BodyPart, data []byte) {
	k := bodyKey{part.Request, part.Direction}
	b := x.open[k]
	if b == nil {
		if x.open == nil {
			x.open = make(map[bodyKey]*openBody)
		}
		if len(x.open) >= maxBodies {
			x.drop()
		}
		b = &openBody{body: p.Body(part.Request, part.Direction)}
		x.open[k] = b
	}
	if part.Offset != b.next {
		b.broken = true
	}
	if !b.broken && len(data) > 0 {
		b.body.Write(data)
		b.next += int64(len(data))
	}
	if part.End == "" {
		return
	}
	reason := part.End
	if b.broken && reason == subjects.BodyComplete {
		reason = subjects.BodyTruncated
	}
	b.body.End(reason, part.Total)
	delete(x.open, k)
}

// drop ends any one body to make room.
func (x *Bodies) drop() {
	for k, b := range x.open {
		b.body.End(subjects.BodyAborted, b.next)
		delete(x.open, k)
		return
	}
}
