package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/pflag"
	"github.com/synadia-io/orbit.go/natscontext"

	"github.com/natscope/natscope/embedded"
)

// connectFlags say which NATS server a command works with, in the words of the nats command line.
type connectFlags struct {
	server, context, creds, nkey, user string
	tlsCA, tlsCert, tlsKey             string
	inbox                              string
}

func (f *connectFlags) register(fl *pflag.FlagSet) {
	fl.StringVarP(&f.server, "nats", "s", "", "URL of the NATS server (default: $NATS_URL, or nats://127.0.0.1:4222)")
	fl.StringVar(&f.context, "context", "", "context of the nats command line to take server and credentials from")
	fl.StringVar(&f.creds, "creds", "", "credentials file")
	fl.StringVar(&f.nkey, "nkey", "", "NKey seed file")
	fl.StringVar(&f.user, "user", "", "user name; the password comes from $NATS_PASSWORD (a server's token comes from $NATS_TOKEN, without --user)")
	fl.StringVar(&f.inbox, "inbox-prefix", "", "prefix of this connection's inboxes, where the user has one of its own, as natscope auth prints it")
	fl.StringVar(&f.tlsCA, "tlsca", "", "file with the certificate authority of the server")
	fl.StringVar(&f.tlsCert, "tlscert", "", "file with the client's TLS certificate")
	fl.StringVar(&f.tlsKey, "tlskey", "", "file with the client's TLS key")
}

// check refuses flags that contradict each other.
func (f *connectFlags) check() error {
	switch {
	case f.context != "" && (f.server != "" || f.creds != "" || f.nkey != "" || f.user != ""):
		return errors.New("--context names server and credentials, so --nats, --creds, --nkey and --user do not go with it")
	case f.creds != "" && f.nkey != "":
		return errors.New("--creds and --nkey exclude each other")
	case (f.tlsCert == "") != (f.tlsKey == ""):
		return errors.New("--tlscert and --tlskey go together")
	}
	for _, file := range []string{f.creds, f.nkey, f.tlsCA, f.tlsCert, f.tlsKey} {
		if file == "" {
			continue
		}
		if _, err := os.Stat(file); err != nil {
			return err
		}
	}
	return nil
}

// url is the server to connect to when no context names one.
func (f *connectFlags) url() string {
	if f.server != "" {
		return f.server
	}
	if u := os.Getenv("NATS_URL"); u != "" {
		return u
	}
	return nats.DefaultURL
}

// who is who runs a command, for the audit: what the operating system and the flags say.
func (f *connectFlags) who(command string) string {
	var names []string
	if u, err := user.Current(); err == nil {
		names = append(names, u.Username)
	}
	if host, err := os.Hostname(); err == nil {
		names = append(names, host)
	}
	out := strings.Join(names, "@") + " (" + command
	if f.user != "" {
		out += " as " + f.user
	}
	return out + ")"
}

// options turns the flags into options of a connection.
func (f *connectFlags) options() ([]nats.Option, error) {
	var opts []nats.Option
	if f.creds != "" {
		opts = append(opts, nats.UserCredentials(f.creds))
	}
	if f.nkey != "" {
		o, err := nats.NkeyOptionFromSeed(f.nkey)
		if err != nil {
			return nil, fmt.Errorf("NKey seed file %s: %w", f.nkey, err)
		}
		opts = append(opts, o)
	}
	if f.user != "" {
		opts = append(opts, nats.UserInfo(f.user, os.Getenv("NATS_PASSWORD")))
	} else if t := os.Getenv("NATS_TOKEN"); t != "" && f.context == "" {
		// A secret is no flag: everybody on the machine sees the command lines.
		opts = append(opts, nats.Token(t))
	}
	if f.inbox != "" {
		opts = append(opts, nats.CustomInboxPrefix(f.inbox))
	}
	if f.tlsCA != "" {
		opts = append(opts, nats.RootCAs(f.tlsCA))
	}
	if f.tlsCert != "" {
		cert, err := tls.LoadX509KeyPair(f.tlsCert, f.tlsKey)
		if err != nil {
			return nil, fmt.Errorf("TLS certificate: %w", err)
		}
		opts = append(opts, nats.Secure(&tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}))
	}
	return opts, nil
}

// connect opens a connection that also waits for a server that is not there
// yet, and says what it waits for.
func (f *connectFlags) connect(ctx context.Context, name string, log *slog.Logger) (*nats.Conn, error) {
	conn, err := f.dial(append(embedded.ConnOptions(name, log), nats.RetryOnFailedConnect(true)))
	if err != nil {
		return nil, err
	}
	return conn, f.await(ctx, conn, log)
}

// connectOnce opens a connection to a server that must be there.
func (f *connectFlags) connectOnce(name string, log *slog.Logger) (*nats.Conn, error) {
	return f.dial(embedded.ConnOptions(name, log))
}

func (f *connectFlags) dial(opts []nats.Option) (*nats.Conn, error) {
	own, err := f.options()
	if err != nil {
		return nil, err
	}
	opts = append(append(opts, nats.Timeout(5*time.Second)), own...)
	var conn *nats.Conn
	if f.context != "" {
		conn, _, err = natscontext.Connect(f.context, opts...)
	} else {
		conn, err = nats.Connect(f.url(), opts...)
	}
	if err != nil {
		if u := (*url.Error)(nil); errors.As(err, &u) {
			u.URL = withoutSecrets(u.URL) // It quotes the address.
		}
		return nil, fmt.Errorf("connect to NATS at %s: %w; check --nats or --context", f.where(), err)
	}
	return conn, nil
}

// where names the server for people, without secrets.
func (f *connectFlags) where() string {
	if f.context != "" {
		return "the server of context " + f.context
	}
	return withoutSecrets(f.url())
}

// withoutSecrets hides the passwords and tokens in a list of servers' addresses:
// what it returns goes to logs. It takes lists that cannot be parsed, too.
func withoutSecrets(list string) string {
	servers := strings.Split(list, ",")
	for i, s := range servers {
		scheme, rest, ok := strings.Cut(s, "://")
		if !ok {
			scheme, rest = "", s
		}
		at := strings.LastIndexByte(rest, '@')
		if at < 0 {
			continue
		}
		// A name without a password is a token.
		user, _, named := strings.Cut(rest[:at], ":")
		hide := "xxxxx"
		if named {
			hide = user + ":xxxxx"
		}
		if servers[i] = hide + rest[at:]; ok {
			servers[i] = scheme + "://" + servers[i]
		}
	}
	return strings.Join(servers, ",")
}

// await returns when the connection is there for the first time, or ctx ends.
func (f *connectFlags) await(ctx context.Context, conn *nats.Conn, log *slog.Logger) error {
	if conn.IsConnected() {
		return nil
	}
	where := f.where()
	log.Warn("NATS does not answer yet, waiting for it", "server", where)
	up := conn.StatusChanged(nats.CONNECTED, nats.CLOSED)
	if conn.IsConnected() {
		return nil
	}
	select {
	case s := <-up:
		if s == nats.CLOSED {
			return fmt.Errorf("connect to NATS at %s: %w", where, conn.LastError())
		}
		return nil
	case <-ctx.Done():
		conn.Close()
		return fmt.Errorf("stopped before NATS at %s answered", where)
	}
}
