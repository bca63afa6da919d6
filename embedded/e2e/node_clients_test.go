package e2e

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// debugged is what the scripts of the clients print of a debugger's work.
const debugged = `console string object number
object id total
evaluate 42 number
throws TypeError
source true
breakpoint 1
paused price 3
frame 100
changed changed
step 4
resumed
profile true
snapshot true
`

// runClient runs a script of a stock client against the gateway, and returns what it printed.
func runClient(t *testing.T, p *process, script string) string {
	t.Helper()
	const dir = "../../cdpgw/testdata/clients"
	if _, err := os.Stat(dir + "/node_modules/puppeteer-core"); err != nil {
		t.Fatalf("the npm packages of this test are missing; run scripts/test, or npm ci in cdpgw/testdata/clients: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", script, strings.TrimPrefix(p.HTTP, "http://"))
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s\nafter it printed\n%s", script, err, stderr.String(), out)
	}
	return string(out)
}

// TestChromeRemoteInterfaceDebugsNode finds the target of the type node by itself and debugs it.
func TestChromeRemoteInterfaceDebugsNode(t *testing.T) {
	p := start(t)
	nodeProgram(t, p)
	want := debugged + "unknown 'Debugger.nothing' wasn't found\nended\n"
	if got := runClient(t, p, "node-cri.mjs"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestPuppeteerDebugsNode connects as to a browser; each program is a target of it.
func TestPuppeteerDebugsNode(t *testing.T) {
	p := start(t)
	nodeProgram(t, p)
	want := "browser natscope 1\ntarget other\n" + debugged +
		"unknown Protocol error (Debugger.nothing): 'Debugger.nothing' wasn't found\nagain 42\nended\n"
	if got := runClient(t, p, "node-puppeteer.mjs"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
