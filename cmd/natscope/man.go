package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func newMan() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write the manual pages of all commands",
		Long: `Writes a manual page for each command into a directory, which is made if it is
missing: natscope.1, natscope-up.1 and so on. man finds pages in the directories that
manpath prints.`,
		Example: `  natscope man ~/.local/share/man/man1 && man natscope-up`,
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return fmt.Errorf("man: %w", err)
			}
			for _, p := range pagesOf(c.Root()) {
				if err := os.WriteFile(filepath.Join(args[0], pageName(p)+".1"), manPage(p), 0o644); err != nil {
					return fmt.Errorf("man: %w", err)
				}
			}
			return nil
		},
	}
}

// pagesOf lists a command and all below it that have a manual page.
func pagesOf(c *cobra.Command) []*cobra.Command {
	if c.Hidden || c.Name() == "help" {
		return nil
	}
	out := []*cobra.Command{c}
	for _, sub := range c.Commands() {
		out = append(out, pagesOf(sub)...)
	}
	return out
}

func pageName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// manPage is the manual page of a command in the language of man(7).
func manPage(c *cobra.Command) []byte {
	var b bytes.Buffer
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line(`.TH "%s" 1 "" "natscope %s"`, strings.ToUpper(roff(pageName(c))), roff(version()))
	line(".SH NAME\n%s \\- %s", roff(pageName(c)), roff(c.Short))
	line(".SH SYNOPSIS\n%s", roff(c.UseLine()))
	line(".SH DESCRIPTION")
	for n, paragraph := range strings.Split(strings.TrimSpace(c.Long), "\n\n") {
		if n > 0 {
			line(".PP")
		}
		line("%s", roff(paragraph))
	}
	options := func(title string, flags *pflag.FlagSet) {
		if !flags.HasAvailableFlags() {
			return
		}
		line(".SH %s", title)
		flags.VisitAll(func(f *pflag.Flag) {
			if f.Hidden {
				return
			}
			kind, usage := pflag.UnquoteUsage(f)
			name := `\fB` + roff("--"+f.Name) + `\fR`
			if f.Shorthand != "" {
				name = `\fB` + roff("-"+f.Shorthand) + `\fR, ` + name
			}
			if kind != "" {
				name += ` \fI` + roff(kind) + `\fR`
			}
			line(".TP\n%s\n%s", name, roff(usage))
		})
	}
	options("OPTIONS", c.NonInheritedFlags())
	options("GLOBAL OPTIONS", c.InheritedFlags())
	if c.Example != "" {
		line(".SH EXAMPLES\n.nf\n%s\n.fi", roff(c.Example))
	}
	var others []string
	if c.HasParent() {
		others = append(others, `\fB`+roff(pageName(c.Parent()))+`\fR(1)`)
	}
	for _, sub := range c.Commands() {
		for _, p := range pagesOf(sub)[:min(len(pagesOf(sub)), 1)] {
			others = append(others, `\fB`+roff(pageName(p))+`\fR(1)`)
		}
	}
	if len(others) > 0 {
		line(".SH SEE ALSO\n%s", strings.Join(others, ", "))
	}
	return b.Bytes()
}

// roff escapes a text, so that none of it is a request or loses its hyphens.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".") || strings.HasPrefix(l, "'") {
			lines[i] = `\&` + l
		}
	}
	return strings.Join(lines, "\n")
}
