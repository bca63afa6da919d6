package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// request is a line that man(7) does not print.
var request = regexp.MustCompile(`^\.(TH ".*" 1 "" ".*"|SH [A-Z ]+|PP|TP|nf|fi)$`)

// Every command and flag is in a manual page, in which no text is taken for a request.
func TestManPages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "share", "man1")
	var out bytes.Buffer
	if code := run(context.Background(), []string{"man", dir}, &out, &out); code != exitOK || out.Len() > 0 {
		t.Fatalf("exit code %d: %s", code, &out)
	}
	root := newRoot()
	for _, name := range []string{"natscope", "natscope-up", "natscope-net", "natscope-man", "natscope-auth"} {
		if _, err := os.Stat(filepath.Join(dir, name+".1")); err != nil {
			t.Error(err)
		}
	}
	for _, c := range pagesOf(root) {
		page, err := os.ReadFile(filepath.Join(dir, pageName(c)+".1"))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, l := range strings.Split(string(page), "\n") {
			if strings.HasPrefix(l, ".") && !request.MatchString(l) || strings.HasPrefix(l, "'") {
				t.Errorf("%s: the line %q", pageName(c), l)
			}
		}
		if !strings.Contains(string(page), roff(c.Short)) {
			t.Errorf("%s does not say what it is for", pageName(c))
		}
	}
	page, err := os.ReadFile(filepath.Join(dir, "natscope-net.1"))
	if err != nil || !strings.Contains(string(page), `\fB\-\-failed\fR`) {
		t.Errorf("the page of net lacks --failed: %v", err)
	}
	if got := roff(".a\n'b \\c -d"); got != "\\&.a\n\\&'b \\ec \\-d" {
		t.Errorf("%q", got)
	}
	if code := run(context.Background(), []string{"man"}, &out, &out); code != exitUsage {
		t.Errorf("without a directory: exit code %d", code)
	}
}
