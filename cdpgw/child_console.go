package cdpgw

import (
	"context"
	"encoding/json"

	"github.com/natscope/natscope/subjects"
)

// An engine tells its whole console to every session that enables Runtime. What
// the client knows of it already must not come a second time: from the root, if
// the child was attached late or an earlier generation recorded it; from an
// earlier child, if natscope began anew while the program went on.

// sameMoment is within what the times of one message may differ, in milliseconds,
// after one of them was recorded in whole microseconds on the clock of a generation.
const sameMoment = 0.002

// consoleEventNames are the events of Runtime that engines keep for later.
var consoleEventNames = map[string]bool{"consoleAPICalled": true, "exceptionThrown": true}

// consoleTold notes that the client was told a console entry of a source.
func (s *session) consoleTold(id subjects.SourceID, wall float64) {
	if s.runtime.told == nil {
		s.runtime.told = make(map[subjects.SourceID]float64)
	}
	s.runtime.told[id] = max(s.runtime.told[id], wall)
}

// knownFrom reports whether the client knows what an engine tells, and notes it if not.
func (s *session) knownFrom(c *child, data json.RawMessage) bool {
	var e struct {
		Timestamp float64 `json:"timestamp"`
	}
	if json.Unmarshal(data, &e) != nil || e.Timestamp == 0 {
		return false // Deno tells no times: better twice than not at all.
	}
	if e.Timestamp <= c.replayed+sameMoment {
		return true
	}
	s.consoleTold(c.at.source, e.Timestamp)
	return false
}

// childRuntimeEnable begins the source's console output in the child: the engine
// tells what it kept before the answer.
func (s *session) childRuntimeEnable(c *child, p rawParams) (any, error) {
	if !c.debugs() {
		return nil, nil
	}
	c.enabled, c.replayed = true, s.runtime.told[c.at.source]
	result, err := s.childPassed(c, "runtime.enable", p)
	if o, ok := result.(ordered); ok {
		enable := o.run
		o.run = func(ctx context.Context) (any, error) {
			// From now on a clock that was set back hides nothing.
			defer s.live(func() { c.replayed = 0 })
			return enable(ctx)
		}
		return o, err
	}
	return result, err
}

func (s *session) childRuntimeDisable(c *child, p rawParams) (any, error) {
	if !c.debugs() {
		return nil, nil
	}
	c.enabled = false
	delete(s.runtime.told, c.at.source)
	return s.childPassed(c, "runtime.disable", p)
}
