package transport

import (
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/core/sec"
	"github.com/libp2p/go-libp2p/core/transport"
	basichost "github.com/libp2p/go-libp2p/p2p/host/basic"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"
	"github.com/libp2p/go-libp2p/p2p/host/observedaddrs"
	"github.com/libp2p/go-libp2p/p2p/host/peerstore/pstoremem"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	"github.com/libp2p/go-libp2p/p2p/net/upgrader"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	libquic "github.com/libp2p/go-libp2p/p2p/transport/quic"
	"github.com/libp2p/go-libp2p/p2p/transport/quicreuse"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	ma "github.com/multiformats/go-multiaddr"
	"github.com/quic-go/quic-go"

	"github.com/voxelpopuli/voxeld/dht/address"
)

// lib is libp2p's host, closed together with what the host does not close by itself.
type lib struct {
	*basichost.BasicHost
	close func() error // does nothing the second time
}

// Close closes the host, its network and its sockets.
func (l *lib) Close() error { return l.close() }

// startLib starts libp2p's host, which does not listen yet. It puts together what libp2p.New would, from the parts that
// nodes use: libp2p.New also links WebRTC, WebTransport, WebSocket and relays.
func startLib(key crypto.PrivKey, announce []address.Target, gates connGater, patient bool) (h *lib, err error) {
	var opened []func() error // closed again after an error, the newest first
	defer func() {
		if err != nil {
			err = fmt.Errorf("start host: %w", err)
			for _, closed := range slices.Backward(opened) {
				err = errors.Join(err, closed())
			}
		}
	}()
	resources, err := newResourceManager()
	if err != nil {
		return nil, err
	}
	opened = append(opened, resources.Close)
	conns, err := newConnManager()
	if err != nil {
		return nil, err
	}
	opened = append(opened, conns.Close)
	peers, err := pstoremem.NewPeerstore()
	if err != nil {
		return nil, err
	}
	opened = append(opened, peers.Close)
	id, err := addIdentity(peers, key)
	if err != nil {
		return nil, err
	}
	udp, err := newUDP(key, resources)
	if err != nil {
		return nil, err
	}
	opened = append(opened, udp.Close)
	// A walk waits for a dead peer as long as a dial to it hangs, and QUIC hangs where TCP is refused at once.
	opts := []swarm.Option{
		swarm.WithConnectionGater(gates), swarm.WithResourceManager(resources), swarm.WithDialRanker(tcpFirst), swarm.WithDialTimeout(dialTimeout),
	}
	if patient { // libp2p skips UDP or IPv6 after many failures
		opts = append(opts, swarm.WithDialTimeoutLocal(dialTimeout), swarm.WithUDPBlackHoleSuccessCounter(nil), swarm.WithIPv6BlackHoleSuccessCounter(nil))
	} else {
		opts = append(opts, swarm.WithDialTimeoutLocal(dialTimeoutLocal))
	}
	bus := eventbus.NewBus()
	sw, err := swarm.NewSwarm(id, peers, bus, opts...)
	if err != nil {
		return nil, err
	}
	opened = append(opened, sw.Close)
	if err := addTransports(sw, key, udp, resources, gates); err != nil {
		return nil, err
	}
	observed, err := observedaddrs.NewManager(bus, sw)
	if err != nil {
		return nil, err
	}
	basic, err := basichost.NewHost(sw, &basichost.HostOpts{
		EventBus: bus, ConnManager: conns, EnablePing: true, UserAgent: "voxeld", ObservedAddrsManager: observed,
		AddrsFactory: func(addrs []ma.Multiaddr) []ma.Multiaddr {
			addrs = slices.Clone(addrs)
			for _, t := range announce {
				addrs = append(addrs, t.Addr)
			}
			return addrs
		},
	})
	if err != nil {
		return nil, errors.Join(err, observed.Close())
	}
	observed.Start(sw)
	basic.Start()
	return &lib{basic, sync.OnceValue(func() error { // the network before udp, which has its sockets
		return errors.Join(observed.Close(), sw.Close(), udp.Close(), basic.Close())
	})}, nil
}

func addIdentity(peers peerstore.Peerstore, key crypto.PrivKey) (peer.ID, error) {
	id, err := peer.IDFromPublicKey(key.GetPublic())
	if err != nil {
		return "", err
	}
	return id, errors.Join(peers.AddPrivKey(id, key), peers.AddPubKey(id, key.GetPublic()))
}

// addTransports adds TCP with noise and yamux, and QUIC.
func addTransports(sw *swarm.Swarm, key crypto.PrivKey, udp *quicreuse.ConnManager, resources network.ResourceManager, gates connGater) error {
	muxers := []upgrader.StreamMuxer{{ID: yamux.ID, Muxer: newMuxer()}}
	security, err := noise.New(noise.ID, key, muxers)
	if err != nil {
		return err
	}
	upgrade, err := upgrader.New([]sec.SecureTransport{security}, muxers, nil, resources, gates)
	if err != nil {
		return err
	}
	// With SO_REUSEPORT a second daemon would get the port without an error, and half of the connections.
	overTCP, err := tcp.NewTCPTransport(upgrade, resources, nil, tcp.DisableReuseport())
	if err != nil {
		return err
	}
	overQUIC, err := libquic.NewTransport(key, udp, nil, gates, resources)
	if err != nil {
		return err
	}
	for _, t := range []transport.Transport{overTCP, overQUIC} {
		if err := sw.AddTransport(t); err != nil {
			return err
		}
	}
	return nil
}

// newUDP returns the UDP sockets of QUIC. A connection counts in the resource manager before its handshake.
func newUDP(key crypto.PrivKey, resources network.ResourceManager) (*quicreuse.ConnManager, error) {
	secret, err := key.Raw()
	if err != nil {
		return nil, err
	}
	var reset quic.StatelessResetKey
	var token quic.TokenGeneratorKey
	for info, to := range map[string][]byte{"libp2p quic stateless reset key": reset[:], "libp2p quic token generator key": token[:]} {
		derived, err := hkdf.Key(sha256.New, secret, nil, info, len(to))
		if err != nil {
			return nil, err
		}
		copy(to, derived)
	}
	return quicreuse.NewConnManager(reset, token,
		quicreuse.ConnContext(func(ctx context.Context, client *quic.ClientInfo) (context.Context, error) {
			addr, err := quicreuse.ToQuicMultiaddr(client.RemoteAddr, quic.Version1)
			if err != nil {
				addr = nil // the resource manager decides
			}
			scope, err := resources.OpenConnection(network.DirInbound, false, addr)
			if err != nil {
				return ctx, err
			}
			ctx = network.WithConnManagementScope(ctx, scope)
			context.AfterFunc(ctx, scope.Done)
			return ctx, nil
		}),
		quicreuse.VerifySourceAddress(func(addr net.Addr) bool { return resources.VerifySourceAddress(addr) }))
}
