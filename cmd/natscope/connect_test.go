package main

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// Passwords and tokens in addresses appear neither in messages nor in logs.
func TestSecretsOfAddressesAreHidden(t *testing.T) {
	for in, want := range map[string]string{
		"nats://127.0.0.1:4222":                     "nats://127.0.0.1:4222",
		"nats://bob:hunter2@a:1,nats://hunter2@b:2": "nats://bob:xxxxx@a:1,nats://xxxxx@b:2",
		"bob:hunter2@a:1":                           "bob:xxxxx@a:1",
		"nats://bob:hun@ter2@a":                     "nats://bob:xxxxx@a",
		"nats://bob:hunter2@[::1":                   "nats://bob:xxxxx@[::1",
	} {
		if got := withoutSecrets(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
	for _, server := range []string{"nats://bob:hunter2@127.0.0.1:1", "nats://hunter2@127.0.0.1:1", "nats://bob:hunter2@[::1", "nats://bob:hunter2@127.0.0.1:1/%zz"} {
		for _, line := range []string{"ls", "doctor", "audit", "har", "mcp"} {
			var out, errs bytes.Buffer
			if code := run(t.Context(), []string{line, "--nats", server}, &out, &errs); code == 0 || strings.Contains(out.String()+errs.String(), "hunter2") {
				t.Errorf("natscope %s: exit code %d, %s%s", line, code, &out, &errs)
			}
		}
	}
	var log bytes.Buffer
	f := connectFlags{server: "nats://bob:hunter2@127.0.0.1:1"}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := f.connect(ctx, "test", slog.New(slog.NewTextHandler(&log, nil)))
	if err == nil || strings.Contains(err.Error()+log.String(), "hunter2") || !strings.Contains(log.String(), "bob:xxxxx@") {
		t.Errorf("%v, %s", err, &log)
	}
}
