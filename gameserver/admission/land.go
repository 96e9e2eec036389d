package admission

import (
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire"
)

// This file charges addresses for the land that this node holds because their clients see it. The unit is the memory of
// a chunk; players who see the same land pay for it once.

// regionUnits is what a founding cell costs: the subscription here, and the loaded region.
const regionUnits = 16

// NearView is how far, in chunks in each direction, a player sees whatever the others of their address do: as far as
// the clients of other games do, and VoxelPopuli's own.
const NearView = 5

// farUnits is what the land of one player costs at most who sees as far as wire.MaxView: sessions keep chunks up to one
// beyond the view, so it is in three cells in each direction.
const farUnits = (2*wire.MaxView+3)*(2*wire.MaxView+3) + 9*regionUnits

// cellsPerPlayer is in how many founding cells the connections of original clients may be, for each player that the
// address may have: the view of one is in four at most. How many connections there may be, Limits.Admit bounds.
const cellsPerPlayer = 4

// fewFar is how many players of an address may see as far as they want at least, even if they are far apart: a
// household. Of many, it is a tenth.
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
	chunks    map[grid.ChunkPos]int // how often each is held; no zeros
	cells     map[grid.Cell]int     // how many of the chunks are in each founding cell; no zeros
	originals map[grid.Cell]int     // how many connections of original clients are; no zeros
}

// units returns what the land costs.
func (l *land) units() int { return len(l.chunks) + regionUnits*len(l.cells) }

// Hold counts that this node holds a chunk for a client of the address, until Release. It reports false, and does not
// count, if the clients of the address would make it hold too much: connections of original clients in too many cells,
// whatever sessions see; or, with what is far from players and nobody else of the address sees, more than what some of
// them see who are far apart.
func (c Client) Hold(at grid.ChunkPos, reach Reach) bool {
	if !c.counted {
		return true
	}
	l := c.of
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.mu.lands[c.site]
	if all == nil {
		all = &land{chunks: make(map[grid.ChunkPos]int), cells: make(map[grid.Cell]int), originals: make(map[grid.Cell]int)}
	}
	if !l.mu.settings.hasRoom(all, at, reach) {
		return false
	}
	l.mu.lands[c.site] = all
	cell := grid.CellAt(at, grid.FoundingLabel)
	if all.chunks[at]++; all.chunks[at] == 1 {
		all.cells[cell]++
	}
	if reach == Original {
		all.originals[cell]++
	}
	return true
}

// hasRoom reports whether a chunk may be added to the land of an address.
func (p Settings) hasRoom(all *land, at grid.ChunkPos, reach Reach) bool {
	cell := grid.CellAt(at, grid.FoundingLabel)
	switch reach {
	case Near: // sessions are few
	case Original:
		return all.originals[cell] > 0 || len(all.originals) < cellsPerPlayer*p.PerAddress
	case Far:
		cost := 1
		if all.cells[cell] == 0 {
			cost += regionUnits
		}
		return all.chunks[at] > 0 || all.units()+cost <= p.mostFar()
	}
	return true
}

// mostFar returns what all land of an address may cost for chunks to be granted that are far from players.
func (p Settings) mostFar() int { return farUnits * max(fewFar, p.PerAddress/10) }

// SeesTooMuch reports whether the players of the address are to see less of what is far from them, because of what was
// granted since that is near players.
func (c Client) SeesTooMuch() bool {
	if !c.counted {
		return false
	}
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	all := c.of.mu.lands[c.site]
	return all != nil && all.units() > c.of.mu.settings.mostFar()
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

// Release ends what Hold has counted once. Of sessions, Near stands for Far, too.
func (c Client) Release(at grid.ChunkPos, reach Reach) {
	if !c.counted {
		return
	}
	l := c.of
	l.mu.Lock()
	defer l.mu.Unlock()
	all, cell := l.mu.lands[c.site], grid.CellAt(at, grid.FoundingLabel)
	if reach == Original {
		decrement(all.originals, cell)
	}
	if decrement(all.chunks, at) {
		decrement(all.cells, cell)
	}
	if len(all.cells) == 0 {
		delete(l.mu.lands, c.site)
	}
}

// decrement counts one less, and reports whether none are left.
func decrement[K comparable](counts map[K]int, key K) (none bool) {
	if counts[key]--; counts[key] == 0 {
		delete(counts, key)
		return true
	}
	return false
}
