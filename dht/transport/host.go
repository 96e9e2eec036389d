// Package transport is a node's libp2p host: its identity, its connections to other nodes, and what runs over them.
//
// A Host listens on TCP and QUIC. It offers ordered byte streams (Handle, Open) and requests of at most 64 KiB
// (HandleAsk, Ask) between peers that have proved their keys to each other (noise, TLS 1.3). It dials peers when a
// caller needs them, prefers TCP, checks connections on which a peer is silent, and limits what one peer or address may
// use.
//
// A Host may be used from many goroutines. It guards its state with a mutex named mu, and no goroutine waits while
// holding it. Close waits for the goroutines of handlers.
//
// Packages dht and cmd import transport. Methods with libp2p types in their signatures are for package dht only.
package transport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	libhost "github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/voxelpopuli/voxeld/dht/address"
	"github.com/voxelpopuli/voxeld/wire"
)

// Host is a node's end of all connections to its peers. Its methods may be called from any goroutine.
type Host struct {
	lib       *gated
	logger    *slog.Logger
	metrics   *metrics
	bootstrap []address.Target

	serves sync.WaitGroup // running handlers
	idle   idleStreams    // streams for questions

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
		find     func(ctx context.Context, id peer.ID) (peer.AddrInfo, error) // looks up a peer's addresses; may be nil
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

// ErrClosed is returned by a closed Host.
var ErrClosed = errors.New("closed")

// LibP2P returns libp2p's host, for package dht.
func (h *Host) LibP2P() libhost.Host { return h.lib }

// Bootstrap returns the addresses of nodes through which to find the others.
func (h *Host) Bootstrap() []address.Target { return h.bootstrap }

// PeerID returns the node's own id, in base58. It survives restarts with the same storage.
func (h *Host) PeerID() string { return h.lib.ID().String() }

// Sign signs with the node's key. The same text has the same signature.
func (h *Host) Sign(text []byte) ([]byte, error) {
	return h.lib.Peerstore().PrivKey(h.lib.ID()).Sign(text) // Ed25519 (RFC 8032) draws no random numbers
}

// Addrs returns the multiaddrs at which this node can be reached, with /p2p/ and its id, in the form that --join
// accepts: first those for other machines, loopback last.
func (h *Host) Addrs() []string {
	addrs := slices.Clone(h.lib.Addrs())
	if own, err := h.lib.Network().InterfaceListenAddresses(); err == nil {
		addrs = append(addrs, own...)
	}
	slices.SortStableFunc(addrs, func(a, b ma.Multiaddr) int { return loopbackLast(a) - loopbackLast(b) })
	return address.Full(h.lib.ID(), addrs)
}

func loopbackLast(addr ma.Multiaddr) int {
	text := addr.String()
	if strings.HasPrefix(text, "/ip4/127.") || strings.HasPrefix(text, "/ip6/::1/") {
		return 1
	}
	return 0
}

// Connected lists the peers to which a connection is open.
func (h *Host) Connected() []string {
	var all []string
	for _, id := range h.lib.Network().Peers() {
		all = append(all, id.String())
	}
	return all
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

type serveFunc func(ctx context.Context, peer string, stream *Stream)

type answerFunc func(ctx context.Context, peer string, question []byte) ([]byte, error)

// bounded returns an error instead of an answer that the asker would reject for its size.
func (f answerFunc) bounded(ctx context.Context, peer string, question []byte) ([]byte, error) {
	body, err := f(ctx, peer, question)
	if err == nil && len(body) > MaxAsk {
		return nil, fmt.Errorf("the answer is too long: %d bytes", len(body))
	}
	return body, err
}

// beginHandler registers a handler. Its context also ends when the host is closed, and Close waits until done is
// called. If the host is already closing, done is nil.
func (h *Host) beginHandler(parent context.Context) (ctx context.Context, done func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mu.closed {
		return nil, nil
	}
	ctx, cancel := context.WithCancel(parent)
	h.mu.last++
	name := h.mu.last
	h.mu.running[name] = cancel
	h.serves.Add(1)
	return ctx, func() {
		cancel()
		h.mu.Lock()
		delete(h.mu.running, name)
		h.mu.Unlock()
		h.serves.Done()
	}
}

const (
	// MaxAsk is the largest size of a question or an answer: 64 KiB.
	MaxAsk = wire.MaxQuestion

	askTimeout    = 15 * time.Second // for the asker without a deadline of its own, and for the answering side
	maxAskFailure = 1 << 10          // bytes of an error text
	// nextQuestion is how long the answering side waits for the next question on the same stream.
	nextQuestion = time.Minute
)
