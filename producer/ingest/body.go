package ingest

import (
	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
)

// maxBodies bounds the bodies of one page that are under way at once.
const maxBodies = 1024

type bodyKey struct {
	request   network.RequestID
	direction subjects.Direction
}

// pageBody is a body on its way.
type pageBody struct {
	body *producer.Body
	// next is the offset that the next piece must have.
	next int64
	// broken says that a piece is missing; what comes after it is of no use.
	broken bool
}

// applyBody passes one piece of a body on. A body is a prefix: when a piece is
// missing, because the page or a former session lost it, the rest is ignored
// and the body ends as truncated. It is called with mu held.
func (x *session) applyBody(p *BodyPart, data []byte) {
	k := bodyKey{p.Request, p.Direction}
	b := x.bodies[k]
	if b == nil {
		if len(x.bodies) >= maxBodies {
			x.dropBody()
		}
		b = &pageBody{body: x.prod.Body(p.Request, p.Direction)}
		x.bodies[k] = b
	}
	if p.Offset != b.next {
		b.broken = true
	}
	if !b.broken && len(data) > 0 {
		b.body.Write(data)
		b.next += int64(len(data))
	}
	if p.End == "" {
		return
	}
	reason := p.End
	if b.broken && reason == subjects.BodyComplete {
		reason = subjects.BodyTruncated
	}
	b.body.End(reason, p.Total)
	delete(x.bodies, k)
}

// dropBody ends any one body to make room: a page that has a thousand under way has forgotten to end them.
func (x *session) dropBody() {
	for k, b := range x.bodies {
		b.body.End(subjects.BodyAborted, b.next)
		delete(x.bodies, k)
		return
	}
}
