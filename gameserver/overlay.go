package gameserver

import (
	"context"
	"io"

	"github.com/voxelpopuli/voxeld/gameserver/p2p"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
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
	if home := s.bodySubShared.Load(); home.move(s.body.Player, s.currentPose(), s, false) {
		wakeUp(home.wake)
	}
}

// publishOverlay publishes what the overlay has sent of a chunk.
func (g *Gateway) publishOverlay(n nodemsg.ChunkDelta) {
	g.mu.Lock()
	sub := g.mu.subs[grid.CellAt(n.Chunk, grid.FoundingLabel)]
	g.mu.Unlock()
	if sub != nil {
		sub.publishOverlay(n)
	}
}

// publishOverlay publishes what the overlay has sent of a chunk.
func (sub *subscription) publishOverlay(n nodemsg.ChunkDelta) {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	mc := sub.mu.chunks[n.Chunk]
	if mc == nil {
		return
	}
	delta := &chunkDelta{ChunkDelta: n, tick: sub.mu.tick, sub: sub, chunk: mc}
	delta.change = mc.apply(n)
	delta.tickNews = sub.g.interest.apply(&n, mc.bodies, delta.change)
	sub.publish(mc, delta)
}

// holds reports whether a player is in a chunk of the mirror.
func (mc *mirrorChunk) holds(id player.ID) bool { return mc.bodies.Of(id) != nil }
