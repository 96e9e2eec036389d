package actor

import (
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/divide"
)

// SampleLoad sends what was counted in the region since the last call, if this node leads it, and it has its land. Answer must have room
// for it. Any goroutine may call it.
func SampleLoad(l *Land, answer chan<- divide.Sample) {
	l.Enqueue(func() {
		used := l.budget.take()
		s := divide.Sample{Busy: used.busy, Ticks: used.ticks, Chunks: make(map[grid.ChunkPos]divide.Chunk)}
		l.contents.crowd.Count(func(at grid.ChunkPos, bodies int) { s.Chunks[at] = divide.Chunk{Players: bodies} })
		l.contents.land.CountEdits(func(at grid.ChunkPos, blocks int) {
			c := s.Chunks[at]
			c.Stored = blocks
			s.Chunks[at] = c
		})
		for at, n := range l.changed {
			c := s.Chunks[at]
			c.Edits = n
			s.Chunks[at] = c
		}
		clear(l.changed)
		s.Usable = l.leading && !l.paused && !l.contents.land.Structure().RefusesEdits()
		answer <- s
	})
}
