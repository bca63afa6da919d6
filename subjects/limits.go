package subjects

import "time"

// Limits bounds everything that can grow. Every field has a default; zero or
// less means the default, so nothing can be made unlimited by mistake. The
// values come from the systems that natscope replaces, where they had one.
type Limits struct {
	// RequestBodyBytes is how much of one request body is captured. 8 MiB.
	RequestBodyBytes int64
	// ResponseBodyBytes is how much of one response body is captured. 32 MiB.
	ResponseBodyBytes int64
	// BodyChunkBytes is the size of one body chunk on the wire. 48 KiB.
	BodyChunkBytes int
	// BodyJournalBytes bounds the bodies kept for a whole space. 256 MiB.
	BodyJournalBytes int64
	// Requests is how many requests, running and finished, are kept for one source. 2000.
	Requests int
	// RequestsBytes is how much of the addresses, headers, stacks and messages of
	// requests is kept for one source. 32 MiB.
	RequestsBytes int64
	// ConsoleEntries is how many console messages are kept for one source. 1000.
	ConsoleEntries int
	// Faults is how many faults are kept for one source; older ones are only counted. 50.
	Faults int
	// FrameRecords is the most records one frame may carry. 2048.
	FrameRecords int
	// FrameBytes is the most bytes of decoded records one frame may carry. 512 KiB.
	FrameBytes int
	// QueueRecords bounds the records of one plane that wait in a producer. 65536.
	QueueRecords int
	// QueueBytes bounds the bytes of one plane that wait in a producer. 16 MiB.
	QueueBytes int
	// BodyQueueBytes bounds the bytes of all bodies that wait in a producer. A
	// response that comes faster than NATS takes it is whole only if it fits. 64 MiB.
	BodyQueueBytes int
	// CordisNodes bounds a tree of the cordis profile. 2048.
	CordisNodes int
	// ComponentNodes bounds a tree of the component profile. 100000.
	ComponentNodes int
	// TreeDepth bounds the depth of any tree. 256.
	TreeDepth int
	// DisconnectedTrees is how many disconnected sources are kept in a space. 8.
	DisconnectedTrees int
	// Commits is how many tree commits are kept for one source. 200.
	Commits int
	// Handles is how many live objects one session may hold at one source. 10000.
	Handles int
	// Properties is how many properties one answer carries before it is paged. 2000.
	Properties int
	// ScriptBytes bounds one script that a source serves. 8 MiB.
	ScriptBytes int64
	// Heartbeat is the time between two heartbeats. 2 s. A source is dead after three are missed.
	Heartbeat time.Duration
	// ReconnectMin is the first delay before a reconnect. 250 ms.
	ReconnectMin time.Duration
	// ReconnectMax is the longest delay before a reconnect. 5 s.
	ReconnectMax time.Duration
	// Command is the deadline of one command to a source. 30 s.
	Command time.Duration
	// Query is the deadline of one query. 10 s.
	Query time.Duration
}

// DefaultLimits returns the limits that apply where nothing else is said.
func DefaultLimits() Limits {
	return Limits{
		RequestBodyBytes:  8 << 20,
		ResponseBodyBytes: 32 << 20,
		BodyChunkBytes:    48 << 10,
		BodyJournalBytes:  256 << 20,
		Requests:          2000,
		RequestsBytes:     32 << 20,
		ConsoleEntries:    1000,
		Faults:            50,
		FrameRecords:      2048,
		FrameBytes:        512 << 10,
		QueueRecords:      65536,
		QueueBytes:        16 << 20,
		BodyQueueBytes:    64 << 20,
		CordisNodes:       2048,
		ComponentNodes:    100000,
		TreeDepth:         256,
		DisconnectedTrees: 8,
		Commits:           200,
		Handles:           10000,
		Properties:        2000,
		ScriptBytes:       8 << 20,
		Heartbeat:         2 * time.Second,
		ReconnectMin:      250 * time.Millisecond,
		ReconnectMax:      5 * time.Second,
		Command:           30 * time.Second,
		Query:             10 * time.Second,
	}
}

// WithDefaults returns l with every field that is zero or less set to its default.
func (l Limits) WithDefaults() Limits {
	d := DefaultLimits()
	or(&l.RequestBodyBytes, d.RequestBodyBytes)
	or(&l.ResponseBodyBytes, d.ResponseBodyBytes)
	or(&l.BodyChunkBytes, d.BodyChunkBytes)
	or(&l.BodyJournalBytes, d.BodyJournalBytes)
	or(&l.Requests, d.Requests)
	or(&l.RequestsBytes, d.RequestsBytes)
	or(&l.ConsoleEntries, d.ConsoleEntries)
	or(&l.Faults, d.Faults)
	or(&l.FrameRecords, d.FrameRecords)
	or(&l.FrameBytes, d.FrameBytes)
	or(&l.QueueRecords, d.QueueRecords)
	or(&l.QueueBytes, d.QueueBytes)
	or(&l.BodyQueueBytes, d.BodyQueueBytes)
	or(&l.CordisNodes, d.CordisNodes)
	or(&l.ComponentNodes, d.ComponentNodes)
	or(&l.TreeDepth, d.TreeDepth)
	or(&l.DisconnectedTrees, d.DisconnectedTrees)
	or(&l.Commits, d.Commits)
	or(&l.Handles, d.Handles)
	or(&l.Properties, d.Properties)
	or(&l.ScriptBytes, d.ScriptBytes)
	or(&l.Heartbeat, d.Heartbeat)
	or(&l.ReconnectMin, d.ReconnectMin)
	or(&l.ReconnectMax, d.ReconnectMax)
	or(&l.Command, d.Command)
	or(&l.Query, d.Query)
	return l
}

// MissedHeartbeats is how many heartbeats may be missed before a source counts as dead.
const MissedHeartbeats = 3

func or[T int | int64 | time.Duration](v *T, d T) {
	if *v <= 0 {
		*v = d
	}
}
