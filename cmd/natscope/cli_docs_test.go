package main

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write docs/cli.md anew")

// cliPage describes all commands and their flags, as cobra knows them.
func cliPage() string {
	root := newRoot()
	var b bytes.Buffer
	b.WriteString("# The command line\n\n" +
		"This page is made from the commands themselves; `go test ./cmd/natscope -run CLI -update` makes it anew.\n\n" +
		"Exit codes: 0 when it worked, 1 when something failed, 2 for a wrong command line or expression, 3 when what\n" +
		"was named is not there or a search found nothing, 4 when nobody answered.\n\n" +
		"`natscope completion bash|zsh|fish|powershell` prints a script that completes commands, flags and the names of\n" +
		"sources; `natscope man DIR` writes manual pages. Colours are for terminals only; `$NO_COLOR` turns them off. Control characters in what programs wrote\n" +
		"are shown as escapes in tables, never sent to the terminal.\n")
	for _, g := range root.Groups() {
		b.WriteString("\n## " + strings.TrimSuffix(g.Title, ":") + "\n")
		for _, c := range root.Commands() {
			if c.GroupID == g.ID {
				describeCommand(&b, c, "natscope ", "### ")
			}
		}
	}
	return b.String()
}

func describeCommand(b *bytes.Buffer, c *cobra.Command, before, heading string) {
	b.WriteString("\n" + heading + before + c.Name() + "\n\n" + strings.TrimSpace(c.Long) + "\n\n```\n" + c.UseLine() + "\n```\n")
	if c.Flags().HasFlags() {
		b.WriteString("\n| flag | default | meaning |\n| --- | --- | --- |\n")
	}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		name := "`--" + f.Name + "`"
		if f.Shorthand != "" {
			name += ", `-" + f.Shorthand + "`"
		}
		def := f.DefValue
		if def == "[]" || def == "" {
			def = "none"
		}
		b.WriteString("| " + name + " | " + def + " | " + strings.ReplaceAll(f.Usage, "|", `\|`) + " |\n")
	})
	for _, sub := range c.Commands() {
		describeCommand(b, sub, before+c.Name()+" ", heading)
	}
}

// TestCLIPageIsFresh fails when docs/cli.md is not what the commands say.
func TestCLIPageIsFresh(t *testing.T) {
	want := cliPage()
	if *update {
		if err := os.WriteFile("../../docs/cli.md", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/cli.md is not what the commands say; run go test ./cmd/natscope -run CLI -update")
	}
	for _, c := range newRoot().Commands() {
		if c.Long == "" || c.Short == "" || c.GroupID == "" {
			t.Errorf("natscope %s lacks its description or its group", c.Name())
		}
	}
}
