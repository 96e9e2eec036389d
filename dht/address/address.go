// Package address parses the multiaddrs of nodes.
package address

import (
	"errors"
	"fmt"
	"slices"
	"syscall"

	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
)

// Target is an address to dial. The ID is empty when the address contains none.
type Target struct {
	Text string
	Addr ma.Multiaddr // without /p2p/
	ID   peer.ID
}

// Parse parses a peer's multiaddr for dialling, with or without a trailing /p2p/ id.
func Parse(text string) (Target, error) {
	full, err := ma.NewMultiaddr(text)
	if err != nil {
		return Target{}, fmt.Errorf("parse address %q: want a multiaddr such as /ip4/192.0.2.1/tcp/4001/p2p/<peer id>: %w", text, err)
	}
	addr, id := peer.SplitAddr(full)
	if len(addr) == 0 {
		return Target{}, fmt.Errorf("parse address %q: it names a peer, but not where to dial it", text)
	}
	if err := Check(addr); err != nil {
		return Target{}, fmt.Errorf("parse address %q: %w", text, err)
	}
	return Target{Text: text, Addr: addr, ID: id}, nil
}

// ParseAll parses several addresses.
func ParseAll(texts []string) ([]Target, error) {
	var targets []Target
	for _, text := range texts {
		t, err := Parse(text)
		if err != nil {
			return nil, err
		}
		targets = append(targets, t)
	}
	return targets, nil
}

var errTransport = errors.New("want /ip4/…, /ip6/… or /dns/… followed by /tcp/<port> or /udp/<port>/quic-v1")

// Check returns an error unless addr has a form that nodes listen on and dial.
func Check(addr ma.Multiaddr) error {
	if len(addr) < 2 {
		return errTransport
	}
	switch addr[0].Protocol().Code {
	case ma.P_IP4, ma.P_IP6, ma.P_DNS, ma.P_DNS4, ma.P_DNS6:
	default:
		return errTransport
	}
	switch {
	case len(addr) == 2 && addr[1].Protocol().Code == ma.P_TCP:
	case len(addr) == 3 && addr[1].Protocol().Code == ma.P_UDP && addr[2].Protocol().Code == ma.P_QUIC_V1:
	default:
		return errTransport
	}
	return nil
}

// ParseListen parses the addresses to listen on. For each TCP address it adds QUIC on the UDP port of the same number,
// unless QUIC addresses are given explicitly.
func ParseListen(texts []string) ([]ma.Multiaddr, error) {
	if len(texts) == 0 {
		return nil, errors.New("parse listen addresses: none given; set --listen")
	}
	var addrs []ma.Multiaddr
	quic := false
	for _, text := range texts {
		addr, err := ma.NewMultiaddr(text)
		if err == nil {
			err = Check(addr)
		}
		if err == nil && addr[0].Protocol().Code != ma.P_IP4 && addr[0].Protocol().Code != ma.P_IP6 {
			err = errors.New("a daemon listens on an address, not on a name")
		}
		if err != nil {
			return nil, fmt.Errorf("parse listen address %q (--listen), for example /ip4/0.0.0.0/tcp/4001: %w", text, err)
		}
		quic = quic || addr[1].Protocol().Code == ma.P_UDP
		addrs = append(addrs, addr)
	}
	if quic {
		return addrs, nil
	}
	for _, addr := range slices.Clone(addrs) {
		twin, err := ma.NewMultiaddr(fmt.Sprintf("%s/udp/%s/quic-v1", addr[:1], addr[1].Value()))
		if err != nil {
			return nil, fmt.Errorf("parse listen address %q: %w", addr, err)
		}
		addrs = append(addrs, twin)
	}
	return addrs, nil
}

// ListenError explains why a daemon cannot listen on addr.
func ListenError(addr ma.Multiaddr, err error) error {
	name := addr[1].Protocol().Name
	port := addr[1].Value()
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("listen on %s: %s port %s is taken by another program (is a daemon running already?); choose another with --listen: %w", addr, name, port, err)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("listen on %s: not allowed to use %s port %s; choose one above 1023 with --listen: %w", addr, name, port, err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("listen on %s: this machine does not have that address; choose another with --listen: %w", addr, err)
	}
	return fmt.Errorf("listen on %s (--listen): %w", addr, err)
}

// Full returns addresses with the peer's id appended, each once, in the order given.
func Full(id peer.ID, addrs []ma.Multiaddr) []string {
	var texts []string
	for _, addr := range addrs {
		text := addr.String() + "/p2p/" + id.String()
		if !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return texts
}
