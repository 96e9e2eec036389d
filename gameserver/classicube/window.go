package classicube

import (
	"compress/gzip"
	"encoding/binary"
	"io"

	"github.com/voxelpopuli/voxeld/blocktable"
	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/games"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/wire"
)

const (
	// viewDistance is asked of the gateway, in chunks.
	viewDistance = 5
	// maxVolume bounds a level, in blocks: as much as one of 512×128×512, what every client bears.
	maxVolume = 512 * 128 * 512
	// maxTravel is how far from a window's middle the player may go before there is another one, in chunks.
	maxTravel = 2
)

// window is the part of the world that is the client's level: the chunks at most radius away from the middle.
type window struct {
	middle grid.ChunkPos
	radius int32 // at least 1
	height int32 // in blocks
}

// windowAround returns the window around a player who is granted a view distance. Sessions keep chunks up to one beyond
// it, so a window's chunks stay in view while the player is at most travel away.
func windowAround(at grid.ChunkPos, view int, height int32) window {
	w := window{middle: at, radius: max(1, int32(view)-1), height: height} //nolint:gosec // at most wire.MaxView
	for w.radius > 1 && w.side()*w.side()*int64(height) > maxVolume {
		w.radius--
	}
	return w
}

func (w window) side() int64 { return int64(2*w.radius+1) * grid.ChunkSize }

// travel is how far from the middle the player may go, in chunks.
func (w window) travel() int64 { return min(maxTravel, int64(w.radius)-1) }

// origin returns the block that is at the level's corner.
func (w window) origin() grid.Pos {
	return grid.ChunkPos{X: w.middle.X - w.radius, Z: w.middle.Z - w.radius}.Origin()
}

// pos returns the position of a block of the level, and reports whether there is one.
func (w window) pos(x, y, z uint16) (pos grid.Pos, inside bool) {
	o := w.origin()
	inside = int64(x) < w.side() && int32(y) < w.height && int64(z) < w.side()
	return grid.Pos{X: o.X + int32(x), Y: int32(y), Z: o.Z + int32(z)}, inside
}

func (w window) contains(at grid.ChunkPos) bool { return at.Distance(w.middle) <= int64(w.radius) }

// left reports whether the player, who is at a pose, should be sent another window.
func (w window) left(p motion.Pose) bool { return p.Chunk().Distance(w.middle) > w.travel() }

// chunks calls visit with each chunk that is in the world, and reports whether all visits returned true.
func (w window) chunks(visit func(at grid.ChunkPos) bool) bool {
	for z := -w.radius; z <= w.radius; z++ {
		for x := -w.radius; x <= w.radius; x++ {
			at := grid.ChunkPos{X: w.middle.X + x, Z: w.middle.Z + z}
			if at.Valid() && !visit(at) {
				return false
			}
		}
	}
	return true
}

// lands are the chunks in view.
type lands map[grid.ChunkPos]*games.Land

// blocks returns the blocks in view.
func (ls lands) blocks() games.Blocks { return games.BlocksOf(ls) }

// has reports whether the whole window is in view.
func (ls lands) has(w window) bool {
	return w.chunks(func(at grid.ChunkPos) bool { return ls[at] != nil })
}

// levelKey is all that a level is made of.
type levelKey struct {
	window
	fast  bool
	level blocktable.ClassicLevel
	lands [(2*viewDistance - 1) * (2*viewDistance - 1)]games.Packed // as many as a window has at most
}

// key returns the key of a window's level, unless a chunk of it has changed since it was sent.
func (ls lands) key(w window, f features) (key levelKey, has bool) {
	key, i := levelKey{window: w, fast: f[extFastMap], level: f.level()}, 0
	has = w.chunks(func(at grid.ChunkPos) (unchanged bool) {
		key.lands[i], unchanged = ls[at].Unchanged()
		i++
		return unchanged
	})
	return key, has
}

// writeLevel writes the blocks of a window, X first, then Z, then Y, deflated as the client wants them: with FastMap
// raw, else with gzip and their number before them.
func (ls lands) writeLevel(to io.Writer, w window, f features) error {
	var packed io.WriteCloser
	if f[extFastMap] {
		packed = wire.DeflateFast(to)
	} else {
		zipped, err := gzip.NewWriterLevel(to, gzip.BestSpeed)
		if err != nil {
			return err
		}
		packed = zipped
		if _, err := packed.Write(binary.BigEndian.AppendUint32(nil, w.volume())); err != nil {
			return err
		}
	}
	columns := make([]*chunk.Chunk, 0, (2*w.radius+1)*(2*w.radius+1)) // by Z, then X; nil outside of the world
	for z := -w.radius; z <= w.radius; z++ {
		for x := -w.radius; x <= w.radius; x++ {
			var column *chunk.Chunk
			if l := ls[grid.ChunkPos{X: w.middle.X + x, Z: w.middle.Z + z}]; l != nil {
				var err error
				if column, err = l.Load(); err != nil {
					return err
				}
			}
			columns = append(columns, column)
		}
	}
	images := imagesFor(f.level())
	across, layer := int(2*w.radius+1), make([]byte, w.side()*w.side())
	for y := range int(w.height) {
		for i, column := range columns {
			left, back := i%across*grid.ChunkSize, i/across*grid.ChunkSize
			for z := range grid.ChunkSize {
				row := layer[(back+z)*int(w.side())+left:][:grid.ChunkSize]
				if column == nil || y >= column.Height() {
					clear(row)
					continue
				}
				first := chunk.IndexOf(0, y, z)
				for x := range row {
					row[x] = images.of(column.Get(first + chunk.Index(x))) //nolint:gosec // less than 32
				}
			}
		}
		if _, err := packed.Write(layer); err != nil {
			return err
		}
	}
	return packed.Close()
}

func (w window) volume() uint32 { return uint32(w.side() * w.side() * int64(w.height)) } //nolint:gosec // near maxVolume at most

// images are those of the first blocks, for loops over millions of blocks.
type images struct {
	known []byte
	level blocktable.ClassicLevel
}

func imagesFor(level blocktable.ClassicLevel) images {
	t := images{level: level}
	for b := chunk.Air; b.Known(); b++ {
		t.known = append(t.known, blocktable.ToClassic(b, level))
	}
	return t
}

func (t images) of(b chunk.Block) byte {
	if int(b) < len(t.known) {
		return t.known[b]
	}
	return blocktable.ToClassic(b, t.level)
}
