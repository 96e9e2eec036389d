package joining

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/wire"
)

// lookupTime bounds a question to the DNS.
const lookupTime = 5 * time.Second

// Resolver looks names up; a *net.Resolver.
type Resolver interface {
	LookupHost(ctx context.Context, name string) (addrs []string, err error)
}

// ReportUnresolved warns at once of names in addresses to join that the DNS does not know: the node goes on trying,
// since the name may be that of a container that starts later. It does so in the background; the caller calls wait.
func ReportUnresolved(ctx context.Context, logger *slog.Logger, dns Resolver, addrs []string) (wait func()) {
	var names []string
	for _, addr := range addrs {
		if parts := strings.Split(addr, "/"); len(parts) > 2 && strings.HasPrefix(parts[1], "dns") && !slices.Contains(names, parts[2]) {
			names = append(names, parts[2])
		}
	}
	var wg sync.WaitGroup
	for _, name := range names {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, lookupTime)
			defer cancel()
			_, err := dns.LookupHost(ctx, name)
			var why *net.DNSError
			switch {
			case errors.As(err, &why) && why.IsNotFound:
				logger.Warn("a name to join does not resolve: check it in --join, and the DNS of this machine; still trying", "name", name)
			case err != nil && !errors.Is(err, context.Canceled):
				logger.Warn("a name to join could not be looked up: does this machine reach its DNS? still trying", "name", name, "error", wire.ErrorText(err))
			}
		})
	}
	return wg.Wait
}
