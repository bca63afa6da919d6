package main

import (
	"errors"
	"io"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/natscope/natscope/query"
	"github.com/natscope/natscope/query/agent"
	"github.com/natscope/natscope/subjects"
)

func newMCP() *cobra.Command {
	var f connectFlags
	var space string
	var changes bool
	c := &cobra.Command{
		Use: "mcp", Short: "Let an agent ask about programs, over standard input and output", GroupID: groupAsk,
		Long: `Serves the Model Context Protocol on standard input and output, for agents that start
their tools themselves: list_sources, read_tree, find_nodes, inspect_node, list_requests,
inspect_request, read_body, read_console, read_history, list_faults, search and watch.
With --allow-changes there are evaluate and edit_value, too; both are audited. Gateways
serve the same tools over HTTP at /mcp, those that change for tokens that may.`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return usageError(err)
			}
			if !subjects.IsToken(space) {
				return usageError(errors.New("--space is not a token of a-z, 0-9, _ and -"))
			}
			log := newLog(c.ErrOrStderr(), false)
			conn, err := f.connectOnce("natscope mcp", log)
			if err != nil {
				return err
			}
			defer conn.Close()
			s, err := agent.NewServer(agent.Options{Changes: changes, API: query.NewClient(conn, subjects.Space(space)).As(f.who("natscope mcp")), Version: version()})
			if err != nil {
				return err
			}
			err = s.Run(c.Context(), &mcp.IOTransport{Reader: io.NopCloser(c.InOrStdin()), Writer: nopCloser{c.OutOrStdout()}})
			if c.Context().Err() != nil || errors.Is(err, io.EOF) {
				return nil
			}
			return err
		},
	}
	f.register(c.Flags())
	c.Flags().BoolVar(&changes, "allow-changes", false, "offer the tools that can change programs, too")
	c.Flags().StringVar(&space, "space", string(subjects.DefaultSpace), "space to ask about")
	return c
}

// nopCloser is a writer that outlives its user.
type nopCloser struct{ io.Writer }

// Close implements io.Closer.
func (nopCloser) Close() error { return nil }
