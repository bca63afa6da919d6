package network

import (
	"encoding/json"
	"fmt"
)

// Ending says how a request ended.
type Ending string

// The endings of a request; each request has exactly one.
const (
	// Running means that the request has not ended.
	Running Ending = ""
	// Finished means that the response was read to its end.
	Finished Ending = "finished"
	// FinishedTruncated means that headers came but not the whole body, or not all of it was captured.
	FinishedTruncated Ending = "truncated"
	// Failed means that no headers came.
	Failed Ending = "failed"
	// Canceled means that the application gave up before headers came.
	Canceled Ending = "canceled"
	// SourceGone means that the source died or left first.
	SourceGone Ending = "gone"
)

// The most messages of one request, and bytes of their data, that are kept; older ones are counted.
const (
	MaxMessages     = 500
	MaxMessageBytes = 1 << 20
)

// maxBytes bounds every count of bytes, so that no sum overflows or leaves what JavaScript holds exactly.
const maxBytes = 1<<53 - 1

// Timed is a value with its time on the source's clock, in milliseconds.
type Timed[T any] struct {
	T     float64 `json:"t"`
	Value T       `json:"value"`
}

// Request is the fold of one request.
type Request struct {
	// Generation is the generation that made the request, as the caller of Apply named it.
	Generation string `json:"generation"`
	// Order is the request's place among those of its source, from 1: that of its
	// start, or a later one for a running request that was kept in spite of its age.
	Order uint64 `json:"order"`
	// Root is the first request of the chain of redirects that led here; it is
	// empty for a request that no redirect led to.
	Root RequestID `json:"root,omitempty"`
	// Origin is the wall-clock time at which the generation's clock read zero, in
	// milliseconds since the Unix epoch, as the caller of Apply set it; it makes
	// the times of a request comparable after its generation is gone.
	Origin float64      `json:"origin,omitempty"`
	Start  Timed[Start] `json:"start"`
	// BodyEnd, Response and End are nil until they come.
	BodyEnd  *Timed[BodyEnd]  `json:"bodyEnd,omitempty"`
	Response *Timed[Response] `json:"response,omitempty"`
	// Received sums the dataReceived records, LastData is the time of the last one.
	Received DataReceived `json:"received"`
	LastData float64      `json:"lastData,omitempty"`
	// Messages are the newest messages, MessagesLost counts older ones.
	Messages     []Timed[Message] `json:"messages,omitempty"`
	MessagesLost uint64           `json:"messagesLost,omitempty"`
	// Ending says how the request ended, EndedAt when; End or Error has the details.
	Ending  Ending  `json:"ending,omitempty"`
	EndedAt float64 `json:"endedAt,omitempty"`
	End     *End    `json:"end,omitempty"`
	Error   *Error  `json:"error,omitempty"`

	// fixed and messages are the bytes of everything but messages, and of them.
	fixed, messages int
}

// ID returns the request's id in its generation.
func (r *Request) ID() RequestID { return r.Start.Value.ID }

// key names a request in a source: ids are unique in one generation only.
type key struct {
	generation string
	id         RequestID
}

// State is the fold of the net plane of one source over all its generations.
type State struct {
	// Requests holds the kept requests by their Order, which has no holes.
	Requests []*Request
	// Evicted counts the places that were given up to keep the bounds.
	Evicted uint64
	// Started counts the places that were given: one for each start, and one more
	// whenever a running request is kept in spite of its age.
	Started uint64

	byKey map[key]*Request
	// newest holds the last request of each chain of redirects, by its first.
	newest map[key]*Request
	// bytes and running sum over Requests.
	bytes   int64
	running int
}

// Change is what one record did to a request.
type Change struct {
	Request *Request
	// Topic is the record's topic, or TopicError for requests that Gone ended.
	Topic string
	// T is the record's time on the source's clock, in milliseconds.
	T float64
	// Data and Message are the payloads of dataReceived and message records.
	Data    *DataReceived
	Message *Message
	// Evicted holds the requests that were dropped to make room.
	Evicted []*Request
	// Moved holds the running requests that got a new Order to make room.
	Moved []*Request
}

// Get returns a kept request, or nil.
func (s *State) Get(generation string, id RequestID) *Request {
	return s.byKey[key{generation, id}]
}

// Restore appends a request to a state that is being rebuilt from storage, by Order.
func (s *State) Restore(r *Request) {
	if s.byKey == nil {
		s.byKey = make(map[key]*Request)
	}
	s.Requests = append(s.Requests, r)
	s.byKey[key{r.Generation, r.ID()}] = r
	if r.Root != "" {
		s.extend(r)
	}
	if r.Ending == Running {
		s.running++
	}
	r.messages = 0
	for i := range r.Messages {
		r.messages += r.Messages[i].Value.size()
	}
	r.fixed = r.weigh()
	s.bytes += r.bytes()
}

// Apply folds one net record. keep bounds what is kept. The change is nil when
// the record changes nothing: an unknown topic, or a record of a request that is
// unknown, evicted or has ended. An error wraps ErrPayload and leaves the state
// as it was.
func (s *State) Apply(generation string, t float64, topic string, data json.RawMessage, keep Keep) (*Change, error) {
	c, err := s.fold(generation, t, topic, data)
	if c != nil {
		s.makeRoom(c, keep)
	}
	return c, err
}

func (s *State) fold(generation string, t float64, topic string, data json.RawMessage) (*Change, error) {
	switch topic {
	case TopicStart:
		return s.start(generation, t, data)
	case TopicRequestBodyEnd:
		return apply(s, generation, t, topic, data, func(r *Request, v BodyEnd) {
			v.Bytes, v.Captured = clampBytes(v.Bytes), clampBytes(v.Captured)
			r.BodyEnd = &Timed[BodyEnd]{t, v}
		})
	case TopicResponse:
		return apply(s, generation, t, topic, data, func(r *Request, v Response) {
			v.Timing.clamp()
			r.Response = &Timed[Response]{t, v}
		})
	case TopicDataReceived:
		return apply(s, generation, t, topic, data, func(r *Request, v DataReceived) {
			r.Received.Bytes = clampBytes(r.Received.Bytes + clampBytes(v.Bytes))
			r.Received.Wire = clampBytes(r.Received.Wire + clampBytes(v.Wire))
			r.LastData = t
		})
	case TopicMessage:
		return apply(s, generation, t, topic, data, func(r *Request, v Message) {
			v.Bytes = clampBytes(v.Bytes)
			r.addMessage(t, v)
		})
	case TopicEnd:
		return apply(s, generation, t, topic, data, func(r *Request, v End) { r.end(t, v) })
	case TopicError:
		return apply(s, generation, t, topic, data, func(r *Request, v Error) { r.fail(t, v) })
	}
	return nil, nil
}

// Gone ends every running request of a generation, because its source died or
// left. t is the time on that source's clock.
func (s *State) Gone(generation string, t float64, reason string) []*Change {
	var out []*Change
	for _, r := range s.Requests {
		if r.Generation != generation || r.Ending != Running {
			continue
		}
		s.weighed(r, func() { r.Ending, r.EndedAt, r.Error = SourceGone, t, &Error{ID: r.ID(), Text: reason} })
		out = append(out, &Change{Request: r, Topic: TopicError, T: t})
	}
	return out
}

func (s *State) start(generation string, t float64, data json.RawMessage) (*Change, error) {
	var v Start
	if err := decode(TopicStart, data, &v); err != nil {
		return nil, err
	}
	switch {
	case !validID(v.ID):
		return nil, fmt.Errorf("%w: start: id %.80q is not a token", ErrPayload, v.ID)
	case v.URL == "":
		return nil, fmt.Errorf("%w: start: url is empty", ErrPayload)
	}
	if s.Get(generation, v.ID) != nil {
		return nil, nil
	}
	if v.Method == "" {
		v.Method = "GET"
	}
	if v.Direction != Incoming {
		v.Direction = Outgoing
	}
	v.BodyBytes = min(max(v.BodyBytes, -1), maxBytes)
	s.Started++
	r := &Request{Generation: generation, Order: s.Started, Start: Timed[Start]{t, v}, Root: s.rootOf(generation, v)}
	s.Restore(r)
	return &Change{Request: r, Topic: TopicStart, T: t}, nil
}

// apply decodes a payload that names its request and folds it, if that request is running.
func apply[T interface {
	BodyEnd | Response | DataReceived | Message | End | Error
}](s *State, generation string, t float64, topic string, data json.RawMessage, f func(*Request, T)) (*Change, error) {
	var v T
	if err := decode(topic, data, &v); err != nil {
		return nil, err
	}
	id := payloadID(v)
	if !validID(id) {
		return nil, fmt.Errorf("%w: %s: id %.80q is not a token", ErrPayload, topic, id)
	}
	r := s.Get(generation, id)
	if r == nil || r.Ending != Running {
		return nil, nil
	}
	s.weighed(r, func() { f(r, v) })
	c := &Change{Request: r, Topic: topic, T: t}
	switch v := any(v).(type) {
	case DataReceived:
		v.Bytes, v.Wire = clampBytes(v.Bytes), clampBytes(v.Wire)
		c.Data = &v
	case Message:
		v.clamp()
		c.Message = &v
	}
	return c, nil
}

func payloadID(v any) RequestID {
	switch v := v.(type) {
	case BodyEnd:
		return v.ID
	case Response:
		return v.ID
	case DataReceived:
		return v.ID
	case Message:
		return v.ID
	case End:
		return v.ID
	case Error:
		return v.ID
	}
	return ""
}

func (r *Request) addMessage(t float64, v Message) {
	v.clamp()
	r.Messages = append(r.Messages, Timed[Message]{t, v})
	r.messages += v.size()
	from := 0
	for n := len(r.Messages); n-from > MaxMessages || r.messages > MaxMessageBytes && n-from > 1; from++ {
		r.messages -= r.Messages[from].Value.size()
	}
	clear(r.Messages[:from])
	r.Messages = r.Messages[from:]
	r.MessagesLost += uint64(from)
}

func (m *Message) clamp() { m.Bytes, m.Retry = clampBytes(m.Bytes), clampBytes(m.Retry) }

func (m *Message) size() int { return len(m.Data) + len(m.Event) + len(m.EventID) }

// clampBytes keeps a count of bytes between zero and maxBytes.
func clampBytes(n int64) int64 { return min(max(n, 0), maxBytes) }

func (r *Request) end(t float64, v End) {
	v.Bytes, v.Wire, v.Captured = clampBytes(v.Bytes), clampBytes(v.Wire), clampBytes(v.Captured)
	r.Ending, r.EndedAt, r.End = Finished, t, &v
	if v.Truncated || v.Error != "" || v.Canceled {
		r.Ending = FinishedTruncated
	}
}

func (r *Request) fail(t float64, v Error) {
	r.Ending, r.EndedAt, r.Error = Failed, t, &v
	if v.Canceled {
		r.Ending = Canceled
	}
}
