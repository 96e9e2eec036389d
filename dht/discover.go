package dht

import (
	"context"
	"errors"
	"fmt"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/core/sec"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	ma "github.com/multiformats/go-multiaddr"
)

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
