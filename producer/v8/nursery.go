package v8

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

//go:embed preload.cjs
var preload []byte

// Nursery is an environment for a program whose Node processes, itself and all
// below it, open an inspector on a free loopback port each and say where. Its
// directory goes to Options.Directory, its Attached to Options.Attached.
type Nursery struct {
	dir  string
	hold time.Duration
}

// NewNursery makes the directory. hold is how long a process waits at its start
// until it is observed: until then it misses nothing, after that it runs without.
// The caller calls Close when the program has ended.
func NewNursery(hold time.Duration) (*Nursery, error) {
	dir, err := os.MkdirTemp("", "natscope-run-")
	if err != nil {
		return nil, fmt.Errorf("v8: make a directory for inspectors: %w", err)
	}
	n := &Nursery{dir: dir, hold: hold}
	if err = os.Mkdir(n.Directory(), 0o700); err == nil {
		err = os.WriteFile(n.script(), preload, 0o600)
	}
	if err != nil {
		_ = n.Close()
		return nil, fmt.Errorf("v8: make a directory for inspectors: %w", err)
	}
	return n, nil
}

// Directory is where processes say where their inspectors are.
func (n *Nursery) Directory() string { return filepath.Join(n.dir, "inspectors") }

func (n *Nursery) script() string { return filepath.Join(n.dir, "preload.cjs") }

// Environ adds what Node reads to an environment. Options that are there stay.
func (n *Nursery) Environ(env []string) []string {
	options := ""
	out := make([]string, 0, len(env)+3)
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		switch name {
		case "NODE_OPTIONS":
			options = value + " "
		case "NATSCOPE_INSPECTORS", "NATSCOPE_HOLD_MS":
		default:
			out = append(out, e)
		}
	}
	// The address is told to natscope, so that it need not be written to the program's standard error.
	// Deno reads the same options, but takes no = behind --require.
	options += "--inspect-publish-uid=http --inspect=127.0.0.1:0 --require " + quoteOption(n.script())
	return append(out, "NODE_OPTIONS="+options, "NATSCOPE_INSPECTORS="+n.Directory(), "NATSCOPE_HOLD_MS="+strconv.FormatInt(n.hold.Milliseconds(), 10))
}

// quoteOption writes a word for NODE_OPTIONS, where blanks separate and backslashes escape inside of quotes.
func quoteOption(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// Attached lets the program that waits behind an endpoint go on.
func (n *Nursery) Attached(a Attached) {
	files, err := os.ReadDir(n.Directory())
	if err != nil {
		return
	}
	for _, f := range files {
		file := filepath.Join(n.Directory(), f.Name())
		line, err := firstLine(file)
		if err != nil {
			continue
		}
		if at, err := ParseEndpoints(line); err == nil && len(at) == 1 && at[0] == a.Endpoint {
			_ = os.Remove(file)
		}
	}
}

// Close removes the directory.
func (n *Nursery) Close() error { return os.RemoveAll(n.dir) }
