package region

import (
	"context"
	"errors"
	"io"

	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// ServeLink serves one link of another node's gateway, until either side ends it.
func (h *Host) ServeLink(ctx context.Context, peer string, stream io.ReadWriteCloser) {
	err := transport.ServeLink(ctx, stream, subscribeTime, func(ctx context.Context, hello nodemsg.Hello) (transport.Subscription, error) {
		return h.follower.subscribe(ctx, peer, hello)
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

// ServeSnapshot installs the snapshot that another node sends.
func (h *Host) ServeSnapshot(ctx context.Context, peer string, stream io.ReadWriteCloser) {
	if err := h.incarnations.admit(ctx, peer, stream); err != nil {
		h.Logger.Debug("raft messages refused", "peer", peer, "error", err)
		return
	}
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
	if err := h.incarnations.admit(ctx, peer, stream); err != nil {
		h.Logger.Debug("raft messages refused", "peer", peer, "error", err)
		return
	}
	err := h.raft.Serve(ctx, peer, stream, func(m nodemsg.RaftMessage) { h.hibernation.receive(peer, m) })
	h.Logger.Debug("raft stream ended", "peer", peer, "error", err)
}
