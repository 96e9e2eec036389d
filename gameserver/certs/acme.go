package certs

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"
)

// Pauses after a certificate could not be obtained. Authorities count failures: Let's Encrypt allows five an hour for a
// name. The manager itself repeats its answer for a minute.
const firstPause, longestPause = 90 * time.Second, time.Hour

// refreshEvery is how often the manager is asked whether it has renewed the certificates.
const refreshEvery = time.Minute

// authority obtains certificates by ACME, and renews them when a third of their lifetime is left, at most 30 days.
type authority struct {
	domains []string
	manager *autocert.Manager
	logger  *slog.Logger

	mu struct {
		sync.Mutex
		current map[string]*tls.Certificate // by domain
	}
}

func newAuthority(o Options) *authority {
	allowed := autocert.HostWhitelist(o.Domains...)
	a := &authority{
		domains: o.Domains, logger: o.Logger,
		manager: &autocert.Manager{
			Prompt: autocert.AcceptTOS, Cache: autocert.DirCache(o.Cache), Email: o.Email,
			HostPolicy: func(ctx context.Context, host string) error { return allowed(ctx, withoutPort(host)) },
			Client:     &acme.Client{DirectoryURL: o.Directory, UserAgent: "voxeld"},
		},
	}
	a.mu.current = make(map[string]*tls.Certificate)
	return a
}

func (a *authority) Config() *tls.Config { return config(a.answer, acme.ALPNProto) }

func (a *authority) Host() string { return a.domains[0] }

func (a *authority) Reload() (apply func(), err error) { return func() {}, nil }

func (a *authority) PlainHandler(port string) http.Handler {
	return a.manager.HTTPHandler(redirect(port))
}

// answer returns the certificate for a handshake. It never obtains one: anybody could use up the number of tries that
// the authority allows.
func (a *authority) answer(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if len(hello.SupportedProtos) == 1 && hello.SupportedProtos[0] == acme.ALPNProto {
		return a.manager.GetCertificate(hello) // a challenge
	}
	name := strings.ToLower(hello.ServerName)
	if name == "" {
		name = a.domains[0]
	}
	if c := a.current(name); c != nil {
		return c, nil
	}
	return nil, fmt.Errorf("there is no certificate for %q", name)
}

// current returns the certificate for a name, nil if there is none yet.
func (a *authority) current(name string) *tls.Certificate {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.mu.current[name]
}

// obtain returns the manager's certificate for a name, and keeps it as the current one. If the manager has none, it
// asks the authority for one, which takes up to five minutes: only Run may call it.
func (a *authority) obtain(name string) (*tls.Certificate, error) {
	// With this cipher suite the manager uses an ECDSA key, which every browser accepts.
	c, err := a.manager.GetCertificate(&tls.ClientHelloInfo{
		ServerName: name, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256},
	})
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mu.current[name] = c
	return c, nil
}

// expiry returns zero until every domain has a certificate.
func (a *authority) expiry() (first time.Time) {
	for _, name := range a.domains {
		c := a.current(name)
		if c == nil {
			return time.Time{}
		}
		if first.IsZero() || c.Leaf.NotAfter.Before(first) {
			first = c.Leaf.NotAfter
		}
	}
	return first
}

// Run obtains the certificates, one after the other, and tries again those that fail. The manager renews them; Run
// picks up the new ones.
func (a *authority) Run(ctx context.Context) error {
	retry := firstPause
	for {
		// The manager cannot be interrupted.
		done := make(chan error, 1)
		go func() { done <- a.obtainAll() }()
		var err error
		pause := refreshEvery
		select {
		case <-ctx.Done():
			return nil
		case err = <-done:
		}
		if err == nil {
			retry = firstPause
		} else {
			pause, retry = retry, min(2*retry, longestPause)
			a.logger.Warn("no certificate: players cannot open this node by that name; check that the name leads here, and that the authority "+
				"can reach port 443 of this node, or port 80 with --http-redirect", "error", err, "retry_in", pause)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

func (a *authority) obtainAll() error {
	var problems []error
	for _, name := range a.domains {
		before := a.current(name)
		c, err := a.obtain(name)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", name, err))
			continue
		}
		if before == nil || !before.Leaf.Equal(c.Leaf) {
			a.logger.Info("certificate", "name", name, "expires", c.Leaf.NotAfter)
		}
	}
	return errors.Join(problems...)
}
