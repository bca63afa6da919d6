package e2e

import (
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// A debugger never leaves a program paused: whatever of natscope is lost under a
// pause, the program runs on.

// ticking runs a program under natscope that writes a line every 20 ms.
func ticking(t *testing.T, p *process, name string) *lockedBuffer {
	t.Helper()
	file := nodeFile(t, name, `let n = 0; setInterval(() => { console.log('tick', ++n) }, 20)`)
	cmd := exec.Command(binary, "run", "--nats", p.NATS, "--", "node", file)
	out := &lockedBuffer{}
	cmd.Stdout = out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Signal(os.Interrupt); _ = cmd.Wait() })
	return out
}

// pausedBy pauses a program through its target at a gateway, and sees that it is.
func pausedBy(t *testing.T, gateway *process, name string, out *lockedBuffer) *debugClient {
	t.Helper()
	c := debugURL(t, nodeTarget(t, gateway, name)["webSocketDebuggerUrl"])
	c.do("Runtime.enable", `{}`)
	c.do("Debugger.enable", `{}`)
	c.do("Debugger.pause", `{}`)
	c.wait("Debugger.paused", "callFrames")
	var before string
	poll(t, name+" stands still", func() (bool, string) {
		still := out.String() == before
		before = out.String()
		return still, before
	})
	return c
}

// runsOn waits until a program does something. A session lives for 30 s after the last sign of its asker.
func runsOn(t *testing.T, name string, out *lockedBuffer) {
	t.Helper()
	before := strings.Count(out.String(), "\n")
	for deadline := time.Now().Add(2 * time.Minute); strings.Count(out.String(), "\n") < before+5; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Errorf("%s is still paused after two minutes", name)
			return
		}
	}
}

// TestLossOfNatscopeResumes kills a gateway, and another time everything with the
// NATS server, while a program is paused.
func TestLossOfNatscopeResumes(t *testing.T) {
	all := start(t)
	gateway := startPart(t, "gateway", "--nats", all.NATS, "--port", "0")
	other := start(t)
	left, right := ticking(t, all, "left.js"), ticking(t, other, "right.js")
	pausedBy(t, gateway, "left.js", left)
	pausedBy(t, other, "right.js", right)
	gateway.kill()
	other.kill()
	var both sync.WaitGroup
	both.Go(func() { runsOn(t, "the program whose gateway was killed", left) })
	both.Go(func() { runsOn(t, "the program whose NATS server was killed", right) })
	both.Wait()
	// The first one can be debugged again.
	c := pausedBy(t, all, "left.js", left)
	_ = c.ws.Close()
	runsOn(t, "the program whose last debugger left", left)
}
