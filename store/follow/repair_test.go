package follow

import (
	"fmt"
	"testing"
	"time"
)

// TestRepair: a loss is asked for at once, three times, a second apart, and not
// after it was made good.
func TestRepair(t *testing.T) {
	start := time.Unix(1000, 0)
	for name, c := range map[string]struct {
		// whole is from when on nothing is missing, in milliseconds.
		whole int
		want  string
	}{
		"the request is lost for good":    {1 << 30, "0:1 1000:1 2000:1 3000:2"},
		"the first answer comes":          {500, "0:1 500:3"},
		"the first two requests are lost": {2400, "0:1 1000:1 2000:1 2400:3"},
		"nothing is missing":              {0, "0:3"},
	} {
		var r Repair
		got := ""
		for ms := 0; ms <= 4000; ms += 100 {
			var s RepairStep
			r, s = r.Step(start.Add(time.Duration(ms)*time.Millisecond), ms >= c.whole)
			if s == RepairWaits {
				continue
			}
			if got != "" {
				got += " "
			}
			if got += fmt.Sprintf("%d:%d", ms, s); s == RepairDone || s == RepairGivesUp {
				break
			}
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
