package transport

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	libhost "github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"

	"github.com/voxelpopuli/voxeld/internal/isolate"
)

const (
	// awaitTime bounds how long a stream waits until its peer is admitted.
	awaitTime = 5 * time.Second
	// strangerTime is how long a connection to a peer that is not admitted stays open: long enough to obtain a
	// certificate.
	strangerTime = 15 * time.Second
	// lookAtStranger is how often such a connection is looked at.
	lookAtStranger = 500 * time.Millisecond
)

// Gate decides which peers are served.
type Gate interface {
	// Protocol returns the protocol that strangers may use.
	Protocol() string
	// Admitted reports whether a peer is admitted.
	Admitted(id peer.ID) bool
	// Refused reports whether a peer has shown a certificate that does not admit it.
	Refused(id peer.ID) bool
	// Await waits until a peer is admitted, and returns why it is not.
	Await(ctx context.Context, id peer.ID) error
	// Forget is called when the last connection to a peer has ended.
	Forget(id peer.ID)
}

// gated is libp2p's host behind a Gate: streams are opened to, and accepted from, admitted peers only. Without a gate
// all are.
type gated struct {
	libhost.Host
	gate      atomic.Pointer[Gate]
	strangers *strangers
	panics    *isolate.Panics // of stream handlers
}

// SetGate sets the gate, once, before the host is of use to others.
func (h *Host) SetGate(g Gate) {
	lib := h.lib
	lib.gate.Store(&g)
	lib.Network().Notify(&network.NotifyBundle{
		ConnectedF: func(n network.Network, c network.Conn) {
			if id := c.RemotePeer(); !g.Admitted(id) {
				limit(n, id, strangerLimit)
				if g.Admitted(id) { // since, over another connection
					limit(n, id, memberLimit)
				}
			}
			awaitAdmission(h, g, c)
		},
		DisconnectedF: func(n network.Network, c network.Conn) {
			id := c.RemotePeer()
			lib.strangers.endConn(c, g.Admitted(id))
			if n.Connectedness(id) != network.Connected {
				g.Forget(id)
			}
		},
	})
	for _, c := range lib.Network().Conns() {
		awaitAdmission(h, g, c)
	}
}

// awaitAdmission has the nodes at both ends of a connection show their certificates, and closes it if its peer is not
// admitted in time. It returns at once; Close waits for it.
func awaitAdmission(h *Host, g Gate, c network.Conn) {
	ctx, done := h.beginHandler(context.Background())
	if done == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, strangerTime)
	end := h.lib.strangers.beginConn(c, cancel) // before it has streams, and before it ends
	go func() {
		defer done()
		defer cancel()
		id := c.RemotePeer()
		if end == nil {
			c.Close() //nolint:errcheck // it is of no use
			return
		}
		defer end()
		if c.Stat().Direction == network.DirOutbound { // the other end waits to be asked
			if err := g.Await(ctx, id); err != nil {
				h.logger.Debug("peer not admitted", "peer", id.String(), "error", err)
				c.Close() //nolint:errcheck // it is of no use
				return
			}
		}
		every := time.NewTicker(lookAtStranger)
		defer every.Stop()
		for !g.Admitted(id) && !c.IsClosed() {
			if ctx.Err() != nil || g.Refused(id) {
				c.Close() //nolint:errcheck // it is of no use
				return
			}
			select {
			case <-every.C:
			case <-ctx.Done():
			}
		}
	}()
}

// NewStream opens a stream to a peer that is admitted.
func (l *gated) NewStream(ctx context.Context, id peer.ID, protocols ...protocol.ID) (network.Stream, error) {
	if g := l.gate.Load(); g != nil && (len(protocols) != 1 || string(protocols[0]) != (*g).Protocol()) && !(*g).Admitted(id) {
		if l.Network().Connectedness(id) != network.Connected {
			if err := l.Connect(ctx, peer.AddrInfo{ID: id}); err != nil {
				return nil, err
			}
		}
		if err := (*g).Await(ctx, id); err != nil {
			return nil, fmt.Errorf("not admitted: %w", err)
		}
	}
	return l.Host.NewStream(ctx, id, protocols...)
}

// SetStreamHandler serves a protocol to admitted peers. A peer that has not shown its certificate yet is asked for it.
func (l *gated) SetStreamHandler(p protocol.ID, serve network.StreamHandler) {
	l.Host.SetStreamHandler(p, func(s network.Stream) {
		defer l.panics.Recover("stream", func() { s.Reset() }, "protocol", string(p), "peer", s.Conn().RemotePeer().String()) //nolint:errcheck // it is of no use
		g := l.gate.Load()
		if g == nil || (*g).Admitted(s.Conn().RemotePeer()) {
			serve(s)
			return
		}
		end := l.strangers.beginStream(s.Conn())
		if end == nil {
			s.Conn().Close() //nolint:errcheck // a new connection costs the stranger more than a stream
			return
		}
		if string(p) == (*g).Protocol() {
			defer end()
			serve(s)
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), awaitTime)
		defer cancel()
		err := (*g).Await(ctx, s.Conn().RemotePeer())
		end()
		if err != nil {
			s.Reset() //nolint:errcheck // it is of no use
			return
		}
		serve(s)
	})
}
