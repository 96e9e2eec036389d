// Package weborigin decides which web pages may reach a node. A browser on a player's machine reaches nodes on loopback
// and in the local network that a stranger cannot, and runs the scripts of strangers' pages: their requests name their
// page in the header Origin, or, after the name of the page was made to lead to the node (DNS rebinding), in the header
// Host. Programs that are no browsers send no Origin.
package weborigin

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Option is the name of the option that adds origins, for error messages.
const Option = "--web-origin"

// Policy says which pages may reach a node. Any goroutine may use it.
type Policy struct {
	own    []string // origins of the node's own pages
	names  []string // their hosts
	others func(ctx context.Context, origin string) bool
}

// New returns the policy of a node whose own pages have these origins. Others reports whether an origin is that of
// another node's pages: a page stays while its player moves to another node; nil if there are none.
func New(own []string, others func(ctx context.Context, origin string) bool) *Policy {
	p := &Policy{own: own, others: others}
	for _, origin := range own {
		if u, err := url.Parse(origin); err == nil {
			p.names = append(p.names, strings.ToLower(u.Hostname()))
		}
	}
	return p
}

// Of returns the origin of the pages of an http or https URL, as browsers write it, and reports whether the URL has
// one.
func Of(address string) (origin string, ok bool) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return "", false
	}
	return u.Scheme + "://" + withoutDefaultPort(u.Scheme, u.Host), true
}

// withoutDefaultPort returns a host and port in lower case, without the port if it is that of the scheme.
func withoutDefaultPort(scheme, host string) string {
	port := ":80"
	if scheme == "https" {
		port = ":443"
	}
	return strings.TrimSuffix(strings.ToLower(host), port)
}

// CheckHost returns an error if a request names a host that may be a stranger's. Names of the public DNS have several
// labels, and the node's own are known. Over TLS the browser has compared the name with the certificate.
func (p *Policy) CheckHost(r *http.Request) error {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
	_, err := netip.ParseAddr(host)
	isAddress := err == nil
	if isAddress || r.TLS != nil || !strings.Contains(host, ".") || strings.HasSuffix(host, ".localhost") || slices.Contains(p.names, host) {
		return nil
	}
	return fmt.Errorf("this node is not known as %q: open it by its address, or start it with %s http://%s", host, Option, r.Host)
}

// CheckOrigin returns an error if a request comes from a page that may not reach the node. CheckHost must have accepted
// the request. It may wait for the answers of other nodes.
func (p *Policy) CheckOrigin(r *http.Request) error {
	header := r.Header.Get("Origin")
	if header == "" { // no browser, or a request that the browser lets only pages of the same origin read
		return nil
	}
	origin, ok := Of(header)
	u, err := url.Parse(header)
	if ok && err == nil {
		sameHost := withoutDefaultPort(u.Scheme, u.Host) == withoutDefaultPort(u.Scheme, r.Host)
		if sameHost || isLoopback(u.Hostname()) || slices.Contains(p.own, origin) || p.others != nil && p.others(r.Context(), origin) {
			return nil
		}
	}
	return fmt.Errorf("pages of %q may not use this node: open the node's own page, or start it with %s %s", header, Option, header)
}

// isLoopback reports whether a page comes from the machine that its browser runs on. A node's page that was opened as
// localhost goes on at other nodes, too.
func isLoopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback() || strings.EqualFold(host, "localhost")
}

// KnownHosts passes on the requests that CheckHost accepts.
func (p *Policy) KnownHosts(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := p.CheckHost(r); err != nil {
			http.Error(w, err.Error(), http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// KnownPages passes on the requests that CheckHost and CheckOrigin accept, and lets their pages read the answers.
func (p *Policy) KnownPages(next http.Handler) http.Handler {
	return p.KnownHosts(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := p.CheckOrigin(r); err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		h := w.Header()
		h.Add("Vary", "Origin")
		if origin := r.Header.Get("Origin"); origin != "" {
			h.Set("Access-Control-Allow-Origin", origin)
		}
		next.ServeHTTP(w, r)
	}))
}
