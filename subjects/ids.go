package subjects

// Space names a namespace of sources: one set of streams, one bucket and one
// set of permissions. It is a token.
type Space string

// SourceID names one inspected program. It survives reconnects, page reloads
// and restarts of the same instance, and is unique in its space. It is a token;
// the name that people gave the program is in its descriptor.
type SourceID string

// Generation names one admission of a source. It rotates at every start, page
// load and re-admission. It is a ULID in lower case, so comparing two
// generations of one source as strings orders them in time.
type Generation string

// GatewayID names one running gateway process. It is a token.
type GatewayID string

// SessionID names one DevTools connection at one gateway. It is a token, and never reused by that gateway.
type SessionID string

// Seq numbers the records of one plane of one generation, from 1 without holes.
type Seq uint64

// StreamSeq is a sequence number that JetStream gave a message of one stream.
type StreamSeq uint64

// DefaultSpace is the space that every command and option uses when none is named.
const DefaultSpace Space = "dev"

// NewSourceID makes the id of a source from its service and instance names, which may be any text.
func NewSourceID(service, instance string) SourceID {
	if instance == "" {
		return SourceID(Token(service))
	}
	return SourceID(Token(service + "-" + instance))
}
