package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net"
	"net/http"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/internal/config"
	"github.com/voxelpopuli/voxeld/trust"
)

// Whatever a node answers, a bundle has no token and no IP address of others, and says which parts are missing.
func TestCollect(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	token := config.Token{World: strings.Repeat("5a", 32), Secret: &trust.Secret{7}, Addrs: []string{"/ip4/127.0.0.1/tcp/4001"}}.String()
	server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/doctor":
			http.Error(w, "no", http.StatusInternalServerError)
		case ConfigPath:
			WriteSettings(w, []config.Setting{{Option: config.Option{Name: "join"}, Value: []string{token}, Source: config.FromFlag}})
		default:
			io.WriteString(w, "join "+token+"\nowner ABCD-EFGH-IJKL-MNOP remote=203.0.113.9:80\n") //nolint:errcheck // the test sees it
		}
	})}
	go server.Serve(l) //nolint:errcheck // until it is closed
	t.Cleanup(func() { server.Close() })
	for _, addresses := range []bool{false, true} {
		var out bytes.Buffer
		missing, err := Collect(t.Context(), &out, Options{Socket: socket, Version: "v", Now: time.Now(), Addresses: addresses})
		if len(missing) != 1 || !strings.Contains(missing[0].Error(), "doctor.json") || err != nil {
			t.Errorf("missing: %v, %v", missing, err)
		}
		unpacked, err := gzip.NewReader(&out)
		if err != nil {
			t.Fatal(err)
		}
		files := make(map[string]string)
		for in := tar.NewReader(unpacked); ; {
			header, err := in.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			content, err := io.ReadAll(in)
			if err != nil {
				t.Fatal(err)
			}
			files[path.Base(header.Name)] = string(content)
		}
		if len(files) != len(parts)+1 || !strings.Contains(files["about.txt"], "missing: doctor.json") || !strings.Contains(files["log.txt"], "remote=") {
			t.Errorf("the bundle has %v", files)
		}
		for name, content := range files {
			if strings.HasSuffix(name, ".pprof") {
				continue // no text
			}
			if strings.Contains(content, token[len(token)-20:]) || strings.Contains(content, "EFGH") || !addresses && strings.Contains(content, "203.0.113") {
				t.Errorf("%s has a secret: %s", name, content)
			}
		}
		if addresses != strings.Contains(files["log.txt"], "203.0.113.9") {
			t.Errorf("with addresses %t: %s", addresses, files["log.txt"])
		}
	}
}
