package gameserver

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/netip"

	"golang.org/x/time/rate"

	"github.com/voxelpopuli/voxeld/wire"
)

// What a connection weighs in the count of its address. A client of the original protocol holds up to 82 connections,
// for one player; a session is one player's by itself.
const (
	connectionWeight = 1
	playerWeight     = 100
)

// admit counts a connection of some weight against its address, which has room for PerAddress players. The returned
// release must be called once, when the connection ends. Loopback is free: it is this machine, or a proxy on it that
// speaks for many.
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

// What one address may ask for that may found a region: a second, and at once. From this machine, which may
// be a proxy, foundingLoopback times as much.
const (
	foundingsPerSecond, foundingsAtOnce = 20, 100
	foundingLoopback                    = 10
	foundingSites                       = 1024 // addresses that are remembered before those that are idle are forgotten
)

// pace waits until the address may ask for another chunk that may have to be founded, over whatever connection.
func (g *Gateway) pace(ctx context.Context, remote net.Addr) error {
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

// sameSite tells whether two connections come from one address.
func sameSite(a, b net.Addr) bool {
	siteA, _ := siteOf(a)
	siteB, _ := siteOf(b)
	return siteA == siteB
}

// siteOf is what connections are counted by: an IPv4 address, or the /64 that one IPv6 customer has at the
// least. What is not an IP address at all shares one count, that of the zero Prefix.
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
