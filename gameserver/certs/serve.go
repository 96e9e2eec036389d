package certs

import (
	"crypto/tls"
	"net"
	"net/http"
)

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
