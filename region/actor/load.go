package actor

import (
	"time"

	"github.com/voxelpopuli/voxeld/grid"
)

// ChunkLoad is what was counted in one chunk.
type ChunkLoad struct {
	Players int
	Edits   int // since the last sample
	Stored  int // edited blocks
}

// LoadSample is what was counted in a region since the last sample.
type LoadSample struct {
	Usable bool          // the region has its land, and is led here; if not, nothing is decided
	Busy   time.Duration // time that the region's ticks, and what it did between them, kept a core busy
	Ticks  int
	Chunks map[grid.ChunkPos]ChunkLoad // without those in which nothing was counted
}

// SampleLoad sends what was counted in the region since the last call, if this node leads it, and it has its land.
// Answer must have room for it.
func (l *Land) SampleLoad(answer chan<- LoadSample) {
	l.enqueue(func(l *land) {
		used := l.budget.take()
		s := LoadSample{Busy: used.busy, Ticks: used.ticks, Chunks: make(map[grid.ChunkPos]ChunkLoad)}
		l.contents.crowd.Count(func(at grid.ChunkPos, bodies int) { s.Chunks[at] = ChunkLoad{Players: bodies} })
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
