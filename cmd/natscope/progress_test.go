package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// Long work says how far it is, on one line that is gone afterwards; nobody is told where nobody looks.
func TestProgress(t *testing.T) {
	var out stream
	p := &progress{w: &out, every: time.Millisecond}
	stop := p.during("searching")
	for end := time.Now().Add(10 * time.Second); !strings.Contains(out.String(), "searching … 0 s"); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%q", out.String())
		}
	}
	stop()
	if s := out.String(); !strings.HasSuffix(s, "\r\x1b[K") || strings.Contains(s, "\n") {
		t.Errorf("%q", s)
	}
	before := out.String()
	p.after = time.Hour
	p.done()
	p.say("of work that has just begun")
	p.done()
	if out.String() != before {
		t.Errorf("%q", out.String())
	}
	var file bytes.Buffer
	if p := progressOn(&file); p != nil {
		t.Error("there is progress for what is no terminal")
	}
	var none *progress
	none.say("x")
	none.during("x")()
	none.done()
}
