package luanti

import (
	"bytes"
	"compress/zlib"
	"sync"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/games"
	"github.com/voxelpopuli/voxeld/grid"
)

const (
	// side is that of a map block, in nodes.
	side, nodes = 16, side * side * side
	// airAbove is how many layers of map blocks above the world are sent as air. In what it was not sent, the client
	// does not move.
	airAbove = 4
	// nearby is how far the player may be, in chunks, from a chunk of which the client has dropped a part, when it is
	// sent again.
	nearby = 2
)

// land is a chunk in view.
type land struct {
	*games.Land
	signs map[chunk.Index]string // the texts of those that have one
	sent  bool                   // the client has it
	holes bool                   // or has had it, and has dropped a part
}

// lands are the chunks in view.
type lands map[grid.ChunkPos]*land

// blocks returns the blocks in view.
func (ls lands) blocks() games.Blocks { return games.BlocksOf(ls) }

// nearest returns the chunk nearest to another one that the client is to be sent.
func (ls lands) nearest(to grid.ChunkPos) (at grid.ChunkPos, found bool) {
	best := int64(-1)
	for c, l := range ls {
		if away := c.Distance(to); (!l.sent || l.holes && away <= nearby) && (best < 0 || squared(c, to) < best) {
			at, best = c, squared(c, to)
		}
	}
	return at, best >= 0
}

func squared(a, b grid.ChunkPos) int64 {
	x, z := int64(a.X)-int64(b.X), int64(a.Z)-int64(b.Z)
	return x*x + z*z
}

// column is a chunk in the client's nodes, with light in their low and high four bits: by day, and from what glows.
type column struct {
	height int
	blocks []chunk.Block
	light  []byte
	signs  map[chunk.Index]string
}

const layer = grid.ChunkSize * grid.ChunkSize

// lightColumn lights a chunk. Light from other chunks is left out.
func lightColumn(c *chunk.Chunk) column {
	col := column{height: c.Height(), blocks: c.Blocks()}
	light := games.LightOf(col.blocks, chunk.Block.Shades, chunk.Block.Glow)
	col.light = light.Sky
	for i, lamps := range light.Lamps {
		col.light[i] |= lamps << 4
	}
	return col
}

// uniforms keeps map blocks in which every node is alike: most of them are air.
type uniforms struct {
	mu   sync.Mutex
	kept map[[2]uint16][]byte
}

// maxUniforms bounds them: mostly there is air by day, stone, and air in the dark.
const maxUniforms = 256

// packColumn returns the packets of a column whose first node, and lowest in the game, is at a corner.
func (u *uniforms) packColumn(col column, corner node) (packets [][]byte, err error) {
	for y := range col.height/side + airAbove {
		for _, part := range [...][2]int{{0, 0}, {1, 0}, {0, 1}, {1, 1}} {
			data, err := u.pack(col, part[0], y, part[1])
			if err != nil {
				return nil, err
			}
			p := begin(toBlockData).s16(corner.x/side + part[0]).s16(y).s16(corner.z/side + part[1])
			packets = append(packets, append(p, data...))
		}
	}
	return packets, nil
}

// pack returns a map block, by its place in the column.
func (u *uniforms) pack(col column, x, y, z int) ([]byte, error) {
	raw := make([]byte, 4*nodes)
	alike, signs := true, make(map[uint16]string)
	for i := range nodes {
		nx, ny, nz := i%side, i/side%side, i/side/side
		b, below, light := chunk.Air, chunk.Air, byte(games.FullLight)
		if above := y*side + ny; above < col.height {
			at := above*layer + (grid.ChunkSize-1-z*side-nz)*grid.ChunkSize + x*side + nx
			b, light = col.blocks[at], col.light[at]
			if text, is := col.signs[chunk.Index(at)]; is { //nolint:gosec // of a column
				signs[uint16(i)] = text //nolint:gosec // below nodes
			}
			if above > 0 {
				below = col.blocks[at-layer]
			}
		}
		id := nodeOf(b, below)
		raw[2*i], raw[2*i+1], raw[2*nodes+i] = byte(id>>8), byte(id), light
		alike = alike && raw[2*i] == raw[0] && raw[2*i+1] == raw[1] && light == raw[2*nodes]
	}
	if !alike {
		return packBlock(raw, signs)
	}
	key := [2]uint16{uint16(raw[0])<<8 | uint16(raw[1]), uint16(raw[2*nodes])}
	u.mu.Lock()
	defer u.mu.Unlock()
	if kept := u.kept[key]; kept != nil {
		return kept, nil
	}
	data, err := packBlock(raw, nil)
	if err == nil && len(u.kept) < maxUniforms {
		if u.kept == nil {
			u.kept = make(map[[2]uint16][]byte)
		}
		u.kept[key] = data
	}
	return data, err
}

// Flags of a map block.
const (
	dayAndNightDiffer = 2
	allLit            = 0xffff // the light from all sides is in it
)

// packBlock returns a map block of raw nodes: ids, light, and rotation, which there is none of; and of texts of signs, by
// their nodes.
func packBlock(raw []byte, signs map[uint16]string) ([]byte, error) {
	var out bytes.Buffer
	out.Write(packet(nil).u8(dayAndNightDiffer).u16(allLit).u8(2, 2)) // bytes of an id, and of the rest
	if err := deflate(&out, raw); err != nil {
		return nil, err
	}
	metadata := packet{0} // none
	if len(signs) > 0 {
		metadata = signList(len(signs))
		for at, text := range signs {
			metadata = metadata.u16(at).sign(text)
		}
	}
	if err := deflate(&out, metadata); err != nil {
		return nil, err
	}
	return append(out.Bytes(), 2), nil // version of what only the network has
}

// deflate writes bytes as zlib.
func deflate(to *bytes.Buffer, plain []byte) error {
	w, _ := deflaters.Get().(*zlib.Writer)
	defer deflaters.Put(w)
	w.Reset(to)
	if _, err := w.Write(plain); err != nil {
		return err
	}
	return w.Close()
}

var deflaters = sync.Pool{New: func() any {
	w, err := zlib.NewWriterLevel(nil, zlib.BestSpeed)
	if err != nil {
		panic(err) // the level exists
	}
	return w
}}
