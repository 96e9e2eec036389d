package joining

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"
)

type resolver map[string]error

func (r resolver) LookupHost(_ context.Context, name string) ([]string, error) { return nil, r[name] }

// Names that do not resolve are reported, each once; others, and addresses, are not.
func TestUnresolvedNamesAreReported(t *testing.T) {
	var out bytes.Buffer
	dns := resolver{
		"no.example":   &net.DNSError{Err: "no such host", Name: "no.example", IsNotFound: true},
		"slow.example": context.DeadlineExceeded,
	}
	ReportUnresolved(t.Context(), slog.New(slog.NewTextHandler(&out, nil)), dns, []string{
		"/dns4/no.example/tcp/4001", "/dns4/no.example/udp/4001/quic-v1", "/dns/slow.example/tcp/4001", "/dns6/known.example/tcp/4001", "/ip4/192.0.2.1/tcp/4001",
	})()
	text := out.String()
	if strings.Count(text, "\n") != 2 || strings.Count(text, "name=no.example") != 1 || !strings.Contains(text, "does not resolve") ||
		!strings.Contains(text, "name=slow.example") || strings.Contains(text, "deadline") {
		t.Errorf("logged:\n%s", text)
	}
}
