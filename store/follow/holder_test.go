package follow

import (
	"fmt"
	"strings"
	"testing"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/source"
)

// script steps a holder through events written as words and returns the effects
// as words. Generations are g1, g2, …; "open g2 b" opens one of realm b.
func script(t testing.TB, h Holder, lines ...string) (Holder, []string) {
	t.Helper()
	var out []string
	for _, line := range lines {
		w := append(strings.Fields(line), "", "")
		e := Event{Generation: subjects.Generation(w[1])}
		life := Life{Generation: e.Generation, Realm: source.RealmID(w[2]), Who: "program " + w[2]}
		switch w[0] {
		case "known":
			e.Kind, e.Life = EventKnown, life
		case "open":
			e.Kind, e.Life = EventOpened, life
		case "close":
			e.Kind = EventClosed
		case "beat":
			e.Kind = EventBeat
		case "lives", "silent":
			e.Kind, e.Lives = EventAnswer, w[0] == "lives"
		case "moved":
			e.Kind = EventMoved
		default:
			t.Fatalf("what is %q?", line)
		}
		var effects []Effect
		h, effects = h.Step(e)
		for _, f := range effects {
			out = append(out, effectText(f))
		}
	}
	return h, out
}

func effectText(f Effect) string {
	if f.Message == nil {
		return fmt.Sprintf("ask %s", f.Generation)
	}
	text := fmt.Sprintf("%s %s", f.Message.Kind, f.Generation)
	if f.Message.After != "" {
		text += " behind " + string(f.Message.After)
	}
	return text
}

// TestHolder shows what a store does in every situation of one id, whose
// programs have the realms a, b and c.
func TestHolder(t *testing.T) {
	for name, c := range map[string]struct {
		events string
		want   string
		newest subjects.Generation
		admits bool
	}{
		"a program opens":                             {"open g1 a", "", "g1", true},
		"it was there when the store came":            {"known g1 a; beat g1", "", "g1", true},
		"it beats":                                    {"open g1 a; beat g1; beat g1", "", "g1", true},
		"it closes and comes back":                    {"open g1 a; close g1; open g2 b", "", "g2", true},
		"it opens again by itself":                    {"open g1 a; open g2 a; open g3 a", "", "g3", true},
		"its open comes behind other records":         {"open g1 a; open g2 g2; open g2 a; lives g1", "ask g1", "g2", true},
		"it restarts after it was killed":             {"open g1 a; open g2 b; silent g1", "ask g1", "g2", true},
		"a restart is not admitted before it is sure": {"open g1 a; open g2 b", "ask g1", "g2", false},
		"a second program": {"open g1 a; open g2 b; lives g1; moved g2; open g3 a",
			"ask g1, id-taken g2, reopen g1 behind g2", "g3", true},
		"a second program is never admitted":    {"open g1 a; open g2 b; lives g1", "ask g1, id-taken g2", "g2", false},
		"the first one beats meanwhile":         {"open g1 a; open g2 b; beat g1; beat g1; beat g1; lives g1; beat g1; beat g1", "ask g1, id-taken g2", "g2", false},
		"answers that come twice":               {"open g1 a; open g2 b; lives g1; lives g1; moved g2; moved g2; lives g1", "ask g1, id-taken g2, reopen g1 behind g2", "g2", true},
		"an answer that comes too late":         {"open g1 a; open g2 b; silent g1; lives g1", "ask g1", "g2", true},
		"an order of a generation that is over": {"open g1 a; open g2 b; lives g1; moved g1", "ask g1, id-taken g2", "g2", false},
		"a third program while the first is asked": {"open g1 a; open g2 b; open g3 c; lives g1; moved g3",
			"ask g1, id-taken g3, reopen g1 behind g3", "g3", true},
		"a third program while the second moves": {"open g1 a; open g2 b; lives g1; open g3 c; moved g2; lives g1",
			"ask g1, id-taken g2, ask g1, id-taken g3", "g3", false},
		"the first one comes back before the second has moved": {"open g1 a; open g2 b; lives g1; open g3 a; moved g2", "ask g1, id-taken g2", "g3", true},
		"the second one closes before it is told":              {"open g1 a; open g2 b; close g2; lives g1; moved g2", "ask g1, id-taken g2, reopen g1 behind g2", "g2", true},
		"a frozen program wakes up after its restart": {"open g1 a; open g2 b; silent g1; beat g1; beat g1; lives g2",
			"ask g1, ask g2, superseded g1", "g2", true},
		"its last beat was under way":                      {"open g1 a; open g2 b; silent g1; beat g1", "ask g1", "g2", true},
		"it is told again when it does not listen":         {"open g2 b; beat g1; beat g1; lives g2; beat g1; lives g2", "ask g2, superseded g1, ask g2, superseded g1", "g2", true},
		"a store that comes after both":                    {"known g2 b; beat g1; beat g1; lives g2", "ask g2, superseded g1", "g2", true},
		"a program whose clock is behind":                  {"open g2 b; beat g1; beat g1; silent g2; open g3 a", "ask g2, reopen g1 behind g2, ask g2", "g3", false},
		"a program whose clock is behind, after a goodbye": {"open g2 b; close g2; beat g1; beat g1; open g3 a", "reopen g1 behind g2", "g3", true},
		"three programs, the newest holds":                 {"open g3 c; beat g1; beat g2; lives g3; beat g1; lives g3", "ask g3, superseded g2, ask g3, superseded g1", "g3", true},
		"a newcomer while an older one is heard":           {"open g2 b; beat g1; beat g1; open g3 c; lives g2; moved g3", "ask g2, ask g2, id-taken g3, reopen g2 behind g3", "g3", true},
		"late news of older generations":                   {"open g3 c; open g1 a; known g2 b; close g1; silent g1; moved g1", "", "g3", true},
		"a beat ahead of its records":                      {"open g1 a; beat g2; beat g2; beat g2", "", "g1", true},
	} {
		t.Run(name, func(t *testing.T) {
			h, effects := script(t, Holder{}, strings.Split(c.events, ";")...)
			if got := strings.Join(effects, ", "); got != c.want {
				t.Errorf("effects: %s\nwant: %s", got, c.want)
			}
			if h.Newest.Generation != c.newest || h.Admits(c.newest) != c.admits || h.Admits("g0") || !h.Over("g0") || h.Over(c.newest) {
				t.Errorf("%+v", h)
			}
		})
	}
}

// TestReasons: whoever is told something learns about the other program.
func TestReasons(t *testing.T) {
	for events, other := range map[string]string{
		"open g1 a; open g2 b; lives g1":           "program a",
		"open g1 a; open g2 b; lives g1; moved g2": "program b",
		"open g2 b; beat g1; beat g1; lives g2":    "program b",
		"open g2 b; beat g1; beat g1; silent g2":   "program b",
		"open g2 b; close g2; beat g1; beat g1":    "program b",
	} {
		var h Holder
		var last []Effect
		for _, line := range strings.Split(events, ";") {
			w := append(strings.Fields(line), "")
			g := subjects.Generation(w[1])
			kind := map[string]EventKind{"open": EventOpened, "close": EventClosed, "beat": EventBeat, "lives": EventAnswer, "silent": EventAnswer, "moved": EventMoved}[w[0]]
			h, last = h.Step(Event{Kind: kind, Generation: g, Lives: w[0] == "lives", Life: Life{Generation: g, Realm: source.RealmID(w[2]), Who: "program " + w[2]}})
		}
		if len(last) != 1 || last[0].Message == nil || !strings.Contains(last[0].Message.Reason, other) {
			t.Errorf("%s: %+v", events, last)
		}
	}
}
