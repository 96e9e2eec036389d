package gameserver

import "github.com/voxelpopuli/voxeld/wire"

// This file moves the mirror on between two messages of a region: predicted bodies are extrapolated, and this gateway's own
// players who have stopped are reported.

// beat extrapolates all predicted bodies by the given number of ticks since the previous frame, and sends the region players who
// have stopped.
func (f *feed) beat(ticks uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.g.now()
	f.mu.beaten = now
	for v := range f.mu.walks {
		f.proceed(v, float32(ticks))
	}
	if !f.mu.strays {
		return
	}
	f.mu.strays = false
	for _, b := range f.mu.bodies {
		if b.course.stands(now) {
			f.stand(b)
		}
		f.mu.strays = f.mu.strays || b.course.told != b.Pose || b.course.way.Goes()
	}
}

// proceed extrapolates all predicted bodies in a chunk, and publishes their moves.
func (f *feed) proceed(v *view, ticks float32) {
	var goes bool
	if v.moved, goes = v.bodies.proceed(v.at, ticks, v.moved[:0]); !goes {
		delete(f.mu.walks, v)
	}
	if len(v.moved) == 0 {
		return
	}
	f.g.stage.take(&bulletin{ChunkNews: wire.ChunkNews{Chunk: v.at}, view: v}, v.moved)
	if v.stepwise > 0 {
		f.publishMoves(v)
	}
}

// publishMoves sends moves to subscribers that do not get them from the frame loop.
func (f *feed) publishMoves(v *view) {
	b := &bulletin{ChunkNews: wire.ChunkNews{Chunk: v.at}, tick: f.mu.tick, feed: f, view: v}
	for _, o := range v.moved {
		b.Moves = append(b.Moves, wire.BodyMove{Player: o.Player, Pose: o.Pose})
	}
	f.publish(v, b)
}
