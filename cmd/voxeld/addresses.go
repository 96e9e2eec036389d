package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/voxelpopuli/voxeld/gameserver/luanti"
	"github.com/voxelpopuli/voxeld/gameserver/weborigin"
	"github.com/voxelpopuli/voxeld/wire"
)

func listen(flag, address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	return l, explain(flag, address, err)
}

// listenPackets listens for clients of Luanti, over UDP.
func listenPackets(flag, address string) (net.Listener, error) {
	l, err := luanti.Listen(address)
	return l, explain(flag, address, err)
}

// explain returns an error that tells what to do about an address that cannot be listened at; nil for nil.
func explain(flag, address string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("listen on %s: the address is in use, perhaps by another voxeld: stop that, or choose another address with --%s", address, flag)
	}
	if err != nil {
		return fmt.Errorf("%w; choose another address with --%s", err, flag) // it names the address
	}
	return nil
}

func closeOnce(l net.Listener) func() error {
	return func() error {
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	}
}

// reachable converts a listening address to one that others can dial.
func reachable(address net.Addr) string {
	host, port, err := net.SplitHostPort(address.String())
	if err != nil {
		panic(err) // the address of a TCP listener has a port
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = outwardAddress()
	}
	return net.JoinHostPort(host, port)
}

// pageOrigins returns the origins of the pages that may reach this node, those that other nodes should know first: of
// the URL that players open, as configured, and of this machine's names and addresses.
func (n *node) pageOrigins() (all []string) {
	host, port, err := net.SplitHostPort(n.http.Addr().String())
	if err != nil {
		panic(err) // the address of a TCP listener has a port
	}
	hosts := slices.Clone(n.cfg.ACMEDomain)
	if name, err := os.Hostname(); err == nil {
		label, _, _ := strings.Cut(name, ".")
		hosts = append(hosts, name, label+".local")
	}
	if ip := net.ParseIP(host); ip != nil && !ip.IsUnspecified() {
		hosts = append(hosts, host)
	} else if addrs, err := net.InterfaceAddrs(); err == nil {
		for _, a := range addrs {
			if ip, ok := a.(*net.IPNet); ok && ip.IP.IsGlobalUnicast() {
				hosts = append(hosts, ip.IP.String())
			}
		}
	}
	scheme := "http://"
	if n.certs != nil {
		scheme = "https://"
	}
	urls := append([]string{n.playerURL()}, n.cfg.WebOrigin...)
	for _, host := range hosts {
		urls = append(urls, scheme+net.JoinHostPort(host, port))
	}
	for _, address := range urls {
		origin, ok := weborigin.Of(address)
		if ok && wire.CheckURL(origin, "http", "https") == nil && !slices.Contains(all, origin) {
			all = append(all, origin)
		}
	}
	return all
}

// outwardAddress returns this machine's address on its network, of IPv6 only if it has none of IPv4, or loopback if it
// has none.
func outwardAddress() string {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return "127.0.0.1"
	}
	found := "127.0.0.1"
	for _, a := range addrs {
		ip, ok := a.(*net.IPNet)
		switch {
		case !ok || !ip.IP.IsGlobalUnicast():
		case ip.IP.To4() != nil:
			return ip.IP.String()
		case found == "127.0.0.1":
			found = ip.IP.String()
		}
	}
	return found
}
