package main

import (
	"testing"
	"time"
)

func TestSize(t *testing.T) {
	for text, want := range map[string]size{"1": 1, "512": 512, "64KiB": 64 << 10, "1.5GiB": 3 << 29, "2 MB": 2e6, "10kB": 10e3, "7B": 7} {
		var s size
		if err := s.Set(text); err != nil || s != want {
			t.Errorf("%q: %d, %v", text, s, err)
		}
	}
	for _, text := range []string{"", "x", "-1", "0", "1TiB", "1e300GiB", "NaN", "InfB", "GiB"} {
		var s size
		if err := s.Set(text); err == nil {
			t.Errorf("%q was read as %d", text, s)
		}
	}
}

func TestStorageFlagsRefuseNonsense(t *testing.T) {
	for _, f := range []storageFlags{{replicas: 2}, {replicas: -1}, {replicas: 1, recordAge: -time.Second}, {replicas: 1, bodyAge: -1}} {
		if f.check() == nil {
			t.Errorf("%+v was accepted", f)
		}
	}
	if f := (storageFlags{replicas: 3, recordAge: time.Hour}); f.check() != nil || f.storage().Replicas != 3 {
		t.Errorf("%+v was refused", f)
	}
	if (&keepFlags{requests: -1}).check() == nil {
		t.Error("a negative bound was accepted")
	}
}
