package crowd

import (
	"time"

	"github.com/voxelpopuli/voxeld/grid"
)

// This file sends a whole crowd to one spot and away again, and measures how long players there receive nothing.

// Silences is how long players at a spot received nothing, since the last call of TakeSilences. Players elsewhere do not count: a client
// is sent a frame only if something that it sees moves otherwise than it extrapolates, and away from the spot hardly anything does.
type Silences struct {
	There   int           // players who are at the spot, and walk
	Longest time.Duration // in which one of them received nothing
	Over    int           // silences of more than 250 ms
}

// longSilence is the length above which silences are counted.
const longSilence = 250 * time.Millisecond

// Gather sends all players to chunks, in turn, where they walk. The height map must have these.
func (c *Crowd) Gather(homes []grid.ChunkPos) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, p := range c.all {
		p.mover.goHome(homes[i%len(homes)], c.o.Heights.chunk(homes[i%len(homes)]))
	}
}

// Scatter sends all players through the air to places, in turn, where they fly about.
func (c *Crowd) Scatter(places []Point) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, p := range c.all {
		p.mover.flyTo(places[i%len(places)])
		p.heard = time.Time{}
	}
}

// Inside returns the number of players in a cell.
func (c *Crowd) Inside(cell grid.Cell) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.all {
		if p.fd >= 0 && cell.Contains(p.mover.pose.Chunk()) {
			n++
		}
	}
	return n
}

// TakeSilences returns the silences since the last call, those that are not over included.
func (c *Crowd) TakeSilences() Silences {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for _, p := range c.all {
		if !p.heard.IsZero() && p.fd >= 0 {
			c.silences.There++
			c.silences.Longest = max(c.silences.Longest, now.Sub(p.heard))
		}
	}
	s := c.silences
	c.silences = Silences{}
	return s
}
