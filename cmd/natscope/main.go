// Command natscope shows a fleet of running programs in Chrome DevTools.
//
// Each subcommand has a file of its own, which turns flags into the Options of
// a package and runs it. Signals are handled here and nowhere else.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// The exit codes of natscope.
const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
)

// errUsage marks an error as one of the command line, so that the exit code is exitUsage.
var errUsage = errors.New("usage")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run executes one command line and returns the exit code. Every error is one line on stderr.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	if status := exitStatus(0); errors.As(err, &status) {
		return int(status)
	}
	code := exitCode(err)
	switch text := sayError(err); {
	case text == "":
	case errors.Is(err, errUsage):
		fmt.Fprintf(stderr, "natscope: %s; see natscope --help\n", text)
	default:
		fmt.Fprintf(stderr, "natscope: %s\n", text)
	}
	return code
}

// newRoot assembles the commands.
func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "natscope",
		Short:         "Show running programs in Chrome DevTools",
		Long:          "natscope puts Go services, Node processes and browser pages, on any number of machines, into one Chrome DevTools window.",
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          usageArgs(cobra.NoArgs),
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	defer func() {
		for _, c := range root.Commands() {
			if c.GroupID == "" {
				c.GroupID = groupRun
			}
		}
	}()
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError(err) })
	root.AddGroup(&cobra.Group{ID: groupAsk, Title: "Ask about programs:"}, &cobra.Group{ID: groupRun, Title: "Run natscope and look after it:"})
	root.AddCommand(newLs(), newTree(), newNode(), newFind(), newNet(), newRequest(), newBody(), newLogs(), newHistory(), newFaults(), newSearch(), newWatch(), newEval(), newEdit(), newMCP())
	root.AddCommand(newUp(), newRun(), newAttach(), newStore(), newGateway(), newIngest(), newDoctor(), newHAR(), newToken(), newAuth(), newAudit(), newMan())
	return root
}

// usageError marks err as an error of the command line.
func usageError(err error) error { return fmt.Errorf("%w%w", hidden{errUsage}, err) }

// hidden wraps an error without showing it.
type hidden struct{ error }

func (hidden) Error() string   { return "" }
func (h hidden) Unwrap() error { return h.error }

// usageArgs makes the errors of a check of arguments errors of the command line.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if err := check(c, args); err != nil {
			return usageError(err)
		}
		return nil
	}
}

// oneLine folds an error into one line.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// version returns the module version that the binary was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "dev"
	}
	return info.Main.Version
}
