package fold

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/natscope/natscope/subjects"
)

// TestFaultText shows that what a fault quotes is cut, and is valid UTF-8.
func TestFaultText(t *testing.T) {
	s := &Source{}
	for _, text := range []string{"short", "a\xffb", strings.Repeat("é", 2000), "x" + strings.Repeat("é", 2000)} {
		c := s.fault(FaultMalformed, subjects.PlaneNet, text)
		got := c.Fault.Text
		if !utf8.ValidString(got) || len(got) > maxFaultText+len("…") || len(text) > maxFaultText && !strings.HasSuffix(got, "é…") {
			t.Errorf("%.20q became %q", text, got)
		}
	}
	if s.FaultCount != 4 || s.Faults[3].Number != 4 {
		t.Errorf("%d faults", s.FaultCount)
	}
}
