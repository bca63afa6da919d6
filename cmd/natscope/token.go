package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/natscope/natscope/cdpgw/access"
)

func newToken() *cobra.Command {
	var g access.Grant
	var role, file string
	c := &cobra.Command{
		Use:   "token NAME",
		Short: "Make an access token for a person or a program",
		Long: `Makes an access token. The token goes to standard output, once; the line that lets
its holder in is added to the file that --tokens of the gateway names (or goes to
standard error without --file). The file keeps a hash: nobody can read tokens out of
it. To withdraw a token, delete its line; open connections end within seconds.

A browser or DevTools uses the token in the path, /t/<token>/…; programs send
Authorization: Bearer <token>.`,
		Example: `  natscope token alice --role view --sources 'orders*' --file tokens
  natscope gateway --listen 0.0.0.0:9230 --tokens tokens --https-cert cert.pem --https-key key.pem`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) (err error) {
			g.Name, g.Role = args[0], access.Role(role)
			token, line, err := access.NewToken(g)
			switch {
			case err != nil:
				return usageError(err)
			case file == "":
				fmt.Fprintln(c.ErrOrStderr(), line)
			default:
				if err := access.AddLine(file, line); err != nil {
					return err
				}
			}
			_, err = fmt.Fprintln(c.OutOrStdout(), token)
			return err
		},
	}
	fl := c.Flags()
	fl.StringVar(&role, "role", "view", "what its holder may do: view (look only) or debug (everything)")
	fl.StringSliceVar(&g.Spaces, "spaces", nil, "patterns of the spaces that may be seen (default: all)")
	fl.StringSliceVar(&g.Sources, "sources", nil, "patterns of the sources that may be seen (default: all)")
	fl.StringVar(&file, "file", "", "file of tokens to add the line to; made if it is missing")
	return c
}
