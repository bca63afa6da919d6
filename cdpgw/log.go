package cdpgw

import (
	"cmp"
	"slices"

	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
)

// logState is what the client was told of the Log domain.
type logState struct {
	enabled bool
	// cleared holds, for each source, the number of the last fault that the client asked to forget.
	cleared map[subjects.SourceID]uint64
}

var logMethods = map[string]method{
	"Log.enable":                on((*session).logEnable),
	"Log.disable":               on((*session).logDisable),
	"Log.clear":                 on((*session).logClear),
	"Log.startViolationsReport": constant(empty{}),
	"Log.stopViolationsReport":  constant(empty{}),
}

type entryAddedEvent struct {
	Entry logEntry `json:"entry"`
}

type logEntry struct {
	Source    string  `json:"source"`
	Level     string  `json:"level"`
	Text      string  `json:"text"`
	Timestamp float64 `json:"timestamp"`
}

// logEnable replays the faults of all sources: what was lost or could not be read.
func (s *session) logEnable(empty) (any, error) {
	if s.log.enabled {
		return nil, nil
	}
	s.log.enabled = true
	type line struct {
		src   *fold.Source
		fault *fold.Fault
	}
	var lines []line
	for _, src := range s.sources() {
		for i := range src.Faults {
			if f := &src.Faults[i]; f.Number > s.log.cleared[src.ID] {
				lines = append(lines, line{src, f})
			}
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(a.fault.T, b.fault.T) })
	for _, l := range lines {
		s.send(faultEvent(l.src, l.fault))
	}
	return nil, nil
}

func (s *session) logDisable(empty) (any, error) {
	s.log.enabled = false
	return nil, nil
}

// logClear makes this connection, and no other, forget the faults so far.
func (s *session) logClear(empty) (any, error) {
	s.log.cleared = make(map[subjects.SourceID]uint64)
	for _, src := range s.sources() {
		s.log.cleared[src.ID] = src.FaultCount
	}
	return nil, nil
}

// faultEvent returns the event of one fault.
func faultEvent(src *fold.Source, f *fold.Fault) []byte {
	return encodeEvent("Log.entryAdded", entryAddedEvent{logEntry{
		Source: "other", Level: "warning", Text: "natscope: " + src.Name() + ": " + f.Text, Timestamp: f.T,
	}})
}
