package trials

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

// The environment through which a test binary learns that it is a process of a trial.
const (
	roleVariable   = "NATSCOPE_TRIAL_ROLE"
	configVariable = "NATSCOPE_TRIAL_CONFIG"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		os.Exit(play(role, []byte(os.Getenv(configVariable))))
	}
	code := m.Run()
	if natscope.dir != "" {
		_ = os.RemoveAll(natscope.dir)
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, "the trials left goroutines behind:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// natscope is the command, built once for the trials that run it.
var natscope struct {
	once sync.Once
	dir  string
	path string
	err  error
}

// command returns the path of the natscope command.
func command(t testing.TB) string {
	t.Helper()
	natscope.once.Do(func() {
		if natscope.dir, natscope.err = os.MkdirTemp("", "natscope-trials-"); natscope.err != nil {
			return
		}
		natscope.path = filepath.Join(natscope.dir, "natscope")
		if out, err := exec.Command("go", "build", "-o", natscope.path, "../../cmd/natscope").CombinedOutput(); err != nil {
			natscope.err = fmt.Errorf("build natscope: %w\n%s", err, out)
		}
	})
	if natscope.err != nil {
		t.Fatal(natscope.err)
	}
	return natscope.path
}
