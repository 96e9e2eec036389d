package certs

import (
	"log/slog"

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
