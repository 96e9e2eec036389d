package minecraft

import (
	"github.com/voxelpopuli/voxeld/blocktable"
	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/games"
	"github.com/voxelpopuli/voxeld/grid"
)

// This file shows the blocks whose states depend on what is beside them. The client computes such states only for what
// its player does.

// land is a chunk in view.
type land struct {
	*games.Land
	fittings fittings            // nil until the client has been sent the chunk
	signs    map[grid.Pos]string // the texts of those that have one
}

func newLand(data []byte) *land {
	return &land{Land: games.NewLand(data), signs: make(map[grid.Pos]string)}
}

// lands are the chunks in view.
type lands map[grid.ChunkPos]*land

// blocks returns the blocks in view.
func (ls lands) blocks() games.Blocks { return games.BlocksOf(ls) }

// maxFittings bounds those of a chunk. Others are not joined.
const maxFittings = 1 << 12

// fittings are those of a chunk.
type fittings map[chunk.Index]fitting

// fitting is a fence or a pane, which is joined to what is beside it, or half of a door.
type fitting struct {
	block  chunk.Block
	beside blocktable.Beside
}

// isFitting reports whether a block is one. Loops over all blocks of a chunk call it, and the first blocks are none.
func isFitting(b chunk.Block) bool { return b >= chunk.PlankFence && (b.Joinable() || b.Door()) }

// around is where the blocks are on which a fitting's state depends, in the order of blocktable.Beside.
var around = [...]grid.Pos{{X: 1}, {X: -1}, {Z: 1}, {Z: -1}, {Y: -1}}

// note notes what is beside a fitting, in one of the directions around it.
func (f *fitting) note(direction int, b chunk.Block) {
	bit, is := blocktable.Beside(1)<<direction, f.block.Joinable() && f.block.Joins(b)
	if bit == blocktable.LowerHalf {
		is = f.block.Door() && f.block == b
	}
	if f.beside &^= bit; is {
		f.beside |= bit
	}
}

func (f fitting) state() uint16 { return blocktable.ToMinecraftBeside(f.block, f.beside) }

// fittingAt returns a block as a fitting. Nothing is beside one that is none.
func fittingAt(pos grid.Pos, b chunk.Block, blocks games.Blocks) fitting {
	f := fitting{block: b}
	if isFitting(b) {
		for direction, d := range around {
			beside, _ := blocks(add(pos, d))
			f.note(direction, beside)
		}
	}
	return f
}

func add(a, b grid.Pos) grid.Pos { return grid.Pos{X: a.X + b.X, Y: a.Y + b.Y, Z: a.Z + b.Z} }

func subtract(a, b grid.Pos) grid.Pos { return grid.Pos{X: a.X - b.X, Y: a.Y - b.Y, Z: a.Z - b.Z} }

// fittingsOf returns the fittings of a chunk, as if air was beside it.
func fittingsOf(all []chunk.Block) fittings {
	found := make(fittings)
	blocks := func(pos grid.Pos) (chunk.Block, bool) {
		if pos.Chunk() != (grid.ChunkPos{}) || pos.Y < 0 {
			return chunk.Air, false
		}
		return all[chunk.At(pos)], true
	}
	for i, b := range all {
		if isFitting(b) && len(found) < maxFittings {
			at := chunk.Index(i) //nolint:gosec // of a column
			found[at] = fittingAt(at.Pos(grid.ChunkPos{}), b, blocks)
		}
	}
	return found
}

// state returns the state of a block.
func (fs fittings) state(at chunk.Index, b chunk.Block) uint16 {
	if f, is := fs[at]; is {
		return f.state()
	}
	return blocktable.ToMinecraft(b)
}

// change shows a block that has changed, and what its neighbours look like now.
func (cl *Client) change(pos grid.Pos, b chunk.Block, blocks games.Blocks) {
	f := fittingAt(pos, b, blocks)
	cl.showState(pos, f.state())
	if l := cl.mu.lands[pos.Chunk()]; l != nil && l.fittings != nil {
		if at := chunk.At(pos); isFitting(b) && len(l.fittings) < maxFittings {
			l.fittings[at] = f
		} else {
			delete(l.fittings, at)
		}
	}
	for direction, d := range around {
		cl.join(subtract(pos, d), direction, b)
	}
}

// join shows the fitting at a position, if there is one, beside which a block is now.
func (cl *Client) join(pos grid.Pos, direction int, b chunk.Block) {
	l := cl.mu.lands[pos.Chunk()]
	if l == nil || pos.Y < 0 {
		return
	}
	f, is := l.fittings[chunk.At(pos)]
	if !is {
		return
	}
	before := f.beside
	if f.note(direction, b); f.beside != before {
		l.fittings[chunk.At(pos)] = f
		cl.showState(pos, f.state())
	}
}

// joinBorders joins the fittings at the borders of a chunk that has been sent, on both sides.
func (cl *Client) joinBorders(at grid.ChunkPos) {
	blocks := cl.mu.lands.blocks()
	join := func(at grid.ChunkPos, direction int) {
		for i := range cl.mu.lands[at].fittings {
			pos := i.Pos(at)
			if beyond := add(pos, around[direction]); beyond.Chunk() != at {
				b, _ := blocks(beyond)
				cl.join(pos, direction, b)
			}
		}
	}
	for direction, d := range around {
		beside := grid.ChunkPos{X: at.X + d.X, Z: at.Z + d.Z}
		if beside != at && cl.mu.lands[beside] != nil {
			join(at, direction)
			join(beside, direction^1) // the other way
		}
	}
}

// showState shows a block.
func (cl *Client) showState(pos grid.Pos, state uint16) {
	if cl.mu.state == inPlay {
		cl.put(begin(packetBlock).position(pos).varint(int(state)))
	}
}
