package mirror

import "testing"

// A function is named as its package's code names it: what the linker escapes is read back.
func TestShortFunc(t *testing.T) {
	for name, want := range map[string]string{
		"github.com/nats-io/nats%2ego.(*Conn).Close": "nats.go.(*Conn).Close", "main.main": "main.main", "example.com/a/b.F[...]": "b.F[...]", "odd%zz": "odd%zz",
	} {
		if got := ShortFunc(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
