// Package admission limits what the clients of one address may take and do: players, connections, and actions that cost
// others something.
package admission

import (
	"fmt"
	"net"
	"net/netip"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/internal/metric"
	"github.com/voxelpopuli/voxeld/internal/netaddr"
	"github.com/voxelpopuli/voxeld/wire"
)

// Weights of connections in the count of their address. A client of the original protocol holds up to 82 connections
// for one player; a session is one player.
const (
	ConnectionWeight = 1
	PlayerWeight     = 100
)

// maxAddresses is how many addresses' actions are counted: of those that did something last.
const maxAddresses = 8192

// Limits counts the connections and actions of each address. Of IPv6, a /64 is one address. Loopback is not counted: it
// is this machine, or a proxy on it that serves many clients. Any goroutine may use it.
type Limits struct {
	reached *prometheus.CounterVec // by limit

	mu struct {
		sync.Mutex
		settings Settings
		weights  map[netip.Prefix]int                  // of connections by remote address; no zeros
		http     map[netip.Prefix]int                  // plain HTTP connections by remote address; no zeros
		lands    map[netip.Prefix]*land                // what is held for the clients of an address; no empty ones
		actions  *lru.Cache[netip.Prefix, *allowances] // by remote address
	}
}

// The labels of limits in metrics, with those of actions.
const players, connections, views = "players", "connections", "views"

// NewLimits returns the limits of settings.
func NewLimits(p Settings, r prometheus.Registerer) *Limits {
	limits := metric.Values("limit", players, connections, views)
	for a := range actions {
		limits.Values = append(limits.Values, a.String())
	}
	l := &Limits{reached: metric.NewCounterVec(prometheus.CounterOpts{
		Name: "voxeld_address_limits_total",
		Help: "Times that an address reached a limit: players, connections, views (land that its players see), joins, edits, logins (of other games), tiles (surface tiles), names, claims, commands (of a day; set quota) were refused; foundings, explorations (regions around original clients' players), registrations, player_queries (of original clients), bytes (to its clients) waited.",
	}, limits)}
	r.MustRegister(l.reached)
	l.mu.weights, l.mu.http = make(map[netip.Prefix]int), make(map[netip.Prefix]int)
	l.mu.lands = make(map[netip.Prefix]*land)
	actions, err := lru.New[netip.Prefix, *allowances](maxAddresses)
	if err != nil {
		panic(err) // only if the size is not positive
	}
	l.mu.actions = actions
	l.Set(p)
	return l
}

// Set changes the limits to those of settings. Players who are here may stay, and what was used stays used.
func (l *Limits) Set(p Settings) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.settings = p
	for _, site := range l.mu.actions.Keys() {
		if all, known := l.mu.actions.Peek(site); known {
			_, counted := Site(site.Addr())
			all.set(newAllowances(p, counted))
		}
	}
}

// AdmitHTTP counts an HTTP connection against its address. It reports false if the address has too many. The returned
// release must be called once, when the connection ends or becomes a WebSocket: those are players.
func (l *Limits) AdmitHTTP(remote net.Addr) (release func(), ok bool) {
	site, counted := siteOf(remote)
	if !counted {
		return func() {}, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.http[site] >= l.mu.settings.connections() {
		l.reached.WithLabelValues(connections).Inc()
		return nil, false
	}
	l.mu.http[site]++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.mu.http[site]--; l.mu.http[site] == 0 {
			delete(l.mu.http, site)
		}
	}, true
}

// Admit counts a connection of the given weight against its address. The returned release must be called once, when the
// connection ends. The error is a *wire.Error.
func (l *Limits) Admit(remote net.Addr, weight int) (release func(), err error) {
	site, counted := siteOf(remote)
	if !counted {
		return func() {}, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.weights[site]+weight > l.mu.settings.PerAddress*PlayerWeight {
		l.reached.WithLabelValues(players).Inc()
		return nil, &wire.Error{Code: wire.FailFull, Message: fmt.Sprintf(
			"As many players as this node allows play from your address: %d.", l.mu.settings.PerAddress)}
	}
	l.mu.weights[site] += weight
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.mu.weights[site] -= weight; l.mu.weights[site] == 0 {
			delete(l.mu.weights, site)
		}
	}, nil
}

// SameAddress reports whether two connections come from the same address.
func SameAddress(a, b net.Addr) bool {
	return netaddr.ChargedFrom(a) == netaddr.ChargedFrom(b)
}

// siteOf returns the Site of a connection. Addresses that are not IP addresses share one count, that of the zero
// Prefix.
func siteOf(remote net.Addr) (site netip.Prefix, counted bool) {
	ap, err := netip.ParseAddrPort(remote.String())
	if err != nil {
		return netip.Prefix{}, true
	}
	return Site(ap.Addr())
}

// Site returns what clients at an address are counted by, and reports whether they are: on loopback they are not.
func Site(address netip.Addr) (site netip.Prefix, counted bool) {
	return netaddr.Charged(address), !address.Unmap().IsLoopback()
}
