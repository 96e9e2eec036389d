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
	var avatars []p2p.Avatar
	for _, s := range g.sessions.All() {
		avatars = append(avatars, avatar{s})
	}
	return avatars
}
