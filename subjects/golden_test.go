package subjects

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var updateGolden = flag.Bool("update", false, "write what the code does into testdata/wire instead of comparing; look at the difference before you commit it")

// golden reads a file of testdata/wire.
func golden[T any](t testing.TB, name string) []T {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "wire", name))
	if err != nil {
		t.Fatal(err)
	}
	var out []T
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if len(out) == 0 {
		t.Fatalf("%s holds no case", name)
	}
	return out
}

// writeGolden writes a file of testdata/wire, one case a line.
func writeGolden[T any](t *testing.T, name string, cases []T) {
	t.Helper()
	var b strings.Builder
	b.WriteString("[\n")
	for i, c := range cases {
		var line strings.Builder
		e := json.NewEncoder(&line)
		e.SetEscapeHTML(false)
		if err := e.Encode(c); err != nil {
			t.Fatal(err)
		}
		b.WriteString(strings.TrimSuffix(line.String(), "\n"))
		if i < len(cases)-1 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
	}
	b.WriteString("]\n")
	if err := os.WriteFile(filepath.Join("testdata", "wire", name), []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
