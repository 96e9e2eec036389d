package dht

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/crypto"
	libhost "github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	quic "github.com/libp2p/go-libp2p/p2p/transport/quic"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	ma "github.com/multiformats/go-multiaddr"
	"github.com/prometheus/client_golang/prometheus"
)

// HostOptions configure a Host.
type HostOptions struct {
	Storage Storage // required: keeps the identity and the known peers

	// Listen are the multiaddrs to listen on, for example /ip4/0.0.0.0/tcp/4001 (required). A TCP address adds QUIC on
	// the UDP port of the same number, unless QUIC addresses are given too. Port 0 takes any free port.
	Listen []string

	// Announce are additional multiaddrs at which other nodes reach this one, for a NAT or a container whose port is
	// published elsewhere.
	Announce []string

	// Bootstrap are the multiaddrs of nodes through which to find the others. With /p2p/<peer id> only that peer is
	// accepted. Without it, any peer that answers at the address is trusted, so an attacker on the path may answer
	// instead. DHT.Run keeps dialling these addresses.
	Bootstrap []string

	Logger     *slog.Logger          // nil discards
	Registerer prometheus.Registerer // nil registers nowhere
}

// Host is a node's end of all connections to its peers. Its methods may be called from any goroutine.
type Host struct {
	lib       libhost.Host
	storage   Storage
	logger    *slog.Logger
	metrics   *metrics
	bootstrap []target

	serves sync.WaitGroup // running handlers
	spare  spare          // streams for questions

	mu struct {
		sync.Mutex
		closed   bool
		handlers map[string]serveFunc
		answers  map[string]answerFunc
		running  map[uint64]context.CancelFunc                                // one for each running handler
		last     uint64                                                       // number of the handler or stream that began last
		checking map[string]struct{}                                          // connections, by their ids
		dialed   map[peer.ID]time.Time                                        // when its backoff was last cleared
		searched map[peer.ID]time.Time                                        // when the network was last asked for its address
		find     func(ctx context.Context, id peer.ID) (peer.AddrInfo, error) // set by Join
		table    func() int                                                   // peers in the routing table; set by Join
	}
}

// PeerInfo describes a peer known to this node.
type PeerInfo struct {
	ID        string        // base58
	Addrs     []string      // multiaddrs without /p2p/, known to work at some time
	Connected bool          // a connection is open now
	Inbound   bool          // the peer opened it
	Since     time.Time     // when it was opened
	Latency   time.Duration // smoothed round trip; 0 while unknown
}

// ErrClosed is returned by a closed Host or DHT.
var ErrClosed = errors.New("closed")

// NewHost starts listening and returns the node's host. It fails when any of the addresses cannot be listened on.
func NewHost(opts HostOptions) (*Host, error) {
	if opts.Storage == nil {
		return nil, errors.New("new host: no storage given")
	}
	listen, err := parseListen(opts.Listen)
	if err != nil {
		return nil, err
	}
	announce, err := parseTargets(opts.Announce)
	if err != nil {
		return nil, err
	}
	bootstrap, err := parseTargets(opts.Bootstrap)
	if err != nil {
		return nil, err
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	key, err := loadIdentity(opts.Storage)
	if err != nil {
		return nil, err
	}
	gone := newRecentlyLost()
	lib, err := startLib(key, announce, gone)
	if err != nil {
		return nil, err
	}
	h := &Host{lib: lib, storage: opts.Storage, logger: opts.Logger, bootstrap: bootstrap}
	h.mu.handlers = make(map[string]serveFunc)
	h.mu.answers = make(map[string]answerFunc)
	h.mu.running = make(map[uint64]context.CancelFunc)
	h.mu.checking = make(map[string]struct{})
	h.mu.dialed = make(map[peer.ID]time.Time)
	h.mu.searched = make(map[peer.ID]time.Time)
	for _, addr := range listen {
		if err := lib.Network().(*swarm.Swarm).AddListenAddr(addr); err != nil {
			return nil, errors.Join(listenError(addr, err), h.Close())
		}
	}
	gone.watch(lib.Network())
	h.watchStale()
	h.metrics, err = newMetrics(opts.Registerer, h)
	if err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

// startLib starts libp2p's host, which does not listen yet. Its network is a *swarm.Swarm.
func startLib(key crypto.PrivKey, announce []target, gone *recentlyLost) (libhost.Host, error) {
	resources, err := newResourceManager()
	if err != nil {
		return nil, err
	}
	conns, err := newConnManager()
	if err != nil {
		return nil, errors.Join(err, resources.Close())
	}
	lib, err := libp2p.New(
		libp2p.Identity(key),
		// Addresses are listened on below, one by one: libp2p returns no error if one of many works.
		libp2p.NoListenAddrs,
		// With SO_REUSEPORT a second daemon would get the port without an error, and half of the connections.
		libp2p.Transport(tcp.NewTCPTransport, tcp.DisableReuseport()),
		libp2p.Transport(quic.NewTransport),
		libp2p.Security(noise.ID, noise.New),
		libp2p.Muxer(yamux.ID, newMuxer()),
		libp2p.DisableRelay(),
		libp2p.ResourceManager(resources),
		libp2p.ConnectionManager(conns),
		libp2p.ConnectionGater(gone),
		// A walk waits for a dead peer as long as a dial to it hangs, and QUIC hangs where TCP is refused at once.
		libp2p.SwarmOpts(swarm.WithDialTimeout(dialTimeout), swarm.WithDialTimeoutLocal(dialTimeoutLocal),
			swarm.WithDialRanker(tcpFirst)),
		libp2p.DisableMetrics(),
		libp2p.UserAgent("voxeld"),
		libp2p.AddrsFactory(func(addrs []ma.Multiaddr) []ma.Multiaddr {
			addrs = slices.Clone(addrs)
			for _, t := range announce {
				addrs = append(addrs, t.addr)
			}
			return addrs
		}),
	)
	if err != nil {
		return nil, fmt.Errorf("start host: %w", err)
	}
	if _, ok := lib.Network().(*swarm.Swarm); !ok {
		return nil, errors.Join(fmt.Errorf("start host: network is a %T", lib.Network()), lib.Close())
	}
	return lib, nil
}

// measureEvery is how often a connection's round trip is measured. The result only determines how fast the windows of its
// streams may grow. Each measurement costs both ends two frames; at yamux's default of 30 s that would be most of the
// traffic between idle nodes. yamux detects a dead connection by separate pings, every 30 s without traffic.
const measureEvery = 10 * time.Minute

func newMuxer() *yamux.Transport {
	muxer := *yamux.DefaultTransport
	muxer.MeasureRTTInterval = measureEvery
	return &muxer
}

// PeerID returns the node's own id, in base58. It survives restarts with the same storage.
func (h *Host) PeerID() string { return h.lib.ID().String() }

// Addrs returns the multiaddrs at which this node can be reached, with /p2p/ and its id, in the form that --join accepts:
// first those for other machines, loopback last.
func (h *Host) Addrs() []string {
	addrs := slices.Clone(h.lib.Addrs())
	if own, err := h.lib.Network().InterfaceListenAddresses(); err == nil {
		addrs = append(addrs, own...)
	}
	slices.SortStableFunc(addrs, func(a, b ma.Multiaddr) int { return loopbackLast(a) - loopbackLast(b) })
	return fullAddrs(h.lib.ID(), addrs)
}

func loopbackLast(addr ma.Multiaddr) int {
	text := addr.String()
	if strings.HasPrefix(text, "/ip4/127.") || strings.HasPrefix(text, "/ip6/::1/") {
		return 1
	}
	return 0
}

// Peers returns the peers that this node is connected to or has an address of, by id.
func (h *Host) Peers() []PeerInfo {
	var infos []PeerInfo
	store := h.lib.Peerstore()
	for _, id := range store.Peers() {
		if id == h.lib.ID() {
			continue
		}
		info := PeerInfo{ID: id.String(), Latency: store.LatencyEWMA(id)}
		for _, addr := range store.Addrs(id) {
			info.Addrs = append(info.Addrs, addr.String())
		}
		slices.Sort(info.Addrs)
		for _, conn := range h.lib.Network().ConnsToPeer(id) {
			stat := conn.Stat()
			if !info.Connected || stat.Opened.Before(info.Since) {
				info.Since, info.Inbound = stat.Opened, stat.Direction == network.DirInbound
			}
			info.Connected = true
		}
		if info.Connected || len(info.Addrs) > 0 {
			infos = append(infos, info)
		}
	}
	slices.SortFunc(infos, func(a, b PeerInfo) int { return strings.Compare(a.ID, b.ID) })
	return infos
}

// Connect dials a multiaddr and returns the id of the peer that answered there.
//
// Without /p2p/<peer id> in addr, the dial itself determines the id. Nothing then proves that the right peer answered;
// only the id is certain from then on.
func (h *Host) Connect(ctx context.Context, addr string) (string, error) {
	t, err := parseTarget(addr)
	if err != nil {
		return "", err
	}
	id, err := h.connect(ctx, t)
	if err != nil {
		return "", fmt.Errorf("connect to %s: %w", addr, err)
	}
	return id.String(), nil
}

var errSelf = errors.New("the address is this node's own")

func (h *Host) connect(ctx context.Context, t target) (peer.ID, error) {
	if t.id == "" {
		id, err := h.discoverID(ctx, t.addr)
		if err != nil {
			return "", err
		}
		t.id = id
	}
	if t.id == h.lib.ID() {
		return "", errSelf
	}
	// The caller decides when to retry; libp2p would refuse for up to five minutes after failures.
	h.clearBackoff(t.id)
	if err := h.lib.Connect(ctx, peer.AddrInfo{ID: t.id, Addrs: []ma.Multiaddr{t.addr}}); err != nil {
		return "", err
	}
	h.lib.Peerstore().AddAddr(t.id, t.addr, peerstore.ConnectedAddrTTL)
	return t.id, nil
}

func (h *Host) tableSize() int {
	h.mu.Lock()
	size := h.mu.table
	h.mu.Unlock()
	if size == nil {
		return 0
	}
	return size()
}

func (h *Host) clearBackoff(id peer.ID) {
	h.lib.Network().(*swarm.Swarm).Backoff().Clear(id)
}

// dialEvery is the least time between two dials to a peer that a caller wants to reach. libp2p would let the waits grow
// to minutes, but a peer that was only cut off must be back within seconds.
const dialEvery = 2 * time.Second

// mayDial clears libp2p's backoff for the peer, if the last dial was more than dialEvery ago.
func (h *Host) mayDial(id peer.ID) {
	if h.allow(h.mu.dialed, id, dialEvery) {
		h.clearBackoff(id)
	}
}

// searchEvery is how often the network is asked for another address of a peer that does not answer at its known ones. A
// walk dials other peers, which may not answer either; without a bound, overloaded nodes would keep each other
// overloaded.
const searchEvery = 10 * time.Second

// maySearch reports whether the last search for the peer's address is more than searchEvery ago. If so, it records a
// search.
func (h *Host) maySearch(id peer.ID) bool { return h.allow(h.mu.searched, id, searchEvery) }

// allow reports whether the peer was not noted within the given time, and then notes it.
func (h *Host) allow(noted map[peer.ID]time.Time, id peer.ID, within time.Duration) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for other, at := range noted {
		if time.Since(at) > within {
			delete(noted, other)
		}
	}
	if _, lately := noted[id]; lately {
		return false
	}
	noted[id] = time.Now()
	return true
}

// Close ends all connections, cancels the handlers' contexts and waits until the handlers have returned.
func (h *Host) Close() error {
	h.mu.Lock()
	h.mu.closed = true
	for _, cancel := range h.mu.running {
		cancel()
	}
	h.mu.Unlock()
	err := h.lib.Close()
	h.serves.Wait()
	if err != nil {
		return fmt.Errorf("close host: %w", err)
	}
	return nil
}
