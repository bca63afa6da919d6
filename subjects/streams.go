package subjects

import (
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Storage chooses where a space keeps its streams and how many servers hold a
// copy. The zero value means file storage, one replica and the default limits.
type Storage struct {
	// Memory keeps streams and state in memory: nothing survives a restart of the server.
	Memory bool
	// Replicas is 1 or 3 (or any odd number the cluster allows). 0 means 1.
	Replicas int
	// RecordBytes bounds the record stream. 0 means 2 GiB, or 256 MiB in memory.
	RecordBytes int64
	// RecordAge bounds the age of records. 0 means 1 hour.
	RecordAge time.Duration
	// BodyBytes bounds the body stream. 0 means Limits.BodyJournalBytes.
	BodyBytes int64
	// BodyAge bounds the age of bodies. 0 means 15 minutes.
	BodyAge time.Duration
	// AuditAge bounds the age of audit records. 0 means 30 days.
	AuditAge time.Duration
	// StateBytes bounds the state bucket. 0 means 1 GiB, or 256 MiB in memory.
	StateBytes int64
}

// WithDefaults returns s with every unset field filled in.
func (s Storage) WithDefaults() Storage {
	if s.Replicas == 0 {
		s.Replicas = 1
	}
	if s.RecordBytes == 0 {
		s.RecordBytes = 2 << 30
		if s.Memory {
			s.RecordBytes = 256 << 20
		}
	}
	if s.RecordAge == 0 {
		s.RecordAge = time.Hour
	}
	if s.BodyBytes == 0 {
		s.BodyBytes = DefaultLimits().BodyJournalBytes
	}
	if s.BodyAge == 0 {
		s.BodyAge = 15 * time.Minute
	}
	if s.AuditAge == 0 {
		s.AuditAge = 30 * 24 * time.Hour
	}
	if s.StateBytes == 0 {
		s.StateBytes = 1 << 30
		if s.Memory {
			s.StateBytes = 256 << 20
		}
	}
	return s
}

// RecordStreamName is the name of the stream of a space's records.
func RecordStreamName(space Space) string { return "NATSCOPE_REC_" + string(space) }

// BodyStreamName is the name of the stream of a space's bodies.
func BodyStreamName(space Space) string { return "NATSCOPE_BODY_" + string(space) }

// AuditStreamName is the name of the stream of a space's audit records.
func AuditStreamName(space Space) string { return "NATSCOPE_AUDIT_" + string(space) }

// StateBucketName is the name of the key-value bucket of a space's state, as the NATS KV API takes it.
func StateBucketName(space Space) string { return "NATSCOPE_STATE_" + string(space) }

// StateStreamName is the name of the stream behind the state bucket.
func StateStreamName(space Space) string { return "KV_" + StateBucketName(space) }

// RecordStream is the configuration of the record stream. It has no rollup, no
// schedules, no per-message TTL, no atomic batches and no asynchronous
// persistence: each is a way to lose data or to get around permissions.
func RecordStream(space Space, s Storage) jetstream.StreamConfig {
	s = s.WithDefaults()
	c := recordLike(s)
	c.Name, c.Subjects = RecordStreamName(space), []string{RecordsOf(space)}
	c.Description = "natscope records of space " + string(space)
	c.MaxAge, c.MaxBytes = s.RecordAge, s.RecordBytes
	c.Duplicates = min(c.Duplicates, c.MaxAge)
	return c
}

// BodyStream is the configuration of the body stream. It has its own byte
// limit, so that bodies never evict trees.
func BodyStream(space Space, s Storage) jetstream.StreamConfig {
	s = s.WithDefaults()
	c := recordLike(s)
	c.Name, c.Subjects = BodyStreamName(space), []string{BodiesOf(space)}
	c.Description = "natscope request and response bodies of space " + string(space)
	c.MaxAge, c.MaxBytes = s.BodyAge, s.BodyBytes
	c.Duplicates = min(c.Duplicates, c.MaxAge)
	return c
}

// AuditStream is the configuration of the audit stream.
func AuditStream(space Space, s Storage) jetstream.StreamConfig {
	s = s.WithDefaults()
	c := recordLike(s)
	c.Name, c.Subjects = AuditStreamName(space), []string{AuditsOf(space)}
	c.Description = "natscope audit of space " + string(space)
	c.MaxAge, c.MaxBytes = s.AuditAge, 64<<20
	return c
}

// StateStream is the configuration of the stream behind the state bucket. It is
// made as a stream because the KV API cannot allow atomic batches, which the
// store needs to write shards and head as one.
func StateStream(space Space, s Storage) jetstream.StreamConfig {
	s = s.WithDefaults()
	return jetstream.StreamConfig{
		Name:               StateStreamName(space),
		Subjects:           []string{StateSubject(space, "*", ">")},
		Description:        "natscope state of space " + string(space),
		Storage:            storageType(s),
		Replicas:           s.Replicas,
		MaxMsgsPerSubject:  1,
		MaxBytes:           s.StateBytes,
		MaxMsgSize:         512 << 10,
		Discard:            jetstream.DiscardNew,
		AllowRollup:        true,
		DenyDelete:         true,
		AllowDirect:        true,
		AllowAtomicPublish: true,
	}
}

// StateSubject is the subject of one key of the state bucket: "<source>.<part>".
// The parts of a source are "head", "t.<shard>", "n.<shard>" and "c.<shard>".
func StateSubject(space Space, source SourceID, part string) string {
	return "$KV." + StateBucketName(space) + "." + string(source) + "." + part
}

// ParseState splits the subject of a state key into source and part. The error wraps ErrSubject or ErrToken.
func ParseState(space Space, subject string) (SourceID, string, error) {
	rest, ok := strings.CutPrefix(subject, "$KV."+StateBucketName(space)+".")
	if !ok {
		return "", "", fmt.Errorf("%w: wanted a key of %s: %.200q", ErrSubject, StateBucketName(space), subject)
	}
	source, part, ok := strings.Cut(rest, ".")
	if !ok || part == "" {
		return "", "", fmt.Errorf("%w: wanted <source>.<part>: %.200q", ErrSubject, rest)
	}
	if err := checkToken("source", source); err != nil {
		return "", "", err
	}
	return SourceID(source), part, nil
}

// recordLike is what all append-only streams have in common.
func recordLike(s Storage) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Storage:     storageType(s),
		Replicas:    s.Replicas,
		Discard:     jetstream.DiscardOld,
		MaxMsgSize:  1 << 20,
		Duplicates:  2 * time.Second, // unused; a server refuses one that is longer than the age
		AllowDirect: true,
		DenyDelete:  true,
	}
}

func storageType(s Storage) jetstream.StorageType {
	if s.Memory {
		return jetstream.MemoryStorage
	}
	return jetstream.FileStorage
}
