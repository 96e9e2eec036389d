package transport

import (
	"context"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/protocol/ping"
	"github.com/multiformats/go-multistream"
)

const (
	// staleTime is how long a connection may take to show that its other end is alive, when there is a newer
	// connection.
	staleTime = time.Second
	// silentTime is how long it may take when it is the only connection and a caller has waited on it for too long. It
	// is longer than an overloaded machine delays its answers. It limits the aftermath of a network cut: after a cut
	// TCP pauses for up to as long again before it retransmits, and a connection that was closed meanwhile does not.
	silentTime = 3 * time.Second
)

// watchStale checks connections that the peer may have lost. A node that was killed and restarted connects anew. If it
// had dialled the old connection over QUIC, it cannot signal that the old one is dead (RFC 9000 §10.3.1: a client's
// first connection id has no reset token), and data sent on it is lost for half a minute.
func (h *Host) watchStale() {
	h.lib.Network().Notify(&network.NotifyBundle{ConnectedF: func(n network.Network, fresh network.Conn) {
		for _, old := range n.ConnsToPeer(fresh.RemotePeer()) {
			if old.ID() != fresh.ID() {
				h.check(old, staleTime)
			}
		}
	}})
}

// CheckConnections checks the connections to a peer that did not answer, or did not accept data, in time.
func (h *Host) CheckConnections(id peer.ID) {
	for _, c := range h.lib.Network().ConnsToPeer(id) {
		h.check(c, silentTime)
	}
}

// check closes the connection if the peer does not answer on it within the time. It returns at once; Close waits for
// the check. A connection that is already being checked is not checked again.
func (h *Host) check(old network.Conn, patience time.Duration) {
	if !h.beginCheck(old.ID()) {
		return
	}
	ctx, done := h.beginHandler(context.Background())
	if done == nil {
		h.endCheck(old.ID())
		return
	}
	go func() {
		defer done()
		defer h.endCheck(old.ID())
		err := probeWithRetry(patience, func(patience time.Duration) error { return probe(ctx, old, patience) })
		if err != nil {
			h.logger.Debug("stale connection closed", "peer", old.RemotePeer().String(), "error", err)
			old.Close() //nolint:errcheck // it is dead
		}
	}()
}

func (h *Host) beginCheck(conn string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, under := h.mu.checking[conn]; under {
		return false
	}
	h.mu.checking[conn] = struct{}{}
	return true
}

func (h *Host) endCheck(conn string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.mu.checking, conn)
}

// overloadDelay is the delay in noticing the end of a wait above which this machine counts as overloaded.
const overloadDelay = 50 * time.Millisecond

// probeWithRetry asks, and asks again if this machine is overloaded: other nodes on it are then, too, and each new
// connection would cost all of them more than the answer. So a dead connection lasts at most twice its time limit,
// whatever the load.
func probeWithRetry(patience time.Duration, ask func(patience time.Duration) error) error {
	began := time.Now()
	err := ask(patience)
	if err == nil || !isTimeout(err) || time.Since(began) < patience+overloadDelay {
		return err
	}
	return ask(patience)
}

// probe asks for a protocol that every node serves, on this very connection.
func probe(ctx context.Context, c network.Conn, patience time.Duration) error {
	until := time.Now().Add(patience)
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	s, err := c.NewStream(network.WithAllowLimitedConn(ctx, "check"))
	if err != nil {
		return err
	}
	defer s.Reset() //nolint:errcheck // not needed any more
	if err := s.SetDeadline(until); err != nil {
		return err
	}
	_, err = multistream.SelectOneOf([]protocol.ID{ping.ID}, s)
	return err
}
