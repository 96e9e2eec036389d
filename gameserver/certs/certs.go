// Package certs provides the certificates with which the HTTP server speaks TLS: from two files, which are read again when they
// change, or from a certificate authority that speaks ACME (RFC 8555), such as Let's Encrypt. Only cmd imports it.
package certs

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Options name the source of certificates: either files, or domains.
type Options struct {
	CertFile, KeyFile string // PEM; the certificate with its chain

	Domains   []string // names for which certificates are obtained, the first one for clients that name none
	Email     string   // for notices of the authority; may be empty
	Directory string   // URL of the authority's ACME directory
	Cache     string   // directory of the account's key and the certificates

	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

// Source is where certificates come from: *files or *authority.
type Source interface {
	// Config returns the server's TLS configuration.
	Config() *tls.Config
	// Host returns the name that browsers should open, "" if the source has none.
	Host() string
	// Run obtains certificates until ctx ends. The server must be reachable by then.
	Run(ctx context.Context) error
	// Reload reads certificates again. If it fails, the server keeps those it has.
	Reload() error
	// PlainHandler serves plain HTTP: it redirects to HTTPS on a port, and answers the authority's challenges.
	PlainHandler(port string) http.Handler

	expiry() time.Time // when the first certificate expires; zero if there is none yet
}

// New returns the source that the options name. It reads files at once.
func New(o Options) (Source, error) {
	var s Source
	if len(o.Domains) > 0 {
		s = newAuthority(o)
	} else {
		f := &files{certFile: o.CertFile, keyFile: o.KeyFile, logger: o.Logger}
		if err := f.Reload(); err != nil {
			return nil, err
		}
		s = f
	}
	registerMetrics(o.Registerer, s)
	return s, nil
}

// config returns a TLS configuration. HTTP/2 is not offered: the page is four files, and WebSockets need HTTP/1.1.
func config(get func(*tls.ClientHelloInfo) (*tls.Certificate, error), protocols ...string) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: get, NextProtos: append([]string{"http/1.1"}, protocols...)}
}

// redirect sends browsers to the same address over https.
func redirect(port string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host // without a port
		}
		if host == "" {
			http.Error(w, "use https", http.StatusBadRequest)
			return
		}
		if port != "443" {
			host = net.JoinHostPort(host, port)
		}
		http.Redirect(w, r, "https://"+host+r.URL.RequestURI(), http.StatusPermanentRedirect)
	})
}
