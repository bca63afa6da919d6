package cdpgw

import (
	"time"
)

// While a program is paused, its child announces an execution context, and
// nothing else makes DevTools evaluate in the frame that a person selected:
// DevTools turns to a context that appears just before the pause by itself, and
// asks the selected context's own session for a frame. The context goes a while
// after the program runs on, so that steps do not flicker, and the contexts of
// the root are announced anew before that, since DevTools then goes back to the
// one that the person had chosen.

// pauseContext numbers that context in every child. It is none that an engine
// gives its scripts: those would go with it.
const pauseContext ContextID = 990001

// pauseLinger is how long the context stays after the program runs on.
const pauseLinger = 800 * time.Millisecond

// pauseState is whether a child's program is paused, and whether the client has its context.
type pauseState struct {
	paused, announced bool
	// serial counts pauses, so that the end of one does not end the next.
	serial int
}

type pauseContextCreatedEvent struct {
	Context struct {
		ID       ContextID `json:"id"`
		Origin   string    `json:"origin"`
		Name     string    `json:"name"`
		UniqueID string    `json:"uniqueId"`
		AuxData  struct {
			IsDefault bool `json:"isDefault"`
		} `json:"auxData"`
	} `json:"context"`
}

// uniquePause names the context of a child's pauses.
func (c *child) uniquePause() string { return "pause." + string(c.at.source) + "." + string(c.id) }

// pausing is called before the client is told that a program is paused.
func (s *session) pausing(c *child) {
	c.pause.paused = true
	c.pause.serial++
	if c.pause.announced || c.whole() {
		return
	}
	c.pause.announced = true
	var e pauseContextCreatedEvent
	e.Context.ID, e.Context.UniqueID, e.Context.Name = pauseContext, c.uniquePause(), c.at.name+" (paused)"
	e.Context.AuxData.IsDefault = true
	s.childEvent(c, "Runtime.executionContextCreated", e)
}

// resumed is called when a program runs on.
func (s *session) resumed(c *child) {
	c.pause.paused = false
	if !c.pause.announced {
		return
	}
	serial := c.pause.serial
	s.slow.Go(func() {
		t := time.NewTimer(pauseLinger)
		defer t.Stop()
		select {
		case <-t.C:
			s.live(func() {
				if c.pause.serial == serial && !c.pause.paused {
					s.pauseOver(c)
				}
			})
		case <-s.conn.ctx.Done():
		}
	})
}

// pauseOver withdraws the context of a pause, and gives the person back the one that they had chosen.
func (s *session) pauseOver(c *child) {
	if !c.pause.announced {
		return
	}
	c.pause.announced, c.pause.paused = false, false
	if !s.anyPaused() {
		s.announceAgain()
	}
	s.childEvent(c, "Runtime.executionContextDestroyed", contextDestroyedEvent{ID: pauseContext, UniqueID: c.uniquePause()})
}

// anyPaused reports whether a program of this connection is paused.
func (s *session) anyPaused() bool {
	for _, c := range s.targets.byID {
		if c.pause.paused {
			return true
		}
	}
	return false
}

// announceAgain announces the contexts of the root once more, under the same
// ids. Those with scripts in the root are left out: their files would go with them.
func (s *session) announceAgain() {
	if !s.runtime.enabled {
		return
	}
	for _, src := range s.sources() {
		x := s.runtime.contexts[src.ID]
		if _, scripts := s.withScripts(src); x == nil || scripts {
			continue
		}
		s.event("Runtime.executionContextDestroyed", contextDestroyedEvent{ID: x.id, UniqueID: x.uniqueID(src.ID)})
		s.event("Runtime.executionContextCreated", contextCreatedEvent{s.sourceContext(src, x)})
	}
}
