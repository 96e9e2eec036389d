package certs

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
)

// config returns a TLS configuration. HTTP/2 is not offered: the page is four files, and WebSockets need HTTP/1.1.
func config(get func(*tls.ClientHelloInfo) (*tls.Certificate, error), protocols ...string) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: get, NextProtos: append([]string{"http/1.1"}, protocols...)}
}

// redirect sends browsers to the same address over https. Services are told that their key was in the open: many
// programs would follow, and send it so each time.
func redirect(port string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/api/") {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			io.WriteString(w, `{"error":{"code":"insecure","message":"use https; a key that was sent here was in the open: replace it (voxeld service add)"}}`) //nolint:errcheck // the client left
			return
		}
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
