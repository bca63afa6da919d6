package subjects

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestParseClaim(t *testing.T) {
	c, err := ParseClaim([]byte(`{"generation":"g1","realm":"r","who":"orders, process 7 on web-1","future":1}`))
	if err != nil || c != (Claim{"g1", "r", "orders, process 7 on web-1"}) {
		t.Errorf("%+v, %v", c, err)
	}
	for _, bad := range []string{"", "[]", `{"generation":""}`, `{"generation":"A B"}`, `{"generation":5}`, `{"generation":"g","who":"` + strings.Repeat("x", maxClaim) + `"}`} {
		if _, err := ParseClaim([]byte(bad)); !errors.Is(err, ErrClaim) {
			t.Errorf("%.40s: %v", bad, err)
		}
	}
	long, err := ParseClaim([]byte(`{"generation":"g","who":"x` + strings.Repeat("é", 500) + `"}`))
	if err != nil || len(long.Who) > maxClaimWho+len("…") || !strings.HasSuffix(long.Who, "é…") {
		t.Errorf("%q, %v", long.Who, err)
	}
	a, err := ParseClaimAnswer([]byte(`{"held":true,"generation":"g0","who":"shop"}`))
	if err != nil || a != (ClaimAnswer{true, "g0", "shop"}) {
		t.Errorf("%+v, %v", a, err)
	}
	for _, bad := range []string{"", "{", `"yes"`, `{"who":"` + strings.Repeat("x", maxClaim) + `"}`} {
		if a, err := ParseClaimAnswer([]byte(bad)); !errors.Is(err, ErrClaim) || a.Held {
			t.Errorf("%.40s: %+v, %v", bad, a, err)
		}
	}
}

// FuzzParseClaim shows that what is accepted can be shown and written again.
func FuzzParseClaim(f *testing.F) {
	f.Add([]byte(`{"generation":"g1","realm":"r","who":"x"}`))
	f.Add([]byte(`{"held":true,"generation":"g0","who":"\xff"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if c, err := ParseClaim(data); err == nil {
			again, err := json.Marshal(c)
			if err != nil || !IsToken(string(c.Generation)) || !utf8.ValidString(c.Who) {
				t.Fatalf("%+v, %v", c, err)
			}
			if d, err := ParseClaim(again); err != nil || d.Generation != c.Generation {
				t.Fatalf("%+v became %+v, %v", c, d, err)
			}
		}
		if a, err := ParseClaimAnswer(data); err == nil && !utf8.ValidString(a.Who) {
			t.Fatalf("%+v", a)
		}
	})
}
