package cdpgw

import (
	"context"
	"errors"
	"time"

	"github.com/natscope/natscope/store/bodyview"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/store/replica"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
)

// The waits of a streamed body.
const (
	// streamAnswer is how long the answer waits for bytes that were announced.
	streamAnswer = 300 * time.Millisecond
	// streamRest is how long the rest of a body may come after its request ended.
	streamRest = 5 * time.Second
	// eventSilence is how long the bytes of an event may come after the event itself.
	eventSilence = 2 * time.Second
)

// bodyStream is a response that one connection follows byte by byte. Two
// sources tell of it: the request's records say how many bytes came, the body
// stream brings them. announced keeps the sum of what the client was told, so
// that no byte is counted twice. session.mu guards it.
type bodyStream struct {
	id RequestID
	// request is the request; seconds of its times need only what never changes.
	request *network.Request
	// announced is how many bytes the client was told of, received how many came with data.
	announced, received int64
	// want is how many bytes were announced when the client asked; ended says that all of them are there.
	want     int64
	ended    bool
	answered bool
	buffered []byte
	// encodings are those of the body; encoded is what came of one that has any,
	// decoded how many bytes of it went out readable. The stream's own goroutine uses them.
	encodings []string
	encoded   []byte
	decoded   int
	// events are those of an event stream of which no byte has come.
	events *withheldEvents
	// finish is the end of the request, held back until its data are out.
	finish [][]byte
	last   float64
	stop   context.CancelFunc
}

type streamResult struct {
	BufferedData []byte `json:"bufferedData"`
}

// networkStreamResourceContent answers with everything that came so far; from
// then on the data of the response come with the events. For a request that has
// ended, the answer is the whole body.
func (s *session) networkStreamResourceContent(p requestParams) (any, error) {
	src, r, err := s.request(p.RequestID)
	if err != nil {
		return nil, err
	}
	if s.network.streams[r] != nil {
		return nil, failf("This response is streamed already")
	}
	if r.Response == nil && r.Ending != network.Running {
		return nil, failf("No data found for resource with given identifier: no response came.")
	}
	if emptyResponse(r) {
		return streamResult{BufferedData: []byte{}}, nil
	}
	if len(s.slots) == cap(s.slots) {
		return nil, errBusy()
	}
	st := &bodyStream{id: p.RequestID, request: r, announced: r.Received.Bytes, want: r.Received.Bytes, ended: r.Ending != network.Running, buffered: []byte{}, encodings: encodingsOf(r), last: r.Origin + max(r.LastData, r.Start.T)}
	st.events = eventsOf(r)
	var follow context.Context
	if st.ended {
		follow, st.stop = context.WithTimeout(s.conn.ctx, s.gateway.limits.Query)
	} else {
		follow, st.stop = context.WithCancel(s.conn.ctx)
		if st.events != nil && len(st.events.waiting) > 0 {
			s.awaitBytes(st)
		}
		// From here on, before any other change, the request's changes go through the stream.
		if s.network.streams == nil {
			s.network.streams = make(map[*network.Request]*bodyStream)
		}
		s.network.streams[r] = st
	}
	subject := s.body(src, r, subjects.ResponseBody)
	return later(func(ctx context.Context) (any, error) { return s.stream(ctx, follow, subject, st) }), nil
}

// stream follows a body until its end, the end of the domain or that of the connection.
func (s *session) stream(ctx, follow context.Context, subject subjects.BodySubject, st *bodyStream) (any, error) {
	defer s.finishStream(st)
	if !st.ended {
		answer := time.AfterFunc(streamAnswer, func() { s.answerStream(ctx, st) })
		defer answer.Stop()
	}
	err := begun(follow, !st.ended, func() error {
		return s.gateway.state.FollowBody(follow, subject, func(part replica.BodyPart) error {
			s.streamPart(ctx, st, part)
			return nil
		})
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if !st.answered {
		if err != nil && !errors.Is(err, replica.ErrNoBody) && len(st.buffered) == 0 && follow.Err() == nil {
			return nil, err
		}
		s.sendStreamAnswer(ctx, st)
	}
	if st.ended || s.network.streams[st.request] == st {
		s.tellEvents(st)
	}
	return answered{}, nil
}

// streamPart takes one part: into the answer while that is not out, as an event after it.
func (s *session) streamPart(ctx context.Context, st *bodyStream, part replica.BodyPart) {
	end := part.Offset + int64(len(part.Data))
	if len(st.encodings) > 0 {
		part.Data = st.decode(part, s.gateway.limits.ResponseBodyBytes)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st.received = end
	if end > 0 && st.events != nil {
		if st.events.telling {
			// The events in them are told already, and would be there twice.
			part.Data = nil
		} else {
			st.events.stop()
			st.events = nil
		}
	}
	if !st.answered {
		st.buffered = append(st.buffered, part.Data...)
		st.announced = max(st.announced, st.received)
		if !st.ended && st.received >= st.want {
			s.sendStreamAnswer(ctx, st)
		}
		return
	}
	if len(part.Data) == 0 || s.network.streams[st.request] != st {
		return
	}
	n := st.announce(st.received)
	m := encodeEvent("Network.dataReceived", dataReceivedEvent{RequestID: st.id, Timestamp: st.last / 1000, DataLength: n, EncodedDataLength: n, Data: part.Data})
	s.following = true
	s.send(m)
	s.following = false
}

// maxLiveDecode is how many bytes of an encoded body are decoded as they come; what
// follows is decoded at its end.
const maxLiveDecode = 1 << 20

// decode takes a part of an encoded body and returns what can be read now that
// could not be read before. Every time it begins anew, which is cheap for what
// is streamed for people to see, events above all.
func (st *bodyStream) decode(part replica.BodyPart, limit int64) []byte {
	st.encoded = append(st.encoded, part.Data[:min(int64(len(part.Data)), max(limit-int64(len(st.encoded)), 0))]...)
	if len(st.encoded) > maxLiveDecode && part.End == "" {
		return nil
	}
	v, err := bodyview.Decode(st.encodings, st.encoded, part.End != subjects.BodyComplete, 2*limit)
	if err != nil {
		if part.End == "" || st.decoded > 0 {
			return nil
		}
		// It is not what its headers say.
		v.Data = st.encoded
	}
	fresh := v.Data[min(st.decoded, len(v.Data)):]
	st.decoded = max(st.decoded, len(v.Data))
	return fresh
}

// announce returns how many of the bytes up to end the client was not told of yet.
func (st *bodyStream) announce(end int64) int64 {
	n := max(end-st.announced, 0)
	st.announced += n
	return n
}

func (s *session) answerStream(ctx context.Context, st *bodyStream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !st.answered && ctx.Err() == nil {
		s.sendStreamAnswer(ctx, st)
	}
}

// sendStreamAnswer answers; session.mu is held.
func (s *session) sendStreamAnswer(ctx context.Context, st *bodyStream) {
	st.answered = true
	s.answerSlow(ctx, streamResult{BufferedData: st.buffered})
	st.buffered = nil
}

// streamed handles a change of a streamed request; false leaves it to the
// ordinary events. It runs inside changed.
func (s *session) streamed(st *bodyStream, c fold.Change, events [][]byte) bool {
	st.last = st.request.Origin + c.Request.T
	switch c.Request.Topic {
	case network.TopicDataReceived:
		// Bytes that the stream brought already were counted with their data.
		if n := st.announce(c.Request.Request.Received.Bytes); n > 0 {
			s.event("Network.dataReceived", dataReceivedEvent{RequestID: st.id, Timestamp: st.last / 1000, DataLength: n, EncodedDataLength: encodedBytes(n, c.Request.Data.Wire)})
		}
		return true
	case network.TopicMessage:
		s.addEvent(st, c.Request.T, *c.Request.Message)
		return true
	case network.TopicEnd, network.TopicError:
		st.finish = events
		time.AfterFunc(streamRest, st.stop)
		return true
	}
	return false
}

// finishStream sends the end of the request, if it came, and hands later changes back to the ordinary events.
func (s *session) finishStream(st *bodyStream) {
	st.stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	if st.events != nil {
		st.events.stop()
	}
	if s.network.streams[st.request] != st {
		// The domain was disabled meanwhile.
		return
	}
	delete(s.network.streams, st.request)
	for _, m := range st.finish {
		s.send(m)
	}
	st.finish = nil
}
