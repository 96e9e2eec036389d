package transport

import (
	"context"
	"errors"
	"log/slog"
	"syscall"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/dht/address"
	"github.com/voxelpopuli/voxeld/internal/isolate"
)

// Options configure a Host.
type Options struct {
	Storage Storage // keeps the identity (required)

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

	// Patient hosts wait for an answer at an address in a private network for as long as elsewhere, and try every
	// address. They ask nodes that may be gone, or busy.
	Patient bool

	Logger     *slog.Logger          // nil discards
	Registerer prometheus.Registerer // nil registers nowhere
}

// NewHost starts listening and returns the node's host. It fails when any of the addresses cannot be listened on.
func NewHost(opts Options) (*Host, error) {
	if opts.Storage == nil {
		return nil, errors.New("new host: no storage given")
	}
	listen, err := address.ParseListen(opts.Listen)
	if err != nil {
		return nil, err
	}
	announce, err := address.ParseAll(opts.Announce)
	if err != nil {
		return nil, err
	}
	bootstrap, err := address.ParseAll(opts.Bootstrap)
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
	s := newStrangers()
	lib, err := startLib(key, announce, connGater{gone, s}, opts.Patient)
	if err != nil {
		return nil, err
	}
	panics := isolate.New(opts.Logger, opts.Registerer)
	h := &Host{lib: &gated{Host: lib, strangers: s, panics: panics}, logger: opts.Logger, bootstrap: bootstrap}
	h.mu.handlers = make(map[string]serveFunc)
	h.mu.answers = make(map[string]answerFunc)
	h.mu.running = make(map[uint64]context.CancelFunc)
	h.mu.checking = make(map[string]struct{})
	h.mu.dialed = make(map[peer.ID]time.Time)
	h.mu.searched = make(map[peer.ID]time.Time)
	for _, addr := range listen {
		err := lib.Network().(*swarm.Swarm).AddListenAddr(addr)
		if errors.Is(err, syscall.EAFNOSUPPORT) && manet.IsIPUnspecified(addr) && addr[0].Protocol().Code == ma.P_IP6 && len(lib.Network().ListenAddresses()) > 0 {
			opts.Logger.Info("this machine has no IPv6: the node listens on IPv4 only", "listen", addr.String())
			continue
		}
		if err != nil {
			return nil, errors.Join(address.ListenError(addr, err), h.Close())
		}
	}
	gone.watch(lib.Network())
	h.watchStale()
	h.metrics, err = newMetrics(opts.Registerer, s.refused, func() int { return len(lib.Network().Peers()) })
	if err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

// measureEvery is how often a connection's round trip is measured. The result only determines how fast the windows of
// its streams may grow. Each measurement costs both ends two frames; at yamux's default of 30 s that would be most of
// the traffic between idle nodes. yamux detects a dead connection by separate pings, every 30 s without traffic.
const measureEvery = 10 * time.Minute

func newMuxer() *yamux.Transport {
	muxer := *yamux.DefaultTransport
	muxer.MeasureRTTInterval = measureEvery
	return &muxer
}
