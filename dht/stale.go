package dht

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/protocol/ping"
	"github.com/multiformats/go-multistream"
)

const (
	// staleTime is how long a connection may take to show that its other end lives, when there is a newer one.
	staleTime = time.Second
	// silentTime is how long it may take when it is the only one and somebody waited on it in vain: longer than
	// a machine out of breath keeps its peers waiting. It bounds what a cut leaves behind: TCP waits after a cut
	// for up to as long again before it repeats what was lost, and a connection that was closed meanwhile does not.
	silentTime = 3 * time.Second
)

// watchStale has connections checked that a peer no longer knows of. A node that was killed and is back
// connects anew; if it had dialled the old connection over QUIC it cannot say that that one is dead (RFC 9000
// §10.3.1: a client's first connection id has no reset token), and what is sent on it is lost for half a minute.
func (h *Host) watchStale() {
	h.lib.Network().Notify(&network.NotifyBundle{ConnectedF: func(n network.Network, fresh network.Conn) {
		for _, old := range n.ConnsToPeer(fresh.RemotePeer()) {
			if old.ID() != fresh.ID() {
				h.check(old, staleTime)
			}
		}
	}})
}

// suspect has the connections with a peer checked that did not answer, or take what was sent, in time.
func (h *Host) suspect(id peer.ID) {
	for _, c := range h.lib.Network().ConnsToPeer(id) {
		h.check(c, silentTime)
	}
}

// check closes the connection if nobody answers on it within the time. It does not wait for that; Close does.
// A connection that is being checked is not checked once more.
func (h *Host) check(old network.Conn, patience time.Duration) {
	if !h.beginCheck(old.ID()) {
		return
	}
	ctx, done := h.begin(context.Background())
	if done == nil {
		h.endCheck(old.ID())
		return
	}
	go func() {
		defer done()
		defer h.endCheck(old.ID())
		err := answersInTime(patience, func(patience time.Duration) error { return answers(ctx, old, patience) })
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

// breathless is by how much the end of a wait may be noticed too late by a machine that is not out of breath.
const breathless = 50 * time.Millisecond

// answersInTime asks, and once more if this machine is out of breath: so are others on it then, and each new connection
// would cost all of them more than the answer. A dead connection so lasts twice its patience at most, however busy the
// machine is.
func answersInTime(patience time.Duration, ask func(patience time.Duration) error) error {
	began := time.Now()
	err := ask(patience)
	if err == nil || !late(err) || time.Since(began) < patience+breathless {
		return err
	}
	return ask(patience)
}

// answers asks for a protocol that every node speaks, on this very connection.
func answers(ctx context.Context, c network.Conn, patience time.Duration) error {
	until := time.Now().Add(patience)
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	s, err := c.NewStream(network.WithAllowLimitedConn(ctx, "check"))
	if err != nil {
		return err
	}
	defer s.Reset() //nolint:errcheck // of no use any more
	if err := s.SetDeadline(until); err != nil {
		return err
	}
	_, err = multistream.SelectOneOf([]protocol.ID{ping.ID}, s)
	return err
}

// late tells whether the error says that the time was over, of a stream's deadline or of a context.
func late(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}
