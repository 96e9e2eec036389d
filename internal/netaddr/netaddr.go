// Package netaddr says what counts as one address: in limits, quotas, bans and logs.
package netaddr

import (
	"net"
	"net/netip"
)

// bits6 is the length of the network that counts as one IPv6 address: a single customer has at least a /64, and any
// address in it.
const bits6 = 64

// Charged returns what clients at an address are charged to: an IPv4 address, or the /64 of an IPv6 address. It is the
// zero Prefix for the zero Addr.
func Charged(a netip.Addr) netip.Prefix {
	a = a.Unmap().WithZone("")
	switch {
	case !a.IsValid():
		return netip.Prefix{}
	case a.Is4():
		return netip.PrefixFrom(a, a.BitLen())
	}
	return netip.PrefixFrom(a, bits6).Masked()
}

// ChargedFrom returns Charged of the address that a connection comes from; the zero Prefix if that is no IP address.
func ChargedFrom(remote net.Addr) netip.Prefix {
	from, err := netip.ParseAddrPort(remote.String())
	if err != nil {
		return netip.Prefix{}
	}
	return Charged(from.Addr())
}

// Parse parses an address, or a network such as 203.0.113.0/24, of which the smallest is what Charged returns. It
// reports false for anything else.
func Parse(text string) (netip.Prefix, bool) {
	if a, err := netip.ParseAddr(text); err == nil {
		return Charged(a), a.Zone() == ""
	}
	network, err := netip.ParsePrefix(text)
	if err != nil || network.Addr().Is4In6() {
		return netip.Prefix{}, false
	}
	if all := Charged(network.Addr()); all.Bits() < network.Bits() {
		return all, true
	}
	return network.Masked(), true
}

// Text returns how an address or a network is written: without its length if it is a single address.
func Text(network netip.Prefix) string {
	if network.IsSingleIP() {
		return network.Addr().String()
	}
	return network.String()
}
