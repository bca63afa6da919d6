package subjects

import (
	"errors"
	"fmt"
	"strings"

	"github.com/natscope/natscope/subjects/network"
)

// root is the first level of every subject.
const root = "natscope"

// MaxSubject is the longest subject that natscope publishes on, in bytes. A
// server closes a connection for good when a protocol line passes 4 KiB.
const MaxSubject = 1024

// ErrSubject says that a subject is not one of this contract, or not of the kind asked for.
var ErrSubject = errors.New("subjects: not a natscope subject")

// RecordSubject names one plane of one generation of a source, or, for
// PlaneEvent, one topic of it.
type RecordSubject struct {
	Space      Space
	Source     SourceID
	Generation Generation
	Plane      Plane
	// Topic holds the extra levels of an event subject, joined by dots. It is empty for every other plane.
	Topic string
}

// String returns the subject. The caller has checked the tokens.
func (s RecordSubject) String() string {
	base := root + "." + string(s.Space) + ".rec." + string(s.Source) + "." + string(s.Generation) + "." + string(s.Plane)
	if s.Topic == "" {
		return base
	}
	return base + "." + s.Topic
}

// ParseRecord parses a record subject. The error wraps ErrSubject or ErrToken.
func ParseRecord(subject string) (RecordSubject, error) {
	l, err := levels(subject, "rec", 6)
	if err != nil {
		return RecordSubject{}, err
	}
	s := RecordSubject{Space: Space(l[1]), Source: SourceID(l[3]), Generation: Generation(l[4]), Plane: Plane(l[5])}
	if len(l) > 6 {
		if s.Plane != PlaneEvent {
			return RecordSubject{}, fmt.Errorf("%w: plane %q takes no topic: %.200q", ErrSubject, s.Plane, subject)
		}
		s.Topic = strings.Join(l[6:], ".")
	}
	return s, nil
}

// EventTopic turns an application's topic into the levels that follow the
// event plane: its dot-separated parts, each mapped by Token. The result is
// bounded so that the whole subject stays below MaxSubject.
func EventTopic(topic string) string {
	parts := strings.Split(topic, ".")
	if len(parts) > 8 {
		return Token(topic)
	}
	for i, p := range parts {
		parts[i] = Token(p)
	}
	return strings.Join(parts, ".")
}

// Direction says which body of a request a chunk belongs to.
type Direction string

// The directions of a body.
const (
	// RequestBody is the body that was sent with the request.
	RequestBody Direction = "req"
	// ResponseBody is the body that came back.
	ResponseBody Direction = "res"
)

// BodySubject names one body of one request.
type BodySubject struct {
	Space      Space
	Source     SourceID
	Generation Generation
	Request    network.RequestID
	Direction  Direction
}

// String returns the subject. The caller has checked the tokens.
func (s BodySubject) String() string {
	return root + "." + string(s.Space) + ".body." + string(s.Source) + "." + string(s.Generation) + "." + string(s.Request) + "." + string(s.Direction)
}

// ParseBody parses a body subject. The error wraps ErrSubject or ErrToken.
func ParseBody(subject string) (BodySubject, error) {
	l, err := levels(subject, "body", 7)
	if err != nil {
		return BodySubject{}, err
	}
	s := BodySubject{Space: Space(l[1]), Source: SourceID(l[3]), Generation: Generation(l[4]), Request: network.RequestID(l[5]), Direction: Direction(l[6])}
	if len(l) != 7 || s.Direction != RequestBody && s.Direction != ResponseBody {
		return BodySubject{}, fmt.Errorf("%w: %.200q", ErrSubject, subject)
	}
	return s, nil
}

// RecordsOf is the wildcard over all records of a space.
func RecordsOf(space Space) string { return root + "." + string(space) + ".rec.>" }

// RecordsOfSource is the wildcard over all records of one source, of every generation.
func RecordsOfSource(space Space, source SourceID) string {
	return root + "." + string(space) + ".rec." + string(source) + ".>"
}

// BodiesOf is the wildcard over all body chunks of a space.
func BodiesOf(space Space) string { return root + "." + string(space) + ".body.>" }

// Heartbeat is the core subject on which a source says that it lives.
func Heartbeat(space Space, source SourceID) string {
	return root + "." + string(space) + ".hb." + string(source)
}

// HeartbeatsOf is the wildcard over all heartbeats of a space.
func HeartbeatsOf(space Space) string { return root + "." + string(space) + ".hb.*" }

// ParseHeartbeat parses a heartbeat subject. The error wraps ErrSubject or ErrToken.
func ParseHeartbeat(subject string) (Space, SourceID, error) {
	l, err := levels(subject, "hb", 4)
	if err != nil {
		return "", "", err
	}
	if len(l) != 4 {
		return "", "", fmt.Errorf("%w: %.200q", ErrSubject, subject)
	}
	return Space(l[1]), SourceID(l[3]), nil
}

// Command is the request subject of the live realm of one generation. No responder means that the source is gone.
func Command(space Space, source SourceID, generation Generation) string {
	return root + "." + string(space) + ".cmd." + string(source) + "." + string(generation)
}

// ClaimSubject is the request subject on which a source that is about to open
// asks whether another program has its id. No responder means that nobody has.
func ClaimSubject(space Space, source SourceID) string {
	return root + "." + string(space) + ".claim." + string(source)
}

// Control is the request subject on which the store speaks to one generation; the Control constants say about what.
func Control(space Space, source SourceID, generation Generation) string {
	return root + "." + string(space) + ".ctl." + string(source) + "." + string(generation)
}

// Event is the core subject of the events of one session.
func Event(space Space, source SourceID, gateway GatewayID, session SessionID) string {
	return root + "." + string(space) + ".evt." + string(source) + "." + string(gateway) + "." + string(session)
}

// Reply is the subject of the answer to one command of a session. It lies below
// the session's events, so that one subscription of the asker hears events and
// answers in the order in which the source sent them.
func Reply(space Space, source SourceID, gateway GatewayID, session SessionID, request string) string {
	return Event(space, source, gateway, session) + "." + request
}

// SessionsOf is the wildcard over the events of all sessions of one gateway, and
// the answers to their commands.
func SessionsOf(space Space, gateway GatewayID) string {
	return root + "." + string(space) + ".evt.*." + string(gateway) + ".>"
}

// ParseReply parses a subject that Reply made, and one that Event made, for
// which request is empty. The error wraps ErrSubject or ErrToken.
func ParseReply(subject string) (source SourceID, gateway GatewayID, session SessionID, request string, err error) {
	l, err := levels(subject, "evt", 6)
	if err != nil {
		return "", "", "", "", err
	}
	if len(l) > 7 {
		return "", "", "", "", fmt.Errorf("%w: %.200q", ErrSubject, subject)
	}
	if len(l) == 7 {
		request = l[6]
	}
	return SourceID(l[3]), GatewayID(l[4]), SessionID(l[5]), request, nil
}

// EventsOf is the wildcard over the events of all sessions of one gateway.
func EventsOf(space Space, gateway GatewayID) string {
	return root + "." + string(space) + ".evt.*." + string(gateway) + ".*"
}

// ParseEvent parses the subject of a session's events. The error wraps ErrSubject or ErrToken.
func ParseEvent(subject string) (SourceID, GatewayID, SessionID, error) {
	l, err := levels(subject, "evt", 6)
	if err != nil {
		return "", "", "", err
	}
	if len(l) != 6 {
		return "", "", "", fmt.Errorf("%w: %.200q", ErrSubject, subject)
	}
	return SourceID(l[3]), GatewayID(l[4]), SessionID(l[5]), nil
}

// Query is the subject prefix of the query service of a space, without a trailing dot.
func Query(space Space) string { return root + "." + string(space) + ".query" }

// QueryVerb is the request subject of one verb of the query service.
func QueryVerb(space Space, verb string) string { return Query(space) + "." + verb }

// ChangeVerb is the request subject of one verb of the query service that can
// change a program. It is no subject of Query, so that whoever may ask need not be able to change.
func ChangeVerb(space Space, verb string) string {
	return root + "." + string(space) + ".change." + verb
}

// Audit is the subject on which one gateway records commands that can change a program.
func Audit(space Space, gateway GatewayID) string {
	return root + "." + string(space) + ".audit." + string(gateway)
}

// AuditsOf is the wildcard over all audit records of a space.
func AuditsOf(space Space) string { return root + "." + string(space) + ".audit.>" }

// levels splits a subject of the wanted kind and checks that it has at least
// min levels, each a token.
func levels(subject, kind string, min int) ([]string, error) {
	if len(subject) > MaxSubject {
		return nil, fmt.Errorf("%w: %d bytes, the limit is %d", ErrSubject, len(subject), MaxSubject)
	}
	l := strings.Split(subject, ".")
	if len(l) < min || l[0] != root || l[2] != kind {
		return nil, fmt.Errorf("%w: wanted %s.<space>.%s.…: %.200q", ErrSubject, root, kind, subject)
	}
	for i, s := range l {
		if !IsToken(s) {
			return nil, fmt.Errorf("level %d of subject, %.80q: %w", i+1, s, ErrToken)
		}
	}
	return l, nil
}
