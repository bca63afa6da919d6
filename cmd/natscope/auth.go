package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/nats-io/nkeys"
	"github.com/spf13/cobra"

	"github.com/natscope/natscope/subjects"
)

// authFlags are the flags of natscope auth.
type authFlags struct {
	space   string
	sources []string
	dir     string
	format  string
}

func newAuth() *cobra.Command {
	var f authFlags
	c := &cobra.Command{
		Use:   "auth",
		Short: "Make NATS users with least privilege for natscope's parts",
		Long: `Makes NATS users that may do what their part of natscope does, and nothing else: a
store, a gateway, an ingest, a viewer (who asks the query service), a debugger (who may also have programs
evaluate and edit), an auditor (who
reads the audit), and one producer for each --source, which may be that source and no other.

As nats-server, the default, it prints the authorization block of a server's
configuration, with public keys; the seeds go to --out, one file a user, and are never
printed. As nsc it prints the commands that make the same users where accounts are
managed with nsc. Each user has an inbox of its own: connect with --inbox-prefix.`,
		Example: `  natscope auth --source orders --source billing --out keys > natscope.conf
  natscope gateway --nkey keys/gateway.nk --inbox-prefix _INBOX_gateway`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			users, err := f.users()
			if err != nil {
				return usageError(err)
			}
			if f.format == "nsc" {
				return printNSC(c.OutOrStdout(), users)
			}
			if f.dir == "" {
				return usageError(errors.New("--out is missing: the directory for the users' seeds"))
			}
			if err := writeSeeds(f.dir, users); err != nil {
				return err
			}
			return serverConf.Execute(c.OutOrStdout(), users)
		},
	}
	fl := c.Flags()
	fl.StringVar(&f.space, "space", string(subjects.DefaultSpace), "space that the users work in")
	fl.StringArrayVar(&f.sources, "source", nil, "id of a source to make a producer for (repeatable); without any, one producer may be any source")
	fl.StringVar(&f.dir, "out", "", "directory for the users' seeds; made if it is missing, and readable by its owner only")
	fl.StringVar(&f.format, "format", "nats-server", "what to print: nats-server or nsc")
	return c
}

// natsUser is one user to be made.
type natsUser struct {
	Name   string
	Public string
	Inbox  string
	subjects.Permissions
	seed []byte
}

// users makes the users that the flags ask for.
func (f authFlags) users() ([]natsUser, error) {
	if f.format != "nats-server" && f.format != "nsc" {
		return nil, fmt.Errorf("--format %q is unknown; use nats-server or nsc", f.format)
	}
	var out []natsUser
	add := func(kind subjects.User, name string, sources ...subjects.SourceID) error {
		p, err := subjects.PermissionsOf(kind, subjects.Space(f.space), name, sources...)
		if err != nil {
			return err
		}
		pair, err := nkeys.CreateUser()
		if err != nil {
			return err
		}
		public, err := pair.PublicKey()
		if err != nil {
			return err
		}
		seed, err := pair.Seed()
		if err != nil {
			return err
		}
		out = append(out, natsUser{name, public, subjects.InboxOf(name), p, seed})
		return nil
	}
	for _, kind := range []subjects.User{subjects.UserStore, subjects.UserGateway, subjects.UserIngest, subjects.UserViewer, subjects.UserDebugger, subjects.UserAuditor} {
		if err := add(kind, string(kind)); err != nil {
			return nil, err
		}
	}
	if len(f.sources) == 0 {
		return out, add(subjects.UserProducer, "producer")
	}
	for _, s := range f.sources {
		if err := add(subjects.UserProducer, "producer-"+s, subjects.SourceID(s)); err != nil {
			return nil, fmt.Errorf("--source: %w", err)
		}
	}
	return out, nil
}

// writeSeeds keeps each user's seed in a file that only its owner reads. A file that is there is not replaced.
func writeSeeds(dir string, users []natsUser) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, u := range users {
		file := filepath.Join(dir, u.Name+".nk")
		f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, os.ErrExist) {
			return fmt.Errorf("%s is there already; name another --out, or delete it to replace the user", file)
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(f, "%s\n", u.seed)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// serverConf is the authorization block of a nats-server.
var serverConf = template.Must(template.New("conf").Funcs(template.FuncMap{"quote": quoteAll}).Parse(`# Users of natscope. Include this file in the configuration of each server.
authorization {
  users = [
{{- range .}}
    {
      # {{.Name}}: connect with --nkey {{.Name}}.nk --inbox-prefix {{.Inbox}}
      nkey: {{.Public}}
      permissions {
        publish { allow: [{{quote .Publish}}] }
        subscribe { allow: [{{quote .Subscribe}}] }
{{- if .Responses}}
        allow_responses { max: 1024, expires: "60s" }
{{- end}}
      }
    }
{{- end}}
  ]
}
`))

func quoteAll(list []string) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = `"` + s + `"`
	}
	return strings.Join(out, ", ")
}

// printNSC prints the commands that make the users in an account of nsc.
func printNSC(w io.Writer, users []natsUser) error {
	for _, u := range users {
		line := "nsc add user --name " + u.Name
		for _, s := range u.Publish {
			line += " --allow-pub '" + s + "'"
		}
		for _, s := range u.Subscribe {
			line += " --allow-sub '" + s + "'"
		}
		if u.Responses {
			line += " --allow-pub-response=1024 --response-ttl=60s"
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}
