package gameserver

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/netip"

	"golang.org/x/time/rate"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire"
)

// Weights of connections in the count of their address. A client of the original protocol holds up to 82 connections for one
// player; a session is one player.
const (
	connectionWeight = 1
	playerWeight     = 100
)

// admit counts a connection of the given weight against its address, which has room for PerAddress players. The returned release
// must be called once, when the connection ends. Loopback is not counted: it is this machine, or a proxy on it that serves many
// clients.
func (g *Gateway) admit(remote net.Addr, weight int) (release func(), err error) {
	site, counted := siteOf(remote)
	if !counted {
		return func() {}, nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.addresses[site]+weight > g.PerAddress*playerWeight {
		return nil, &wire.Error{Code: wire.FailFull, Message: fmt.Sprintf(
			"There are %d players from your address already.", g.PerAddress)}
	}
	g.mu.addresses[site] += weight
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.mu.addresses[site] -= weight; g.mu.addresses[site] == 0 {
			delete(g.mu.addresses, site)
		}
	}, nil
}

// Limits on requests of one address that may found a region: per second, and in a burst. Loopback, which may be a proxy, gets
// foundingLoopback times as much.
const (
	foundingsPerSecond, foundingsAtOnce = 20, 100
	foundingLoopback                    = 10
	foundingSites                       = 1024 // addresses kept before idle ones are removed
)

// waitFounding waits until the address may request another chunk that may have to be founded. All connections of the address share the
// limit.
// Land that was asked for lately costs nothing: its region exists.
func (g *Gateway) waitFounding(ctx context.Context, remote net.Addr, pos grid.ChunkPos) error {
	if g.confirmedLeaders.Contains(grid.CellAt(pos, grid.FoundingLabel)) {
		return nil
	}
	site, counted := siteOf(remote)
	g.mu.Lock()
	l := g.mu.foundings[site]
	if l == nil {
		if len(g.mu.foundings) >= foundingSites {
			maps.DeleteFunc(g.mu.foundings, func(_ netip.Prefix, l *rate.Limiter) bool { return l.Tokens() >= float64(l.Burst()) })
		}
		l = rate.NewLimiter(foundingsPerSecond, foundingsAtOnce)
		if !counted {
			l = rate.NewLimiter(foundingLoopback*foundingsPerSecond, foundingLoopback*foundingsAtOnce)
		}
		g.mu.foundings[site] = l
	}
	g.mu.Unlock()
	return l.Wait(ctx)
}

// sameSite reports whether two connections come from the same address.
func sameSite(a, b net.Addr) bool {
	siteA, _ := siteOf(a)
	siteB, _ := siteOf(b)
	return siteA == siteB
}

// siteOf returns the key by which connections are counted: an IPv4 address, or the /64 that a single IPv6 customer has at least.
// Addresses that are not IP addresses share one count, that of the zero Prefix.
func siteOf(remote net.Addr) (site netip.Prefix, counted bool) {
	ap, err := netip.ParseAddrPort(remote.String())
	if err != nil {
		return netip.Prefix{}, true
	}
	address := ap.Addr().Unmap().WithZone("")
	bits := 32
	if address.Is6() {
		bits = 64
	}
	return netip.PrefixFrom(address, bits).Masked(), !address.IsLoopback()
}
