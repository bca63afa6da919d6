package httpcap

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"sync"

	"github.com/natscope/natscope/subjects/network"
)

// maxNames is how many names of a certificate are told; some have hundreds.
const maxNames = 50

// tlsDetails tells how a connection is encrypted, or nil.
func tlsDetails(c *tls.ConnectionState) *network.TLS {
	if c == nil {
		return nil
	}
	t := &network.TLS{Version: tls.VersionName(c.Version), Cipher: tls.CipherSuiteName(c.CipherSuite)}
	if c.CurveID != 0 {
		t.Group = c.CurveID.String()
	}
	if len(c.PeerCertificates) > 0 && c.PeerCertificates[0] != nil {
		d := certificates.of(c.PeerCertificates[0])
		t.Subject, t.Issuer, t.Names, t.ValidFrom, t.ValidTo = d.Subject, d.Issuer, d.Names, d.ValidFrom, d.ValidTo
	}
	return t
}

// certificateCache keeps the texts of the newest certificates: all requests of
// one connection have the same one.
type certificateCache struct {
	mu    sync.Mutex
	known [16]struct {
		cert *x509.Certificate
		tls  network.TLS
	}
	next int
}

var certificates certificateCache

func (cc *certificateCache) of(c *x509.Certificate) network.TLS {
	cc.mu.Lock()
	defer cc.mu.Unlock()
	for _, k := range cc.known {
		if k.cert == c {
			return k.tls
		}
	}
	k := &cc.known[cc.next%len(cc.known)]
	cc.next++
	k.cert, k.tls = c, describe(c)
	return k.tls
}

func describe(c *x509.Certificate) network.TLS {
	t := network.TLS{
		Subject: commonName(c.Subject), Issuer: commonName(c.Issuer),
		ValidFrom: float64(c.NotBefore.Unix()), ValidTo: float64(c.NotAfter.Unix()),
	}
	for _, n := range c.DNSNames {
		t.Names = append(t.Names, text(n))
	}
	for _, ip := range c.IPAddresses {
		t.Names = append(t.Names, ip.String())
	}
	t.Names = t.Names[:min(len(t.Names), maxNames)]
	return t
}

// commonName is the name of a subject as browsers show it.
func commonName(n pkix.Name) string {
	if n.CommonName != "" {
		return text(n.CommonName)
	}
	return text(n.String())
}
