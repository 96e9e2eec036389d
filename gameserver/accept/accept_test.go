package accept

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/voxelpopuli/voxeld/internal/isolate"
)

// A panic ends its own connection, and no other one.
func TestPanicsAreIsolated(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		logger := slog.New(slog.NewTextHandler(&log, nil))
		ended <- Serve(ctx, l, logger, isolate.New(logger, nil), func(_ context.Context, c net.Conn) {
			defer c.Close()
			name := make([]byte, 3)
			if _, err := io.ReadFull(c, name); err != nil {
				return
			}
			if string(name) == "bad" {
				panic("a mistake of ours")
			}
			if _, err := c.Write(name); err != nil {
				t.Error(err)
			}
		})
	}()
	for name, want := range map[string]string{"bad": "", "ann": "ann"} {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, name); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(c); err != nil || string(got) != want {
			t.Errorf("%s is answered %q, %v", name, got, err)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "a mistake of ours") || !strings.Contains(text, "accept_test.go") {
		t.Errorf("logged: %s", log.String())
	}
}
