package follow

import (
	"testing"
	"time"

	"github.com/natscope/natscope/subjects"
)

func TestPresenceRules(t *testing.T) {
	const after = 6 * time.Second
	type at struct {
		second float64
		kind   SignKind
		gen    subjects.Generation
		want   Outcome
		alive  bool
	}
	tests := map[string][]at{
		"a record makes it live, silence lets it die once": {
			{0, SignRecord, "g1", CameAlive, true}, {6, SignTick, "", Unchanged, true},
			{6.1, SignTick, "", Died, false}, {9, SignTick, "", Unchanged, false},
		},
		"beats keep it alive": {
			{0, SignRecord, "g1", CameAlive, true}, {5, SignBeat, "g1", Unchanged, true}, {10, SignTick, "", Unchanged, true}, {11.1, SignTick, "", Died, false},
		},
		"a suspended process returns by a beat": {
			{0, SignRecord, "g1", CameAlive, true}, {7, SignTick, "", Died, false}, {60, SignBeat, "g1", CameAlive, true}, {66, SignTick, "", Unchanged, true},
		},
		"a suspended process returns by a record": {
			{0, SignRecord, "g1", CameAlive, true}, {7, SignTick, "", Died, false}, {60, SignRecord, "g1", CameAlive, true},
		},
		"goodbye is final for its generation": {
			{0, SignRecord, "g1", CameAlive, true}, {1, SignClose, "g1", Left, false}, {2, SignRecord, "g1", Unchanged, false},
			{2, SignBeat, "g1", Unchanged, false}, {9, SignTick, "", Unchanged, false}, {10, SignRecord, "g2", CameAlive, true},
		},
		"goodbye of the dead is no news": {
			{0, SignRecord, "g1", CameAlive, true}, {7, SignTick, "", Died, false}, {8, SignClose, "g1", Unchanged, false}, {9, SignBeat, "g1", Unchanged, false},
		},
		"late words of an older generation change nothing": {
			{0, SignRecord, "g2", CameAlive, true}, {1, SignClose, "g1", Unchanged, true}, {5, SignBeat, "g1", Unchanged, true},
			{5, SignRecord, "g1", Unchanged, true}, {6.1, SignTick, "", Died, false}, {7, SignBeat, "g1", Unchanged, false},
		},
		"a beat ahead of its records waits for them": {
			{0, SignRecord, "g1", CameAlive, true}, {5, SignBeat, "g2", Unchanged, true}, {6.1, SignTick, "", Died, false},
			{7, SignBeat, "g2", Unchanged, false}, {8, SignRecord, "g2", CameAlive, true},
		},
		"a deaf reader forgives silence": {
			{0, SignRecord, "g1", CameAlive, true}, {10, SignGrace, "", Unchanged, true}, {15, SignTick, "", Unchanged, true}, {16.1, SignTick, "", Died, false},
		},
		"grace does not shorten a life": {
			{10, SignRecord, "g1", CameAlive, true}, {5, SignGrace, "", Unchanged, true}, {16, SignTick, "", Unchanged, true},
		},
		"grace wakes nobody": {
			{0, SignRecord, "g1", CameAlive, true}, {7, SignTick, "", Died, false}, {8, SignGrace, "", Unchanged, false},
		},
	}
	start := time.Unix(1000, 0)
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			var p Presence
			for i, s := range steps {
				var e Outcome
				p, e = p.Step(Sign{s.kind, s.gen, start.Add(time.Duration(s.second * float64(time.Second)))}, after)
				if e != s.want || p.Connected != s.alive {
					t.Fatalf("step %d at %v s: outcome %d, connected %v; want %d, %v", i, s.second, e, p.Connected, s.want, s.alive)
				}
				if p.Connected != p.Gone.IsZero() {
					t.Fatalf("step %d: connected %v but gone at %v", i, p.Connected, p.Gone)
				}
			}
		})
	}
}

// FuzzPresence checks what must hold after any signs: a death comes only from
// a life, and only one life at a time.
func FuzzPresence(f *testing.F) {
	f.Add([]byte{1, 4, 3, 2, 1, 5, 4})
	f.Fuzz(func(t *testing.T, script []byte) {
		var p Presence
		now := time.Unix(1000, 0)
		for _, b := range script {
			kind := SignKind(b%5) + 1
			now = now.Add(time.Duration(b>>5) * time.Second)
			was := p
			next, e := p.Step(Sign{kind, subjects.Generation("g" + string('0'+rune(b>>3&3))), now}, 6*time.Second)
			if (e == CameAlive) != (!was.Connected && next.Connected) || (e == Left || e == Died) != (was.Connected && !next.Connected) {
				t.Fatalf("outcome %d from %+v to %+v", e, was, next)
			}
			if next.Generation < was.Generation || next.Closed && next.Connected {
				t.Fatalf("from %+v to %+v", was, next)
			}
			p = next
		}
	})
}
