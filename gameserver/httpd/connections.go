package httpd

import (
	"net"
	"net/http"
	"sync"

	"github.com/voxelpopuli/voxeld/gameserver/realip"
)

// maxConnections bounds the connections of a server that are no WebSockets. Newcomers are closed.
const maxConnections = 4096

// connections counts connections until they are closed or become WebSockets.
type connections struct {
	proxies realip.Proxies
	admit   func(remote net.Addr) (release func(), ok bool) // counts a connection against its address

	mu struct { // taken before the lock of admission.Limits
		sync.Mutex
		releases map[net.Conn]func() // of all counted connections
	}
}

func newConnections(proxies realip.Proxies, admit func(net.Addr) (func(), bool)) *connections {
	c := &connections{proxies: proxies, admit: admit}
	c.mu.releases = make(map[net.Conn]func())
	return c
}

// track is the server's ConnState hook. A new connection of a trusted proxy is counted against its client's address as
// soon as that is known: when the first bytes arrive.
func (c *connections) track(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		if !c.add(conn) || !fromProxy(conn) && !c.count(conn) {
			conn.Close() //nolint:errcheck // the server sees the error
		}
	case http.StateActive:
		if fromProxy(conn) && !c.count(conn) {
			conn.Close() //nolint:errcheck // the server sees the error
		}
	case http.StateHijacked, http.StateClosed:
		c.remove(conn)
	case http.StateIdle:
	}
}

// fromProxy reports whether a connection comes from a trusted proxy.
func fromProxy(conn net.Conn) bool {
	for above, ok := conn.(interface{ NetConn() net.Conn }); ok; above, ok = conn.(interface{ NetConn() net.Conn }) {
		conn = above.NetConn() // of TLS
	}
	_, ok := conn.(realip.Conn)
	return ok
}

func nothing() {}

// add reports false if there are too many connections.
func (c *connections) add(conn net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.mu.releases) >= maxConnections {
		return false
	}
	c.mu.releases[conn] = nil
	return true
}

// count counts a connection against its address, once. It reports false if the address has too many. A proxy's own
// address is not limited: it serves many clients.
func (c *connections) count(conn net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if release, known := c.mu.releases[conn]; !known || release != nil {
		return known
	}
	remote := conn.RemoteAddr()
	if c.proxies.Trusts(remote) {
		c.mu.releases[conn] = nothing
		return true
	}
	release, ok := c.admit(remote)
	if ok {
		c.mu.releases[conn] = release
	}
	return ok
}

func (c *connections) remove(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if release := c.mu.releases[conn]; release != nil {
		release()
	}
	delete(c.mu.releases, conn)
}
