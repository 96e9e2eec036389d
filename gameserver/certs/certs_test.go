package certs

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestRedirect(t *testing.T) {
	for _, c := range []struct{ host, port, want string }{
		{"a.example.org", "443", "https://a.example.org/b?c=d"},
		{"a.example.org:80", "443", "https://a.example.org/b?c=d"},
		{"a.example.org:8081", "8080", "https://a.example.org:8080/b?c=d"},
		{"[2001:db8::1]", "443", "https://[2001:db8::1]/b?c=d"},
		{"[2001:db8::1]:80", "8080", "https://[2001:db8::1]:8080/b?c=d"},
		{"", "443", ""},
	} {
		r := httptest.NewRequest(http.MethodGet, "/b?c=d", nil)
		r.Host = c.host
		w := httptest.NewRecorder()
		if redirect(c.port).ServeHTTP(w, r); w.Header().Get("Location") != c.want {
			t.Errorf("%q leads to %q, want %q", c.host, w.Header().Get("Location"), c.want)
		}
	}
	w := httptest.NewRecorder()
	if redirect("443").ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/world", nil)); w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), `"insecure"`) {
		t.Errorf("a service is answered %d %s", w.Code, w.Body)
	}
}
