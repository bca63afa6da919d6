package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/natscope/natscope/embedded"
	"github.com/natscope/natscope/examples/shop"
	"github.com/natscope/natscope/subjects"
)

// stopWithin is how long everything may take to stop after a signal.
const stopWithin = 5 * time.Second

// upFlags are the flags of natscope up.
type upFlags struct {
	natsPort, demoPort      uint16
	data, nats, space       string
	admin                   string
	hub                     embedded.Hub
	memory, demo, readyJSON bool
	verbose                 bool
	doors                   doorFlags
	storage                 storageFlags
	keep                    keepFlags
}

func newUp() *cobra.Command {
	var f upFlags
	c := &cobra.Command{
		Use:   "up",
		Short: "Run everything in one process: NATS, store, gateway and ingest",
		Long: `Runs an embedded NATS server with JetStream, the store, the gateway and the ingest
of browser pages in one process, and prints the link that opens DevTools.

Programs become sources by connecting to the NATS address; pages by loading the
client script. With --demo a small Go service and its page come along. The token that
pages need is taken from $NATSCOPE_TOKEN, so that their line stays, or made anew.`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return usageError(err)
			}
			return f.run(c.Context(), c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	fl := c.Flags()
	fl.Uint16Var(&f.natsPort, "nats-port", 4222, "port of the embedded NATS server on 127.0.0.1; an occupied one advances, 0 takes any")
	fl.StringVar(&f.data, "data", "", "directory for streams and state (default: keep everything in memory)")
	fl.BoolVar(&f.memory, "memory", false, "keep everything in memory, which is the default without --data")
	fl.StringVar(&f.nats, "nats", "", "URL of a NATS server with JetStream to use instead of the embedded one")
	fl.StringVar(&f.hub.URL, "hub", "", "join a NATS server elsewhere as a leaf, at its listener for leaves (nats-leaf://host:7422); streams and state are there")
	fl.StringVar(&f.hub.Domain, "hub-domain", "hub", "JetStream domain of the hub, as its configuration names it")
	fl.StringVar(&f.hub.Credentials, "hub-creds", "", "credentials file for the hub")
	fl.StringVar(&f.hub.NKey, "hub-nkey", "", "NKey seed file for the hub")
	fl.StringVar(&f.space, "space", string(subjects.DefaultSpace), "space to serve")
	fl.BoolVar(&f.demo, "demo", false, "add a demo: a Go service and its page")
	fl.Uint16Var(&f.demoPort, "demo-port", 0, "port of the demo on 127.0.0.1, 0 takes any")
	f.doors.register(fl)
	fl.StringVar(&f.admin, "admin", "", "address of a listener with /healthz, /readyz and /metrics for operators (default: none)")
	fl.BoolVar(&f.readyJSON, "ready-json", false, "print one line of JSON on standard output once everything answers, and nothing else there")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "log details")
	f.storage.register(fl)
	f.keep.register(fl)
	return c
}

// check refuses flags that contradict each other.
func (f *upFlags) check() error {
	switch {
	case f.memory && f.data != "":
		return errors.New("--memory and --data exclude each other")
	case f.hub.URL != "" && (f.nats != "" || f.data != "" || f.memory):
		return errors.New("--hub has the streams, so --nats, --data and --memory do not go with it")
	case f.hub.URL == "" && (f.hub.Credentials != "" || f.hub.NKey != ""):
		return errors.New("--hub-creds and --hub-nkey are for --hub")
	case f.nats != "" && (f.data != "" || f.memory):
		return errors.New("--nats uses a server elsewhere, which decides about --data and --memory")
	case !subjects.IsToken(f.space):
		return fmt.Errorf("--space %q is not a token of a-z, 0-9, _ and -; use for example %q", f.space, subjects.Token(f.space))
	}
	return errors.Join(f.doors.check(), f.storage.check(), f.keep.check())
}

// ready is the line that --ready-json prints.
type ready struct {
	HTTP string `json:"http,omitempty"`
	// Listen is the address that the process listens on, Admin that of its listener for operators.
	Listen   string         `json:"listen,omitempty"`
	Admin    string         `json:"admin,omitempty"`
	DevTools string         `json:"devtools,omitempty"`
	NATS     string         `json:"nats"`
	Space    subjects.Space `json:"space"`
	// Client is the address of the script that makes a page a source.
	Client string `json:"client,omitempty"`
	// Demo is the address of the demo's page, if there is a demo.
	Demo string `json:"demo,omitempty"`
	// tokens says that the gateway needs one of everybody.
	tokens bool
}

// run starts everything, says where it is, and stops when ctx ends.
func (f *upFlags) run(ctx context.Context, stdout, stderr io.Writer) (err error) {
	log := newLog(stderr, f.verbose)
	o := embedded.Options{
		Space: subjects.Space(f.space), Data: f.data, NATS: f.nats, NATSAddr: local(f.natsPort),
		Storage: f.storage.storage(), Limits: f.keep.limits(), Version: version(), Logger: log,
		Admin: f.admin, Hub: f.hub, Token: os.Getenv("NATSCOPE_TOKEN"),
	}
	if err := f.doors.apply(&o); err != nil {
		return err
	}
	i, err := embedded.Start(ctx, o)
	if err != nil {
		if ctx.Err() != nil {
			return errors.New("stopped before everything was ready")
		}
		return err
	}
	defer func() {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
		defer cancel()
		err = errors.Join(err, i.Close(stop))
	}()
	r := ready{Listen: i.Addr(), Admin: i.Admin(), HTTP: i.HTTP(), DevTools: i.DevTools(), NATS: i.NATS(), Space: i.Space(), Client: i.ClientScript(), tokens: f.doors.tokens != ""}
	if f.demo {
		s, err := shop.Start(ctx, shop.Options{NATS: i.NATS(), Space: i.Space(), Addr: local(f.demoPort), ClientScript: i.ClientScript(), Logger: log})
		if err != nil {
			return fmt.Errorf("demo: %w", err)
		}
		defer func() {
			stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
			defer cancel()
			err = errors.Join(err, s.Close(stop))
		}()
		r.Demo = s.URL()
	}
	if err := r.print(stdout, f.readyJSON); err != nil {
		return err
	}
	<-ctx.Done()
	log.Info("stopping")
	return nil
}

// print tells people or programs where everything is.
func (r ready) print(w io.Writer, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		return enc.Encode(r)
	}
	if r.tokens {
		// What is printed shows where a token belongs: as it is, it opens nothing.
		r.DevTools = strings.Replace(r.DevTools, "/devtools/page/", "/t/<token>/devtools/page/", 1)
		r.HTTP += "/t/<token>/"
	}
	_, err := fmt.Fprintf(w, `natscope is running: space %q

  DevTools   %s
             copy this link into Chrome's address bar
  Sources    %s
  NATS       %s
  Page line  <script type="module" src="%s"></script>
`, r.Space, r.DevTools, r.HTTP, r.NATS, r.Client)
	if err == nil && r.Demo != "" {
		_, err = fmt.Fprintf(w, "  Demo page  %s\n             open it in any browser, and it appears in DevTools\n", r.Demo)
	}
	if err == nil {
		_, err = fmt.Fprintln(w, "\nStop with Ctrl+C.")
	}
	return err
}

func local(port uint16) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))) }
