package region

import (
	"context"
	"errors"
	"io"

	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// ServeLink serves one link of another node's gateway, until either side ends it.
func (h *Host) ServeLink(ctx context.Context, peer string, stream io.ReadWriteCloser) {
	err := transport.ServeLink(ctx, stream, subscribeTime, func(ctx context.Context, hello nodemsg.Hello) (transport.Subscription, error) {
		return h.regions.subscribe(ctx, hello)
	})
	if err != nil {
		h.Logger.Debug("link ended", "peer", peer, "error", err)
	}
}

// ServePiece answers one request of another node.
func (h *Host) ServePiece(ctx context.Context, peer string, stream io.ReadWriteCloser) {
	if err := h.pieces.Serve(ctx, peer, stream); err != nil {
		h.Logger.Debug("piece not served", "peer", peer, "error", err)
	}
}

// servePiece answers a request of another node, or of this one.
func (h *Host) servePiece(ctx context.Context, peer string, f nodemsg.Fetch) nodemsg.Fetched {
	var l *actor.Land
	switch {
	case f.Base != nil:
		return h.bases.Serve(ctx, *f.Base)
	case f.Digests != nil:
		l = h.regions.Loaded(f.Digests.Group)
	case f.Part != nil:
		l = h.regions.Loaded(f.Part.Group)
	default:
		return nodemsg.Fetched{Error: "unknown request; upgrade voxeld"}
	}
	switch {
	case l == nil:
		return nodemsg.Fetched{Error: "the region is not open here"}
	case f.Digests != nil:
		return l.ServeDigests(ctx, peer, *f.Digests)
	default:
		return l.ServePart(ctx, peer, *f.Part)
	}
}

// ServeSnapshot installs the snapshot that another node sends.
func (h *Host) ServeSnapshot(ctx context.Context, peer string, stream io.ReadWriteCloser) {
	err := transport.ServeSnapshot(ctx, stream, func(ctx context.Context, group uint64, in io.Reader) error {
		return h.installSnapshot(ctx, peer, group, in)
	})
	if err != nil {
		h.Logger.Warn("snapshot not installed", "peer", peer, "error", err)
	}
}

func (h *Host) installSnapshot(ctx context.Context, peer string, group uint64, in io.Reader) error {
	err := h.Replicas.ReceiveSnapshot(ctx, peer, group, in)
	if !errors.Is(err, replica.ErrNotOpen) { // it returns that before it reads
		return err
	}
	if err := h.hibernation.wake(ctx, peer, group); err != nil {
		return err
	}
	return h.Replicas.ReceiveSnapshot(ctx, peer, group, in)
}

// ServeRaft receives the raft messages of another node until the node ends the stream.
func (h *Host) ServeRaft(ctx context.Context, peer string, stream io.ReadWriteCloser) {
	h.supervisor.CheckReturned(peer)
	err := transport.ServeRaft(ctx, stream, func(m nodemsg.RaftMessage) { h.hibernation.receive(peer, m) })
	h.Logger.Debug("raft stream ended", "peer", peer, "error", err)
}
