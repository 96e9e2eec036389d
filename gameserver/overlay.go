package gameserver

import (
	"context"
	"io"

	"github.com/voxelpopuli/voxeld/gameserver/p2p"
)

// This file connects the sessions and the mirror with package p2p, which exchanges movement with other gateways.

// ServeOverlay receives another gateway's movement (p2p.Protocol), until the stream or ctx ends.
func (g *Gateway) ServeOverlay(ctx context.Context, peer string, stream io.ReadWriteCloser) {
	g.p2p.Serve(ctx, peer, stream)
}

// avatars returns the sessions that have a place, as p2p uses them.
func (g *Gateway) avatars() []p2p.Avatar {
	sessions := g.sessions.All()
	avatars := make([]p2p.Avatar, len(sessions))
	for i, s := range sessions {
		avatars[i] = avatar{s}
	}
	return avatars
}
