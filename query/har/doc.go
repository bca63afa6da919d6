// Package har writes requests as HTTP Archive 1.2, with the additions of
// DevTools, so that its Network panel and other tools can read them.
//
// It owns the archive: how a folded request, its bodies and its messages look in
// it. It must not know CDP, subjects of NATS beyond the names of bodies, or where
// requests and bodies come from. Write starts one goroutine, which reads the next
// bodies while earlier entries are written, and ends it before it returns.
package har

import (
	"context"
	"errors"

	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/store/replica"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
)

// ErrNoRequests says that nothing was chosen to write.
var ErrNoRequests = errors.New("har: no requests")

// Request is one request to write.
type Request struct {
	// Space and Source say whose request it is, Name how people call the source.
	Space  subjects.Space
	Source subjects.SourceID
	Name   string
	// Request is a copy that does not change any more.
	Request network.Request
}

// Options say how an archive is written.
type Options struct {
	// Version is the version of the program that writes.
	Version string
	// Body reads one body, as Replica.FollowBody does; with nil no bodies are written.
	Body func(ctx context.Context, s subjects.BodySubject, f func(replica.BodyPart) error) error
	// Progress is told after each request how many are written. Nil: nobody is.
	Progress func(written int)
	// Limits bounds the bodies; zero fields mean the defaults.
	Limits subjects.Limits
	// BodyBytes is how many bytes of the archive may be bodies, 0 for MaxBodyBytes. A
	// body that finds no room is left out, and says so.
	BodyBytes int64
}

// MaxBodyBytes leaves an archive small enough for DevTools, which reads it as one
// string; those of V8 end at 512 MiB.
const MaxBodyBytes = 384 << 20

// Collect copies the requests of the sources that choose accepts, or of all of
// them if it is nil, in the order in which their sources appeared. The caller
// holds the lock under which the space does not change.
func Collect(s *fold.Space, choose func(*fold.Source) bool) []Request {
	var out []Request
	for _, src := range s.Sources() {
		if choose != nil && !choose(src) {
			continue
		}
		for _, r := range src.Net.Requests {
			c := Request{Space: s.Name, Source: src.ID, Name: src.Name(), Request: *r}
			// The fold replaces everything of a request but the list of its messages, which it changes.
			c.Request.Messages = append([]network.Timed[network.Message](nil), r.Messages...)
			out = append(out, c)
		}
	}
	return out
}
