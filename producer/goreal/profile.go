package goreal

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/natscope/natscope/producer/goreal/internal/goprof"
	"github.com/natscope/natscope/subjects/realm"
)

// recording is a CPU profile of a session, sampling its watch of allocations.
type (
	recording struct{ *goprof.Recording }
	sampling  struct{ *goprof.Allocations }
)

type profileResult struct {
	Profile any `json:"profile"`
}

// startProfile is profiler.start. There is one CPU profiler in a process.
func startProfile(c *command, _ nothing) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if c.s.recording != nil || c.s.closed.Load() {
		c.ok()
		return
	}
	r, err := goprof.Start()
	if err != nil {
		c.reply(nil, fmt.Errorf("%w: another session, or the program itself, records a CPU profile; there is one profiler in a process: %w", realm.ErrRefused, err))
		return
	}
	c.s.recording = &recording{r}
	c.ok()
}

// stopProfile is profiler.stop.
func stopProfile(c *command, _ nothing) {
	c.s.mu.Lock()
	r := c.s.recording
	c.s.recording = nil
	c.s.mu.Unlock()
	if r == nil {
		c.reply(nil, fmt.Errorf("%w: no profile is recorded in this session", realm.ErrNotFound))
		return
	}
	c.read(func() {
		p, err := r.Stop(c.s.r.scripts.find)
		if err != nil {
			c.reply(nil, fmt.Errorf("%w: %w", realm.ErrFailed, err))
			return
		}
		c.reply(profileResult{p}, nil)
	})
}

// disableProfiler is profiler.disable: a profile under way ends.
func disableProfiler(c *command, _ nothing) {
	c.s.stopProfiles()
	c.ok()
}

// stopProfiles ends what the session records.
func (s *session) stopProfiles() {
	s.mu.Lock()
	r := s.recording
	s.recording, s.sampling = nil, nil
	s.mu.Unlock()
	if r != nil {
		// The runtime's profiler takes a while to stop; nobody waits for it.
		go r.Cancel()
	}
}

// collectGarbage is heap.collectGarbage.
func collectGarbage(c *command, _ nothing) {
	c.read(func() {
		runtime.GC()
		c.ok()
	})
}

// startSampling is heap.startSampling: allocations count from now.
func startSampling(c *command, _ nothing) {
	c.read(func() {
		a, err := goprof.Allocated()
		if err != nil {
			c.reply(nil, err)
			return
		}
		c.s.mu.Lock()
		c.s.sampling = &sampling{a}
		c.s.mu.Unlock()
		c.ok()
	})
}

// stopSampling is heap.stopSampling.
func stopSampling(c *command, _ nothing) { c.sampled(true) }

// getSamplingProfile is heap.getSamplingProfile.
func getSamplingProfile(c *command, _ nothing) { c.sampled(false) }

func (c *command) sampled(end bool) {
	c.read(func() {
		c.s.mu.Lock()
		from := c.s.sampling
		if end {
			c.s.sampling = nil
		}
		c.s.mu.Unlock()
		if from == nil {
			c.reply(nil, fmt.Errorf("%w: allocations are not sampled in this session", realm.ErrNotFound))
			return
		}
		now, err := goprof.Allocated()
		if err == nil {
			var p *goprof.SampledHeap
			if p, err = now.Since(from.Allocations, c.s.r.scripts.find); err == nil {
				c.reply(profileResult{p}, nil)
				return
			}
		}
		c.reply(nil, errors.Join(realm.ErrFailed, err))
	})
}

// refuseTracking refuses allocation timelines, which Go has no means for.
func refuseTracking(c *command, _ nothing) {
	c.reply(nil, fmt.Errorf("%w: Go cannot record allocations on a timeline; use allocation sampling", realm.ErrUnsupported))
}
