package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// readmeProgram is what surrounds the README's Go code: all that it assumes, and a use of what it makes.
const readmeProgram = `package main

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/producer/httpcap"
	"github.com/natscope/natscope/producer/slogcap"
	"github.com/natscope/natscope/producer/treecap"
)

func run() error {
	mux := http.NewServeMux()
CODE
	_, _ = client, server
	return nil
}

func main() { _ = run() }
`

// TestReadmeCompiles builds the Go code that the README tells people to copy.
func TestReadmeCompiles(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(readme), -1)
	if len(blocks) != 1 {
		t.Fatalf("the README has %d blocks of Go; this test knows one", len(blocks))
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	// An overlay puts the program into the module without a file in the tree.
	dir := t.TempDir()
	program, overlay := filepath.Join(dir, "main.go"), filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(program, []byte(strings.Replace(readmeProgram, "CODE", blocks[0][1], 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(root, "examples", "readme", "main.go"): program}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(overlay, replace, 0o644); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "-o", filepath.Join(dir, "readme"), "./examples/readme")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Errorf("the README's Go code does not build: %v\n%s", err, out)
	}
}
