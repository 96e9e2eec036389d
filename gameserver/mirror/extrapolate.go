package mirror

import (
	"github.com/voxelpopuli/voxeld/gameserver/interest"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// This file moves the mirror on between two messages of a region: predicted bodies are extrapolated, and this gateway's
// own players who have stopped are reported.

// advance extrapolates all predicted bodies by the given number of ticks since the previous frame, and sends the region
// players who have stopped.
func (sub *Subscription) advance(ticks uint64) {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	now := sub.m.Now()
	sub.mu.lastFrame = now
	for c := range sub.mu.predicted {
		sub.extrapolate(c, float32(ticks))
	}
	if !sub.mu.diverged {
		return
	}
	sub.mu.diverged = false
	for _, b := range sub.mu.bodies {
		if b.predictor.HasStopped(now) {
			b.sendRest()
		}
		sub.mu.diverged = sub.mu.diverged || !b.regionHas()
	}
}

// extrapolate extrapolates all predicted bodies in a chunk, and publishes their moves.
func (sub *Subscription) extrapolate(c *Chunk, ticks float32) {
	var goOn bool
	if c.moved, goOn = c.occupants.Extrapolate(c.at, ticks, c.moved[:0]); !goOn {
		delete(sub.mu.predicted, c)
	}
	if len(c.moved) == 0 {
		return
	}
	sub.m.Interest.Apply(&nodemsg.ChunkDelta{Chunk: c.at}, c.occupants, interest.Change{Moved: c.moved})
	if c.everyMove > 0 {
		c.publishMoves()
	}
}
