package config

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
)

// HTTPS is how a daemon speaks TLS to browsers, and which proxies it trusts.
type HTTPS struct {
	TLSCert       string   `toml:"tls_cert"`       // PEM file with the certificate and its chain; empty: see ACMEDomain
	TLSKey        string   `toml:"tls_key"`        // PEM file with its key
	ACMEDomain    []string `toml:"acme_domain"`    // names for which certificates are obtained
	ACMEEmail     string   `toml:"acme_email"`     // for the authority
	ACMEDirectory string   `toml:"acme_directory"` // URL of the authority
	HTTPRedirect  string   `toml:"http_redirect"`  // host:port of plain HTTP that redirects to HTTPS; empty: none
	TrustedProxy  []string `toml:"trusted_proxy"`  // proxies that name the addresses of clients; see Proxies
}

// Encrypted reports whether the HTTP port speaks TLS.
func (c HTTPS) Encrypted() bool { return c.TLSCert != "" || len(c.ACMEDomain) > 0 }

// Proxies returns the networks in TrustedProxy. An address alone is a network of one.
func (c HTTPS) Proxies() (networks []netip.Prefix, err error) {
	for _, entry := range c.TrustedProxy {
		network, err := parseNetwork(entry)
		if err != nil {
			return nil, err
		}
		networks = append(networks, network)
	}
	return networks, nil
}

func parseNetwork(entry string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(entry); err == nil {
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	network, err := netip.ParsePrefix(entry)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%q is neither an address nor a network: write it like 192.0.2.1 or 10.0.0.0/8", entry)
	}
	return network.Masked(), nil
}

func checkNetwork(entry string) error {
	_, err := parseNetwork(entry)
	return err
}

// domainName matches names for which an authority issues certificates: several labels in lower case.
var domainName = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z]([a-z0-9-]*[a-z0-9])?$`)

func checkDomain(name string) error {
	if !domainName.MatchString(name) || len(name) > 253 {
		return fmt.Errorf("%q is not a domain name in lower case, such as a.example.org; wildcards and addresses are not supported", name)
	}
	return nil
}

func checkEmail(address string) error {
	if !strings.Contains(address, "@") {
		return fmt.Errorf("%q is not an e-mail address", address)
	}
	return nil
}

func checkDirectory(address string) error {
	if u, err := url.Parse(address); err != nil || u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("%q is not an https URL, such as https://acme-v02.api.letsencrypt.org/directory", address)
	}
	return nil
}

// problems returns what is wrong with the options together.
func (c HTTPS) problems() (found []problem) {
	switch {
	case c.TLSCert != "" && c.TLSKey == "":
		found = append(found, problem{"tls_key", errors.New("is missing: name the file with the key of tls_cert")})
	case c.TLSCert == "" && c.TLSKey != "":
		found = append(found, problem{"tls_cert", errors.New("is missing: name the file with the certificate of tls_key")})
	case c.TLSCert != "" && len(c.ACMEDomain) > 0:
		found = append(found, problem{"acme_domain", errors.New("is set beside tls_cert: choose one of them")})
	}
	if c.HTTPRedirect != "" && !c.Encrypted() {
		found = append(found, problem{"http_redirect", errors.New("is set, but the node has no certificate: set tls_cert and tls_key, or acme_domain")})
	}
	return found
}
