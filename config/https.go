package config

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
)

// HTTPS are the options of Config for certificates and proxies.
type HTTPS struct {
	TLSCert       string   `koanf:"tls_cert"`       // PEM file with the certificate of HTTP and its chain; empty: see ACMEDomain
	TLSKey        string   `koanf:"tls_key"`        // PEM file with its key
	ACMEDomain    []string `koanf:"acme_domain"`    // names for which certificates are obtained
	ACMEEmail     string   `koanf:"acme_email"`     // for the authority
	ACMEDirectory string   `koanf:"acme_directory"` // URL of the authority
	HTTPRedirect  string   `koanf:"http_redirect"`  // host:port of plain HTTP that redirects to HTTPS; empty: none
	TrustedProxy  []string `koanf:"trusted_proxy"`  // networks of proxies whose word on clients' addresses counts; see Proxies
}

// Encrypted reports whether the HTTP port speaks TLS.
func (c HTTPS) Encrypted() bool { return c.TLSCert != "" || len(c.ACMEDomain) > 0 }

// Proxies returns the networks in TrustedProxy; an address alone is a network of one.
func (c HTTPS) Proxies() ([]netip.Prefix, error) {
	var networks []netip.Prefix
	for _, text := range c.TrustedProxy {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			var a netip.Addr
			if a, err = netip.ParseAddr(text); err == nil {
				network, err = a.Prefix(a.BitLen())
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%q is neither an address nor a network; write it like 192.0.2.1 or 10.0.0.0/8", text)
		}
		networks = append(networks, network.Masked())
	}
	return networks, nil
}

// domainName matches names for which an authority issues certificates: several labels in lower case; others as Punycode.
var domainName = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z]([a-z0-9-]*[a-z0-9])?$`)

// checkHTTPS reports the problems of the options for HTTPS and proxies.
func (c HTTPS) checkHTTPS(problem func(key, format string, args ...any)) {
	switch {
	case c.TLSCert != "" && c.TLSKey == "":
		problem("tls_key", "is missing: name the file with the key of tls_cert")
	case c.TLSCert == "" && c.TLSKey != "":
		problem("tls_cert", "is missing: name the file with the certificate of tls_key")
	case c.TLSCert != "" && len(c.ACMEDomain) > 0:
		problem("acme_domain", "is set beside tls_cert: choose one of them")
	}
	for _, name := range c.ACMEDomain {
		if !domainName.MatchString(name) || len(name) > 253 {
			problem("acme_domain", "%q is not a domain name in lower case, such as a.example.org; wildcards and addresses are not supported", name)
		}
	}
	if c.ACMEEmail != "" && !strings.Contains(c.ACMEEmail, "@") {
		problem("acme_email", "%q is not an e-mail address", c.ACMEEmail)
	}
	if u, err := url.Parse(c.ACMEDirectory); err != nil || u.Scheme != "https" || u.Host == "" {
		problem("acme_directory", "%q is not an https URL, such as https://acme-v02.api.letsencrypt.org/directory", c.ACMEDirectory)
	}
	if c.HTTPRedirect != "" {
		if err := checkHostPort(c.HTTPRedirect, false); err != nil {
			problem("http_redirect", "%v", err)
		} else if !c.Encrypted() {
			problem("http_redirect", "is set, but the node has no certificate: set tls_cert and tls_key, or acme_domain")
		}
	}
	if _, err := c.Proxies(); err != nil {
		problem("trusted_proxy", "%v", err)
	}
}
