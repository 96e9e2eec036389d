// Package realip finds the address of a client behind trusted proxies: of a request from X-Forwarded-For, of a
// connection from a header of the PROXY protocol. What others than trusted proxies say about addresses has no effect.
package realip

import (
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pires/go-proxyproto"
)

// Proxies are the networks of the trusted proxies.
type Proxies []netip.Prefix

// Trusts reports whether the address is that of a trusted proxy.
func (p Proxies) Trusts(a net.Addr) bool {
	ap, err := netip.ParseAddrPort(a.String())
	return err == nil && p.trusts(ap.Addr())
}

func (p Proxies) trusts(a netip.Addr) bool {
	return slices.ContainsFunc(p, func(network netip.Prefix) bool { return network.Contains(a.Unmap().WithZone("")) })
}

// Handler passes on requests with the client's address as their RemoteAddr: the address of the connection, or, if that
// is a trusted proxy's, the last one in X-Forwarded-For that is not. Each proxy appends the address from which it
// received the request, so entries before the first one of a stranger may be invented. If there seems to be a proxy
// nearby that is not trusted, that is logged once. Of X-Forwarded-Proto, what others than trusted proxies say is removed.
func (p Proxies) Handler(next http.Handler, log *slog.Logger) http.Handler {
	var warned sync.Once
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		forwarded := r.Header["X-Forwarded-For"]
		peer, err := netip.ParseAddrPort(r.RemoteAddr)
		if err != nil || !p.trusts(peer.Addr()) {
			r.Header.Del("X-Forwarded-Proto")
		}
		if err == nil && len(forwarded) > 0 {
			if a := peer.Addr().Unmap(); !p.trusts(a) && (a.IsLoopback() || a.IsPrivate()) {
				warned.Do(func() {
					log.Warn("X-Forwarded-For is ignored; if there is a proxy at this address, name it with --trusted-proxy, so that "+
						"limits by address apply to the players behind it", "address", a)
				})
			}
			r.RemoteAddr = p.client(peer, forwarded).String()
		}
		next.ServeHTTP(w, r)
	})
}

// client returns the client's address. Its port is 0 if only a header names it.
func (p Proxies) client(peer netip.AddrPort, forwarded []string) netip.AddrPort {
	client := peer
	for _, entry := range slices.Backward(strings.Split(strings.Join(forwarded, ","), ",")) {
		before, err := parseEntry(strings.TrimSpace(entry))
		if err != nil || !p.trusts(client.Addr()) {
			break
		}
		client = netip.AddrPortFrom(before, 0)
	}
	return client
}

// parseEntry returns the address in an entry. Some proxies add the port.
func parseEntry(entry string) (netip.Addr, error) {
	if ap, err := netip.ParseAddrPort(entry); err == nil {
		return ap.Addr(), nil
	}
	return netip.ParseAddr(entry)
}

// Conn is a connection from a trusted proxy. Its remote address is the one that the proxy names in a header of the
// PROXY protocol, or the proxy's own if there is no such header. RemoteAddr, Read and Write wait for the first bytes.
type Conn struct{ *proxyproto.Conn }

// CloseWrite ends the stream towards the client.
func (c Conn) CloseWrite() error {
	tcp, ok := c.TCPConn()
	if !ok {
		return c.Close()
	}
	return tcp.CloseWrite()
}

// Listener returns a listener whose connections from trusted proxies are of type Conn. All others are returned as they
// are: a PROXY header is an invalid request there. A proxy must send the whole header within the timeout.
func (p Proxies) Listener(l net.Listener, timeout time.Duration) net.Listener {
	if len(p) == 0 {
		return l
	}
	return listener{&proxyproto.Listener{
		Listener: l, ReadHeaderTimeout: timeout,
		ConnPolicy: func(o proxyproto.ConnPolicyOptions) (proxyproto.Policy, error) {
			if p.Trusts(o.Upstream) {
				return proxyproto.USE, nil
			}
			return proxyproto.SKIP, nil
		},
	}}
}

type listener struct{ net.Listener }

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if named, ok := c.(*proxyproto.Conn); ok {
		return Conn{named}, err
	}
	return c, err
}
