package gameserver

import (
	"context"
	"io"

	"github.com/voxelpopuli/voxeld/gameserver/p2p"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
)

// This file connects the sessions and the mirror with package p2p, which exchanges movement with other gateways.

// ServeOverlay receives another gateway's movement (p2p.Protocol), until the stream or ctx ends.
func (g *Gateway) ServeOverlay(ctx context.Context, peer string, stream io.ReadWriteCloser) {
	g.p2p.Serve(ctx, peer, stream)
}

// avatars returns the sessions that have a place, as p2p uses them.
func (g *Gateway) avatars() []p2p.Avatar {
	sessions := g.placedSessions()
	avatars := make([]p2p.Avatar, len(sessions))
	for i, s := range sessions {
		avatars[i] = s
	}
	return avatars
}

// Player returns the session's player.
func (s *session) Player() player.ID { return s.body.Player }

// Pose returns where the player is, and reports whether they are in a region.
func (s *session) Pose() (pose motion.Pose, inRegion bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.pose, s.mu.placed && s.bodySubShared.Load() != nil
}

// UpdateRegion sends the player's pose to their region.
func (s *session) UpdateRegion() {
	if home := s.bodySubShared.Load(); home.Move(s.body.Player, s.currentPose(), s, false) {
		home.Wake()
	}
}
