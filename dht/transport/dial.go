package transport

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	libhost "github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/core/sec"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/voxelpopuli/voxeld/dht/address"
)

// SetAddressFinder sets the function that finds the addresses of a peer that is not reached at those known here. nil
// removes it.
func (h *Host) SetAddressFinder(find func(ctx context.Context, id peer.ID) (peer.AddrInfo, error)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.find = find
}

// Connect dials a multiaddr and returns the id of the peer that answered there.
//
// Without /p2p/<peer id> in addr, the dial itself determines the id. Nothing then proves that the right peer answered;
// only the id is certain from then on.
func (h *Host) Connect(ctx context.Context, addr string) (string, error) {
	t, err := address.Parse(addr)
	if err != nil {
		return "", err
	}
	id, err := h.Dial(ctx, t)
	if err != nil {
		return "", fmt.Errorf("connect to %s: %w", addr, err)
	}
	return id.String(), nil
}

// ConnectPeer connects to a peer, and returns the address at which it answered. It ignores addresses that it cannot
// dial, and also tries those that were known before.
func (h *Host) ConnectPeer(ctx context.Context, name string, addrs []string) (string, error) {
	id, err := peer.Decode(name)
	if err != nil {
		return "", fmt.Errorf("parse peer id %q: %w", name, err)
	}
	info := peer.AddrInfo{ID: id}
	for _, addr := range addrs {
		if t, err := address.Parse(addr); err == nil && (t.ID == "" || t.ID == id) {
			info.Addrs = append(info.Addrs, t.Addr)
		}
	}
	err = h.DialAgain(ctx, info)
	if conns := h.lib.Network().ConnsToPeer(id); len(conns) > 0 { // whatever libp2p learned of it
		return conns[0].RemoteMultiaddr().String(), nil
	}
	return "", cmp.Or(err, network.ErrNoConn)
}

// ErrSelf is returned for an address that leads back to the node itself.
var ErrSelf = errors.New("the address is this node's own")

// Dial dials a target and returns the id of the peer that answered there.
func (h *Host) Dial(ctx context.Context, t address.Target) (peer.ID, error) {
	if t.ID == "" {
		id, err := h.discoverID(ctx, t.Addr)
		if err != nil {
			return "", err
		}
		t.ID = id
	}
	if t.ID == h.lib.ID() {
		return "", ErrSelf
	}
	// The caller decides when to retry; libp2p would refuse for up to five minutes after failures.
	clearBackoff(h.lib, t.ID)
	if err := h.lib.Connect(ctx, peer.AddrInfo{ID: t.ID, Addrs: []ma.Multiaddr{t.Addr}}); err != nil {
		return "", err
	}
	h.lib.Peerstore().AddAddr(t.ID, t.Addr, peerstore.ConnectedAddrTTL)
	return t.ID, nil
}

// DialAgain connects to a peer at the addresses given or known, also if libp2p would still wait after failures.
func (h *Host) DialAgain(ctx context.Context, info peer.AddrInfo) error {
	clearBackoff(h.lib, info.ID)
	return h.lib.Connect(ctx, info)
}

func clearBackoff(lib libhost.Host, id peer.ID) {
	lib.Network().(*swarm.Swarm).Backoff().Clear(id)
}

// reach connects to a peer, by the addresses known here or by those found in the DHT.
func (h *Host) reach(ctx context.Context, id peer.ID) error {
	if h.lib.Network().Connectedness(id) == network.Connected {
		return nil
	}
	h.mu.Lock()
	find, closed := h.mu.find, h.mu.closed
	h.mu.Unlock()
	if closed {
		return ErrClosed
	}
	h.mayDial(id)
	known := h.lib.Peerstore().Addrs(id)
	var dialed error
	if len(known) > 0 || find == nil {
		dialed = h.lib.Connect(ctx, peer.AddrInfo{ID: id})
		if dialed == nil || find == nil || ctx.Err() != nil || !h.maySearch(id) {
			return dialed
		}
	}
	info, err := find(ctx, id)
	if err != nil {
		return errors.Join(dialed, fmt.Errorf("find its address: %w", err))
	}
	return h.lib.Connect(ctx, info)
}

// dialEvery is the least time between two dials to a peer that a caller wants to reach. libp2p would let the waits grow
// to minutes, but a peer that was only cut off must be back within seconds.
const dialEvery = 2 * time.Second

// mayDial clears libp2p's backoff for the peer, if the last dial was more than dialEvery ago.
func (h *Host) mayDial(id peer.ID) {
	if h.allow(h.mu.dialed, id, dialEvery) {
		clearBackoff(h.lib, id)
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

// discoverID determines which peer answers at addr. libp2p dials only peers with a known id. So discoverID dials a
// made-up id; the handshake fails with the id that the peer proved instead. The following dial to that id must prove it
// again.
func (h *Host) discoverID(ctx context.Context, addr ma.Multiaddr) (peer.ID, error) {
	madeUp, err := randomID()
	if err != nil {
		return "", fmt.Errorf("learn peer id: %w", err)
	}
	defer func() {
		h.lib.Peerstore().ClearAddrs(madeUp)
		h.lib.Peerstore().RemovePeer(madeUp)
	}()
	h.lib.Peerstore().AddAddr(madeUp, addr, peerstore.TempAddrTTL)
	_, err = h.lib.Network().DialPeer(ctx, madeUp)
	var mismatch sec.ErrPeerIDMismatch
	switch {
	case errors.As(err, &mismatch):
		return mismatch.Actual, nil
	case errors.Is(err, swarm.ErrDialToSelf):
		return h.lib.ID(), nil
	case err == nil:
		return "", errors.New("learn peer id: the peer accepted a made-up id")
	}
	return "", fmt.Errorf("learn peer id: %w", withoutMadeUpID(err))
}

// withoutMadeUpID removes the made-up id from the error of a failed dial.
func withoutMadeUpID(err error) error {
	var dial *swarm.DialError
	if !errors.As(err, &dial) {
		return err
	}
	var causes []error
	for _, at := range dial.DialErrors {
		causes = append(causes, at.Cause)
	}
	if len(causes) == 0 {
		causes = append(causes, dial.Cause)
	}
	return errors.Join(causes...)
}

// randomID returns a peer id that no node has.
func randomID() (peer.ID, error) {
	key, _, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		return "", err
	}
	return peer.IDFromPrivateKey(key)
}
