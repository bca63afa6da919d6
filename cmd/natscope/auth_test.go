package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// command runs a command line and returns what it printed.
func command(t *testing.T, args ...string) (string, string, error) {
	t.Helper()
	root := newRoot()
	var stdout, stderr bytes.Buffer
	root.SetArgs(args)
	root.SetOut(&stdout)
	root.SetErr(&stderr)
	err := root.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

// What auth prints is a configuration that a server takes, and its seeds let exactly their users in.
func TestAuthMakesUsersThatWork(t *testing.T) {
	dir := t.TempDir()
	keys := filepath.Join(dir, "keys")
	conf, _, err := command(t, "auth", "--source", "orders", "--out", keys)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "natscope.conf")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := server.ProcessConfigFile(file)
	if err != nil {
		t.Fatalf("%v in\n%s", err, conf)
	}
	o.Host, o.Port, o.NoLog, o.NoSigs = "127.0.0.1", -1, true, true
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	defer func() { s.Shutdown(); s.WaitForShutdown() }()
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("the server does not start")
	}
	if _, err := nats.Connect(s.ClientURL()); err == nil {
		t.Error("somebody without a key gets in")
	}
	seeds, err := filepath.Glob(filepath.Join(keys, "*.nk"))
	if err != nil || len(seeds) != 7 {
		t.Fatalf("%v, %v", seeds, err)
	}
	for _, seed := range seeds {
		info, err := os.Stat(seed)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", seed, info.Mode(), err)
		}
		if data, _ := os.ReadFile(seed); len(data) == 0 || strings.Contains(conf, strings.TrimSpace(string(data))) {
			t.Errorf("the configuration holds the seed %s", seed)
		}
	}
	refused := make(chan error, 8)
	key, err := nats.NkeyOptionFromSeed(filepath.Join(keys, "producer-orders.nk"))
	if err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect(s.ClientURL(), key, nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if err := nc.Publish("natscope.dev.hb.orders", nil); err != nil {
		t.Fatal(err)
	}
	if err := nc.Publish("natscope.dev.hb.billing", nil); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-refused:
		if !errors.Is(err, nats.ErrPermissionViolation) || !strings.Contains(err.Error(), "billing") {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the producer of orders may publish as billing")
	}
	if _, _, err := command(t, "auth", "--source", "orders", "--out", keys); err == nil {
		t.Error("seeds were replaced")
	}
}

func TestAuthForNSC(t *testing.T) {
	out, _, err := command(t, "auth", "--format", "nsc", "--space", "staging")
	if err != nil || strings.Count(out, "nsc add user --name ") != 7 || !strings.Contains(out, "--allow-pub 'natscope.staging.rec.*.>'") || !strings.Contains(out, "--allow-pub-response=1024") {
		t.Errorf("%v\n%s", err, out)
	}
	for _, args := range [][]string{{"auth"}, {"auth", "--format", "x"}, {"auth", "--space", "A B", "--out", "x"}, {"auth", "--source", "a.b", "--out", "x"}} {
		if _, _, err := command(t, args...); !errors.Is(err, errUsage) {
			t.Errorf("%v: %v", args, err)
		}
	}
}

func TestTokenCommand(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	token, _, err := command(t, "token", "alice", "--role", "debug", "--sources", "orders*,billing", "--file", file)
	if err != nil {
		t.Fatal(err)
	}
	token = strings.TrimSpace(token)
	data, err := os.ReadFile(file)
	if err != nil || len(token) < 20 || strings.Contains(string(data), token) || !strings.Contains(string(data), "name=alice role=debug sources=orders*,billing") {
		t.Errorf("%q, %s, %v", token, data, err)
	}
	out, line, err := command(t, "token", "bob")
	if err != nil || strings.Contains(line, strings.TrimSpace(out)) || !strings.HasPrefix(line, "sha256:") || !strings.Contains(line, "role=view") {
		t.Errorf("%q %q %v", out, line, err)
	}
	if _, _, err := command(t, "token", "alice", "--file", file); err == nil {
		t.Error("a second alice was added")
	}
	if _, _, err := command(t, "token", "x y"); !errors.Is(err, errUsage) {
		t.Error(err)
	}
}
