package gameserver

import (
	"github.com/voxelpopuli/voxeld/gameserver/interest"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// This file moves the mirror on between two messages of a region: predicted bodies are extrapolated, and this gateway's own
// players who have stopped are reported.

// advance extrapolates all predicted bodies by the given number of ticks since the previous frame, and sends the region players
// who have stopped.
func (sub *subscription) advance(ticks uint64) {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	now := sub.g.now()
	sub.mu.lastFrame = now
	for mc := range sub.mu.predicted {
		sub.proceed(mc, float32(ticks))
	}
	if !sub.mu.diverged {
		return
	}
	sub.mu.diverged = false
	for _, b := range sub.mu.bodies {
		if b.predictor.hasStopped(now) {
			sub.sendStanding(b)
		}
		sub.mu.diverged = sub.mu.diverged || b.predictor.lastSent != b.Pose || b.predictor.sentVelocity.Moving()
	}
}

// proceed extrapolates all predicted bodies in a chunk, and publishes their moves.
func (sub *subscription) proceed(mc *mirrorChunk, ticks float32) {
	var goes bool
	if mc.moved, goes = mc.bodies.Extrapolate(mc.at, ticks, mc.moved[:0]); !goes {
		delete(sub.mu.predicted, mc)
	}
	if len(mc.moved) == 0 {
		return
	}
	sub.g.interest.apply(&nodemsg.ChunkDelta{Chunk: mc.at}, mc.bodies, interest.Change{Moved: mc.moved})
	if mc.everyMove > 0 {
		sub.publishMoves(mc)
	}
}

// publishMoves sends moves to subscribers that do not get them from the frame loop.
func (sub *subscription) publishMoves(mc *mirrorChunk) {
	delta := &chunkDelta{ChunkDelta: nodemsg.ChunkDelta{Chunk: mc.at}, tick: sub.mu.tick, sub: sub, chunk: mc}
	for _, o := range mc.moved {
		delta.Moves = append(delta.Moves, nodemsg.BodyMove{Player: o.Player, Pose: o.Pose})
	}
	sub.publish(mc, delta)
}
