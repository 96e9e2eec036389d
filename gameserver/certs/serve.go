package certs

import (
	"crypto/tls"
	"net"
	"net/http"
	"strings"
)

// config returns a TLS configuration. HTTP/2 is not offered: the page is four files, and WebSockets need HTTP/1.1.
func config(get func(*tls.ClientHelloInfo) (*tls.Certificate, error), protocols ...string) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: get, NextProtos: append([]string{"http/1.1"}, protocols...)}
}

// redirect sends browsers to the same address over https.
func redirect(port string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := withoutPort(r.Host)
		if host == "" {
			http.Error(w, "use https", http.StatusBadRequest)
			return
		}
		host = strings.TrimSuffix(net.JoinHostPort(host, port), ":443")
		http.Redirect(w, r, "https://"+host+r.URL.RequestURI(), http.StatusPermanentRedirect)
	})
}

// withoutPort returns the host of a Host header, without brackets.
func withoutPort(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.Trim(host, "[]")
}
