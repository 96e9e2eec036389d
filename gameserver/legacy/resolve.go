package legacy

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

const (
	// resolveTime bounds the lookup of a name.
	resolveTime = 5 * time.Second
	// resolvedFor is how long its result is used again, failedFor how long it is if there was none, and maxResolved how
	// many results are remembered. Nodes name each other's hosts, and every query of a client may ask for one.
	resolvedFor, failedFor, maxResolved = time.Minute, 5 * time.Second, 1024
)

// hosts resolves the names of hosts. Any goroutine may use it.
type hosts struct {
	lookup   func(ctx context.Context, network, host string) ([]netip.Addr, error)
	resolved *lru.Cache[string, resolution]
}

type resolution struct {
	addr  netip.Addr
	err   error // nil if there was an address once
	until time.Time
}

func newHosts() *hosts {
	resolved, err := lru.New[string, resolution](maxResolved)
	if err != nil {
		panic(err) // the size is positive
	}
	return &hosts{net.DefaultResolver.LookupNetIP, resolved}
}

// address returns the IP address that original clients need, from host:port.
func (h *hosts) address(ctx context.Context, game string) (netip.AddrPort, error) {
	if ap, err := netip.ParseAddrPort(game); err == nil {
		return ap, nil
	}
	host, port, err := net.SplitHostPort(game)
	if err != nil {
		return netip.AddrPort{}, err
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("port %q: %w", port, err)
	}
	r, known := h.resolved.Get(host)
	if !known || time.Now().After(r.until) {
		r = h.resolve(ctx, host, r)
		h.resolved.Add(host, r)
	}
	return netip.AddrPortFrom(r.addr, uint16(number)), r.err
}

// resolve looks a name up. If that fails, the last address counts, if there was one.
func (h *hosts) resolve(ctx context.Context, host string, last resolution) resolution {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), resolveTime) // others use the result, too
	defer cancel()
	ips, err := h.lookup(ctx, "ip4", host)
	switch {
	case err == nil:
		return resolution{addr: ips[0].Unmap(), until: time.Now().Add(resolvedFor)}
	case last.addr.IsValid():
		return resolution{addr: last.addr, until: time.Now().Add(failedFor)}
	default:
		return resolution{err: err, until: time.Now().Add(failedFor)}
	}
}
