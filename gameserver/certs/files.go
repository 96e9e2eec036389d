package certs

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// files is a certificate and its key in two files.
type files struct {
	certFile, keyFile string
	logger            *slog.Logger

	mu struct {
		sync.Mutex
		certificate *tls.Certificate // never nil once New has applied the first Reload
		read        [2]stamp         // the state of the files when they were last read
	}
}

// stamp identifies the content of a file.
type stamp struct {
	modified time.Time
	size     int64
}

func (f *files) Config() *tls.Config {
	return config(func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return f.current(), nil })
}

// Host returns the first name in the certificate that is not a wildcard.
func (f *files) Host() string {
	for _, name := range f.current().Leaf.DNSNames {
		if !strings.HasPrefix(name, "*") {
			return name
		}
	}
	return ""
}

// Run only waits: files are read when they are used.
func (f *files) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (f *files) PlainHandler(port string) http.Handler { return redirect(port) }

func (f *files) expiry() time.Time { return f.current().Leaf.NotAfter }

// current returns the certificate. It reads the files again if they have changed. If they cannot be used, as while only
// one of them has been replaced, the old certificate stays.
func (f *files) current() *tls.Certificate {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := f.stamps(); now != f.mu.read {
		f.mu.read = now
		if renewed, err := f.load(); err != nil {
			f.logger.Warn("the new certificate cannot be used, the old one stays", "error", err)
		} else {
			f.mu.certificate = renewed
			f.logger.Info("certificate read again", "file", f.certFile, "expires", renewed.Leaf.NotAfter)
		}
	}
	return f.mu.certificate
}

func (f *files) Reload() (apply func(), err error) {
	now := f.stamps()
	renewed, err := f.load()
	if err != nil {
		return nil, err
	}
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.mu.certificate, f.mu.read = renewed, now
	}, nil
}

func (f *files) load() (*tls.Certificate, error) {
	c, err := tls.LoadX509KeyPair(f.certFile, f.keyFile)
	if err != nil {
		return nil, fmt.Errorf("read certificate %s with key %s: %w", f.certFile, f.keyFile, err)
	}
	return &c, nil
}

// stamps returns zero for a file that is missing.
func (f *files) stamps() (s [2]stamp) {
	for i, name := range []string{f.certFile, f.keyFile} {
		if info, err := os.Stat(name); err == nil {
			s[i] = stamp{info.ModTime(), info.Size()}
		}
	}
	return s
}
