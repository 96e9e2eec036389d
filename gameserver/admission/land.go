package admission

import (
	"math"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire"
)

// This file charges addresses for the land that this node holds because their clients see it. The unit is the memory of a chunk; players who
// see the same land pay for it once.

// regionUnits is what a founding cell costs: the subscription here, and the loaded region.
const regionUnits = 16

// NearView is how far, in chunks in each direction, a player sees whatever the others of their address do: as far as the clients of other
// games do, and VoxelPopuli's own.
const NearView = 5

// nearUnits and farUnits are what one player's land costs at most who sees so far as NearView, and as wire.MaxView: sessions keep chunks up to
// one beyond the view. So these are in two cells in each direction, or in three.
const (
	nearUnits = (2*NearView+3)*(2*NearView+3) + 4*regionUnits
	farUnits  = (2*wire.MaxView+3)*(2*wire.MaxView+3) + 9*regionUnits
)

// fewFar is how many players of an address may see as far as they want at least, even if they are far apart: a household. Of many, it is a
// tenth.
const fewFar = 4

// Reach is which part of an address's allowance a chunk is charged to.
type Reach int

// The reaches, from what is always granted to what is refused first.
const (
	Near     Reach = iota // of a session, at most NearView away from the player
	Original              // a connection of an original client
	Far                   // of a session, farther away
)

// land is what this node holds for the clients of an address.
type land struct {
	chunks map[grid.ChunkPos]int // how often each is held; no zeros
	cells  map[grid.Cell]int     // how many of the chunks are in each founding cell; no zeros
}

// units returns what the land costs, unitsWith what it would cost with one more chunk.
func (l *land) units() int { return len(l.chunks) + regionUnits*len(l.cells) }

func (l *land) unitsWith(at grid.ChunkPos) int {
	if l.cells[grid.CellAt(at, grid.FoundingLabel)] > 0 {
		return l.units() + 1
	}
	return l.units() + 1 + regionUnits
}

// Hold counts that this node holds a chunk for a client of the address, until Release. It reports false, and does not count, if the clients of
// the address would make it hold too much: with what originals are connected with, more than what their players may always see; with what is
// far from players, more than what some of them see who are far apart. What others of the address see costs nothing.
func (c Client) Hold(at grid.ChunkPos, reach Reach) bool {
	if !c.counted {
		return true
	}
	l := c.of
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.mu.lands[c.site]
	if all == nil {
		all = &land{chunks: make(map[grid.ChunkPos]int), cells: make(map[grid.Cell]int)}
	}
	if all.chunks[at] == 0 && all.unitsWith(at) > l.mu.settings.mostUnits(reach) {
		return false
	}
	l.mu.lands[c.site] = all
	if all.chunks[at]++; all.chunks[at] == 1 {
		all.cells[grid.CellAt(at, grid.FoundingLabel)]++
	}
	return true
}

// mostUnits returns what the land of an address may cost after a chunk was added to it.
func (p Settings) mostUnits(reach Reach) int {
	switch reach {
	case Original:
		return nearUnits * p.PerAddress
	case Far:
		return farUnits * max(fewFar, p.PerAddress/10)
	}
	return math.MaxInt // sessions are few
}

// SeesTooMuch reports whether the players of the address are to see less of what is far from them, because of what was granted since that is
// near players.
func (c Client) SeesTooMuch() bool {
	if !c.counted {
		return false
	}
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	all := c.of.mu.lands[c.site]
	return all != nil && all.units() > c.of.mu.settings.mostUnits(Far)
}

// SeesAlone reports whether a chunk is held for one client of the address only.
func (c Client) SeesAlone(at grid.ChunkPos) bool {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	all := c.of.mu.lands[c.site]
	return all != nil && all.chunks[at] == 1
}

// NoteRefusedLand counts in the metrics that a client of the address was not granted all that it wants to see.
func (c Client) NoteRefusedLand() { c.of.reached.WithLabelValues(views).Inc() }

// Release ends what Hold has counted once.
func (c Client) Release(at grid.ChunkPos) {
	if !c.counted {
		return
	}
	l := c.of
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.mu.lands[c.site]
	if all.chunks[at]--; all.chunks[at] > 0 {
		return
	}
	delete(all.chunks, at)
	cell := grid.CellAt(at, grid.FoundingLabel)
	if all.cells[cell]--; all.cells[cell] > 0 {
		return
	}
	if delete(all.cells, cell); len(all.cells) == 0 {
		delete(l.mu.lands, c.site)
	}
}
