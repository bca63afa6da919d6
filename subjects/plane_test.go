package subjects

import "testing"

func TestPlanes(t *testing.T) {
	seen := make(map[Plane]bool)
	for _, p := range Planes() {
		if seen[p] || !p.Known() || !IsToken(string(p)) {
			t.Errorf("plane %q is there twice, unknown or no token", p)
		}
		seen[p] = true
	}
	for _, p := range []Plane{"", "body", "Life", "smell"} {
		if p.Known() {
			t.Errorf("plane %q is known", p)
		}
	}
}
