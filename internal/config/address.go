package config

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// The checks in this file catch common typing errors early, with clear messages. Package dht does the real
// parsing of multiaddrs; only it imports their library.

// checkListen checks a multiaddr to listen on: /ip4/… or /ip6/…, then /tcp/port or /udp/port/quic-v1.
func checkListen(addr string) error {
	hint := "; write it like /ip4/0.0.0.0/tcp/4001 or /ip4/0.0.0.0/udp/4001/quic-v1"
	parts, err := splitMultiaddr(addr)
	if err != nil {
		return fmt.Errorf("%w%s", err, hint)
	}
	if parts[0] != "ip4" && parts[0] != "ip6" {
		return fmt.Errorf("%s begins with a name: a node listens at IP addresses%s", addr, hint)
	}
	if len(parts) > 4 && parts[len(parts)-2] == "p2p" {
		return fmt.Errorf("%s has a peer id: leave /p2p/… off an address to listen on%s", addr, hint)
	}
	return nil
}

// checkPeer checks the multiaddr of another node, which ends in /p2p/ and its peer id.
func checkPeer(addr string) error {
	hint := "; write it like /ip4/192.0.2.1/tcp/4001/p2p/12D3Koo…, or use a token from voxeld invite"
	parts, err := splitDialable(addr)
	if err != nil {
		return fmt.Errorf("%w%s", err, hint)
	}
	if n := len(parts); parts[n-2] == "p2p" && len(parts[n-1]) < 10 {
		return fmt.Errorf("%s does not end with a peer id%s", addr, hint)
	}
	return nil
}

// checkDialable checks a multiaddr that is announced to other nodes.
func checkDialable(addr string) error {
	if _, err := splitDialable(addr); err != nil {
		return fmt.Errorf("%w; write it like /ip4/192.0.2.1/tcp/4001 or /dns4/voxels.example/tcp/4001", err)
	}
	return nil
}

func splitDialable(addr string) ([]string, error) {
	parts, err := splitMultiaddr(addr)
	if err != nil {
		return nil, err
	}
	if ip, err := netip.ParseAddr(parts[1]); err == nil && ip.IsUnspecified() {
		return nil, fmt.Errorf("%s: nobody can dial %s", addr, parts[1])
	}
	if parts[3] == "0" {
		return nil, fmt.Errorf("%s: nobody can dial port 0", addr)
	}
	return parts, nil
}

// splitMultiaddr returns the parts of a multiaddr, which must have at least a host and a port.
func splitMultiaddr(addr string) ([]string, error) {
	if !strings.HasPrefix(addr, "/") {
		return nil, fmt.Errorf("%q is not a multiaddr", addr)
	}
	parts := strings.Split(addr[1:], "/")
	if len(parts) < 4 {
		return nil, fmt.Errorf("%s needs a host and a port", addr)
	}
	switch host := parts[1]; parts[0] {
	case "ip4", "ip6":
		ip, err := netip.ParseAddr(host)
		if err != nil || ip.Is4() != (parts[0] == "ip4") {
			return nil, fmt.Errorf("%s: %q is no %s address", addr, host, parts[0])
		}
	case "dns", "dns4", "dns6":
		if host == "" {
			return nil, fmt.Errorf("%s has no name", addr)
		}
	default:
		return nil, fmt.Errorf("%s: /%s is not known%s", addr, parts[0],
			DidYouMean(parts[0], []string{"ip4", "ip6", "dns", "dns4", "dns6"}))
	}
	if _, err := strconv.ParseUint(parts[3], 10, 16); err != nil {
		return nil, fmt.Errorf("%s: %q is no port: they go from 0 to 65535", addr, parts[3])
	}
	switch {
	case parts[2] == "tcp":
	case parts[2] == "udp" && len(parts) > 4 && parts[4] == "quic-v1":
	case parts[2] == "udp":
		return nil, fmt.Errorf("%s: only QUIC is supported over UDP: add /quic-v1", addr)
	default:
		return nil, fmt.Errorf("%s: /%s is not known%s", addr, parts[2], DidYouMean(parts[2], []string{"tcp", "udp"}))
	}
	return parts, nil
}

// checkHostPort checks host:port. If definite is set, others must be able to dial it.
func checkHostPort(addr string, definite bool) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("%q is not host:port, such as 127.0.0.1:4002 or :4002", addr)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return fmt.Errorf("%q: %q is no port: they go from 0 to 65535", addr, port)
	}
	if !definite {
		return nil
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		return fmt.Errorf("%q: nobody can dial that: name the host that others can reach", addr)
	}
	if n == 0 {
		return fmt.Errorf("%q: nobody can dial port 0", addr)
	}
	return nil
}

// maxURL is the longest URL that nodes send each other, in bytes: wire.MaxURL less what is appended to it.
const maxURL = 500

// checkOrigin checks the origin of a web page: a URL without a path.
func checkOrigin(text string) error {
	if err := checkURL(text); err != nil {
		return err
	}
	if u, err := url.Parse(text); err != nil || u.Path != "" {
		return fmt.Errorf("%q has a path: write only scheme, host and port, like https://a.example.org or http://voxels.lan:8080", text)
	}
	return nil
}

// checkURL checks a URL that players can open.
func checkURL(text string) error {
	hint := "; write it like https://a.example.org or http://192.0.2.1:8080"
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || !strings.HasPrefix(text, "http://") && !strings.HasPrefix(text, "https://") {
		return fmt.Errorf("%q is not a URL%s", text, hint)
	}
	if u.User != nil || strings.ContainsAny(text, "?#") {
		return fmt.Errorf("%q has more than scheme, host, port and path%s", text, hint)
	}
	if ip, err := netip.ParseAddr(u.Hostname()); u.Hostname() == "" || err == nil && ip.IsUnspecified() {
		return fmt.Errorf("%q: nobody can open that: name the host that players can reach%s", text, hint)
	}
	if len(text) > maxURL {
		return fmt.Errorf("the URL has %d bytes; at most %d are allowed", len(text), maxURL)
	}
	for i := range len(text) {
		if text[i] <= ' ' || text[i] > '~' {
			return fmt.Errorf("%q contains a character that is not allowed in a URL%s", text, hint)
		}
	}
	return nil
}
