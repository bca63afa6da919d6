package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/spf13/pflag"

	"github.com/natscope/natscope/cdpgw/access"
	"github.com/natscope/natscope/embedded"
)

// doorFlags say where a gateway or an ingest listens and who gets in.
type doorFlags struct {
	port           uint16
	listen         string
	cert, key      string
	proxied        bool
	external       string
	tokens         string
	role           string
	frontend       string
	hosts, origins []string
}

func (f *doorFlags) register(fl *pflag.FlagSet) {
	fl.Uint16Var(&f.port, "port", 9230, "port on 127.0.0.1; an occupied one advances, 0 takes any")
	fl.StringVar(&f.listen, "listen", "", "address to listen on in place of 127.0.0.1 and --port; beyond this machine it needs --tokens and HTTPS")
	fl.StringVar(&f.cert, "https-cert", "", "file with the certificate to serve HTTPS with")
	fl.StringVar(&f.key, "https-key", "", "file with the key of that certificate")
	fl.BoolVar(&f.proxied, "behind-proxy", false, "a proxy that ends TLS stands before this process")
	fl.StringVar(&f.external, "external", "", "address under which people reach this process, such as https://tools.example/natscope")
	fl.StringVar(&f.tokens, "tokens", "", "file with access tokens, one a line as natscope token writes them; it is read again when it changes")
	fl.StringVar(&f.role, "role", "debug", "what everybody may do where no token is needed: view or debug")
	fl.StringVar(&f.frontend, "frontend", "", "directory of a built frontend of DevTools, such as the npm package @react-native/debugger-frontend; then links open by a click")
	fl.StringArrayVar(&f.hosts, "allow-host", nil, "additional host name that requests may be addressed to (repeatable)")
	fl.StringArrayVar(&f.origins, "allow-origin", nil, "additional web origin, exactly, that may connect (repeatable)")
}

// check refuses flags that contradict each other.
func (f *doorFlags) check() error {
	switch {
	case (f.cert == "") != (f.key == ""):
		return errors.New("--https-cert and --https-key go together")
	case f.role != string(access.RoleView) && f.role != string(access.RoleDebug):
		return fmt.Errorf("--role %q is unknown; use view or debug", f.role)
	case f.tokens != "" && f.role == string(access.RoleView):
		return errors.New("--role is for gateways without tokens; with --tokens, each token has a role")
	}
	if f.listen != "" {
		host, _, err := net.SplitHostPort(f.listen)
		if err != nil {
			return fmt.Errorf("--listen %q is not host:port", f.listen)
		}
		if host == "" {
			return fmt.Errorf("--listen %q names no host; write 127.0.0.1%s for this machine, or 0.0.0.0%s for all", f.listen, f.listen, f.listen)
		}
	}
	return checkOrigins(f.origins)
}

// apply fills the options of an instance in.
func (f *doorFlags) apply(o *embedded.Options) error {
	o.HTTPAddr = local(f.port)
	if f.listen != "" {
		o.HTTPAddr = f.listen
	}
	if f.cert != "" {
		pair, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			return fmt.Errorf("HTTPS certificate: %w", err)
		}
		o.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	}
	if f.tokens != "" {
		t, err := access.OpenTokens(f.tokens)
		if err != nil && errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("%w; make one with natscope token >> %s", err, f.tokens)
		}
		if err != nil {
			return err
		}
		o.Tokens = t
	}
	o.BehindProxy, o.External, o.Role = f.proxied, f.external, access.Role(f.role)
	o.Hosts, o.Origins, o.Frontend = f.hosts, f.origins, f.frontend
	return nil
}
