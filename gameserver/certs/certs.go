// Package certs provides the certificates with which the HTTP server speaks TLS: from two files, which are read again when they
// change, or from a certificate authority that speaks ACME (RFC 8555), such as Let's Encrypt. Only cmd imports it.
package certs

import (
	"context"
	"crypto/tls"
	"net/http"
	"time"
)

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
	registerMetrics(o.Registerer, s.expiry)
	return s, nil
}
