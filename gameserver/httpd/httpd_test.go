package httpd

import (
	"compress/gzip"
	"crypto/tls"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/voxelpopuli/voxeld/internal/isolate"
)

// client is a small browser client. The copies are not really compressed: the server never looks inside.
var client = fstest.MapFS{
	".gitkeep":           {},
	"index.html":         {Data: []byte("the page")},
	"index.html.gz":      {Data: []byte("the page, as gzip")},
	"assets/a-1.js":      {Data: []byte("script")},
	"assets/a-1.js.br":   {Data: []byte("script, as brotli")},
	"assets/a-1.js.gz":   {Data: []byte("script, as gzip")},
	"assets/archive.gz":  {Data: []byte("no copy of another file")},
	"assets/picture.png": {Data: []byte("no copies")},
}

func get(t *testing.T, path string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	f, err := newFiles(client, Preview{})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	return w
}

func TestFilesAreSentAsTheBrowserAcceptsThem(t *testing.T) {
	for _, c := range []struct{ path, accept, encoding, body, kind string }{
		{"/", "gzip, deflate, br, zstd", "gzip", "the page, as gzip", "text/html"},
		{"/index.html", "", "", "the page", "text/html"},
		{"/assets/a-1.js", "gzip, deflate, br", "br", "script, as brotli", "text/javascript"},
		{"/assets/a-1.js", "gzip, deflate", "gzip", "script, as gzip", "text/javascript"},
		{"/assets/a-1.js", "br;q=0, GZIP;q=0.5", "gzip", "script, as gzip", "text/javascript"},
		{"/assets/a-1.js", "", "", "script", "text/javascript"},
		{"/assets/picture.png", "gzip, br", "", "no copies", "image/png"},
		{"/assets/archive.gz", "gzip", "", "no copy of another file", ""},
	} {
		response := get(t, c.path, "Accept-Encoding", c.accept)
		h, body := response.Header(), response.Body.String()
		if h.Get("Content-Encoding") != c.encoding || body != c.body || !strings.HasPrefix(h.Get("Content-Type"), c.kind) {
			t.Errorf("%s with %q: encoding %q, %q of type %q; want %q, %q of type %q",
				c.path, c.accept, h.Get("Content-Encoding"), body, h.Get("Content-Type"), c.encoding, c.body, c.kind)
		}
		if h.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%s: Vary %q", c.path, h.Get("Vary"))
		}
	}
}

func TestLinksToThePageHaveAPreview(t *testing.T) {
	client := fstest.MapFS{
		"index.html":    {Data: []byte("<head></head><body>")},
		"index.html.br": {Data: []byte("without a preview")},
	}
	f, err := newFiles(client, Preview{Title: `Ada's "world"`, URL: "https://play.example"})
	if err != nil {
		t.Fatal(err)
	}
	const want = `<head><meta property="og:type" content="website">` +
		`<meta property="og:title" content="Ada&#39;s &#34;world&#34;">` +
		`<meta property="og:url" content="https://play.example/">` +
		`<meta property="og:image" content="https://play.example/preview.jpg"></head><body>`
	for _, accepted := range []string{"", "gzip, br"} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Accept-Encoding", accepted)
		w := httptest.NewRecorder()
		f.ServeHTTP(w, r)
		body := io.Reader(w.Body)
		if accepted != "" {
			if body, err = gzip.NewReader(body); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := io.ReadAll(body); string(got) != want || err != nil {
			t.Errorf("accepting %q: %s, %v", accepted, got, err)
		}
	}
}

func TestOnlyHashedNamesAreCached(t *testing.T) {
	if h := get(t, "/assets/a-1.js").Header().Get("Cache-Control"); !strings.Contains(h, "immutable") {
		t.Errorf("/assets/a-1.js: Cache-Control %q", h)
	}
	page := get(t, "/", "Accept-Encoding", "gzip")
	if h := page.Header().Get("Cache-Control"); h != "no-cache" {
		t.Errorf("/: Cache-Control %q", h)
	}
	if again := get(t, "/", "Accept-Encoding", "gzip", "If-None-Match", page.Header().Get("ETag")); again.Code != http.StatusNotModified {
		t.Errorf("the same page again: %d", again.Code)
	}
	if other := get(t, "/", "If-None-Match", page.Header().Get("ETag")); other.Code != http.StatusOK {
		t.Errorf("the page in another encoding: %d", other.Code)
	}
}

func TestNothingElseIsServed(t *testing.T) {
	for _, path := range []string{"/assets/", "/assets", "/assets/gone.js", "/a-1.js", "/.gitkeep", "/../httpd.go", "/index.html.gz", "/assets/a-1.js.br"} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.URL.Path = path
		f, err := newFiles(client, Preview{})
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		if f.ServeHTTP(w, r); w.Code != http.StatusNotFound || w.Header().Get("Cache-Control") != "" {
			t.Errorf("%s: %d, Cache-Control %q", path, w.Code, w.Header().Get("Cache-Control"))
		}
	}
}

func TestHeaders(t *testing.T) {
	handler := withHeaders(http.NotFoundHandler())
	for name, state := range map[string]*tls.ConnectionState{"http": nil, "https": {}} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.TLS = state
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		h := w.Header()
		csp := h.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self';", "frame-ancestors 'none'"} {
			if !strings.Contains(csp, want) {
				t.Errorf("%s: policy %q lacks %q", name, csp, want)
			}
		}
		if strings.Contains(csp, "unsafe") || strings.Contains(csp, " ws:") != (state == nil) {
			t.Errorf("%s: policy %q", name, csp)
		}
		if (h.Get("Strict-Transport-Security") != "") != (state != nil) {
			t.Errorf("%s: Strict-Transport-Security %q", name, h.Get("Strict-Transport-Security"))
		}
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s: %v", name, h)
		}
	}
}

func TestPanicsAreLogged(t *testing.T) {
	var log strings.Builder
	panics := isolate.New(slog.New(slog.NewTextHandler(&log, nil)), nil)
	handler := isolatePanics(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a bug") }), panics)
	defer func() {
		if p := recover(); p != http.ErrAbortHandler || !strings.Contains(log.String(), "a bug") || !strings.Contains(log.String(), "level=ERROR") {
			t.Errorf("panic %v, log %s", p, log.String())
		}
	}()
	handler.ServeHTTP(nil, httptest.NewRequest(http.MethodGet, "/", nil))
}

func FuzzAccepts(f *testing.F) {
	f.Add("gzip, deflate, br")
	f.Add("br;q=1.0, gzip; q=0.000,*;q=0")
	f.Fuzz(func(t *testing.T, header string) {
		named := strings.Contains(strings.ToLower(header), "br")
		if !named && accepts([]string{header}, "br") {
			t.Errorf("%q does not name br", header)
		}
		if !named && !accepts([]string{header, " br ;q=0.001"}, "br") {
			t.Errorf("br after %q is not accepted", header)
		}
	})
}
