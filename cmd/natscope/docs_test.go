package main

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/natscope/natscope/subjects"
)

// TestConfigurationIsDocumented fails when a flag or a limit has no row in docs/configuration.md.
func TestConfigurationIsDocumented(t *testing.T) {
	b, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(b)
	for _, c := range newRoot().Commands() {
		// docs/cli.md has the flags of the commands that ask; they configure nothing.
		if c.GroupID == groupAsk {
			continue
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !strings.Contains(doc, "`--"+f.Name+"`") {
				t.Errorf("docs/configuration.md does not name --%s of natscope %s", f.Name, c.Name())
			}
		})
	}
	limits := reflect.TypeFor[subjects.Limits]()
	for i := range limits.NumField() {
		if name := limits.Field(i).Name; !strings.Contains(doc, "| `"+name+"` |") {
			t.Errorf("docs/configuration.md has no row for the limit %s", name)
		}
	}
}
