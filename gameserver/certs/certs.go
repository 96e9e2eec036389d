// Package certs provides the certificates with which the HTTP server speaks TLS: from two files, which are read again
// when they change, or from a certificate authority that speaks ACME (RFC 8555), such as Let's Encrypt.
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
	// Reload reads the files again, and returns what puts their certificate to use, or why it cannot be used.
	Reload() (apply func(), err error)
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
		apply, err := f.Reload()
		if err != nil {
			return nil, err
		}
		apply()
		s = f
	}
	registerMetrics(o.Registerer, s.expiry)
	return s, nil
}
