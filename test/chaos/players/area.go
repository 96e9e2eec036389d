package players

import (
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
)

// Spawn is where players begin who have no record, or whose record is not found in time. The administrator sets it, so
// that they begin there and not beside what was built. No edit obstructs who climbs from there.
var Spawn = grid.Pos{X: -16, Y: 18, Z: -16}

// worldHeight is the height of the world, in blocks.
const worldHeight = 32

// CellOf returns the name of the founding cell that contains the position.
func CellOf(pos grid.Pos) string { return grid.CellAt(pos.Chunk(), grid.FoundingLabel).String() }

// A site is the space within reach of a player who hovers over its middle: 9×9 columns, 4 blocks high, in the air
// below the world's top. Some of its blocks are hot: many edits go there, so that players race for them.
const (
	siteWide          = 9
	siteLow, siteHigh = worldHeight - 5, worldHeight - 1 // half open
	sitesPerSide      = 9                                // a work area is a square of that many sites
	hotBlocks         = 6
	editsPerSite      = 450 // then the work area moves to the next site, and this one comes to rest
	wide              = siteWide * sitesPerSide
	areaCount         = 4
	hotShare          = .35
	Low               = -wide // of all work areas together along x and z
	High              = wide  // exclusive
)

// Area is an area where some players work together, within one region. Each of the four quadrants around the corner
// where four regions meet is one. Its sites are worked on one after another: most blocks are written a few times
// within seconds, and then rest until the end of the run, where a lost edit shows.
type Area struct {
	signX, signZ int32

	mu struct {
		sync.Mutex
		rng    *rand.Rand
		site   int // counted over the whole run
		issued int // edits of this site
		hot    []grid.Pos
		next   map[grid.Pos]int // index in palette of the block's next edit
	}
}

// palette is the blocks that edits put. A block's edits go through it in turn, so that a block identifies its edit.
var palette = func() []chunk.Block {
	var all []chunk.Block
	for b := chunk.Block(1); b.Known(); b++ {
		if b.Placeable() {
			all = append(all, b)
		}
	}
	return append(all, chunk.Air)
}()

// newArea returns work area n of areaCount.
func newArea(n int, seed uint64) *Area {
	s := &Area{signX: 1 - 2*int32(n%2), signZ: 1 - 2*int32(n/2%2)}
	s.mu.rng = rand.New(rand.NewPCG(seed, uint64(n)))
	s.mu.next = make(map[grid.Pos]int)
	s.drawHotBlocks()
	return s
}

// Cell returns the region that contains all sites of the work area, unless it is split.
func (s *Area) Cell() string { return CellOf(s.Origin()) }

// Origin returns the column of the work area that is nearest to the corner.
func (s *Area) Origin() grid.Pos { return grid.Pos{X: min(s.signX, 0), Z: min(s.signZ, 0)} }

// Middle returns the current site, and the column in its middle.
func (s *Area) Middle() (site int, x, z int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x, z = s.column(s.mu.site)
	return s.mu.site, x, z
}

// column returns the middle of a site. Sites follow a winding path through the work area.
func (s *Area) column(site int) (x, z int32) {
	site %= sitesPerSide * sitesPerSide
	row, col := site/sitesPerSide, site%sitesPerSide
	if row%2 == 1 {
		col = sitesPerSide - 1 - col
	}
	at := func(i int, sign int32) int32 {
		v := int32(i*siteWide + siteWide/2)
		if sign < 0 {
			return -1 - v
		}
		return v
	}
	return at(col, s.signX), at(row, s.signZ)
}

// Edit draws the next edit for a player over the middle of a site; false if the work area has moved on.
func (s *Area) Edit(site int) (grid.Pos, chunk.Block, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if site != s.mu.site {
		return grid.Pos{}, 0, false
	}
	pos := s.draw()
	if s.mu.rng.Float64() < hotShare {
		pos = s.mu.hot[s.mu.rng.IntN(len(s.mu.hot))]
	}
	b := palette[s.mu.next[pos]%len(palette)]
	s.mu.next[pos]++
	if s.mu.issued++; s.mu.issued == editsPerSite {
		s.mu.site++
		s.mu.issued = 0
		s.drawHotBlocks()
	}
	return pos, b, true
}

// drawHotBlocks chooses the site's hot blocks.
func (s *Area) drawHotBlocks() {
	s.mu.hot = s.mu.hot[:0]
	for len(s.mu.hot) < hotBlocks {
		if pos := s.draw(); !slices.Contains(s.mu.hot, pos) {
			s.mu.hot = append(s.mu.hot, pos)
		}
	}
}

func (s *Area) draw() grid.Pos {
	x, z := s.column(s.mu.site)
	for {
		pos := grid.Pos{
			X: x - siteWide/2 + s.mu.rng.Int32N(siteWide),
			Y: siteLow + s.mu.rng.Int32N(siteHigh-siteLow),
			Z: z - siteWide/2 + s.mu.rng.Int32N(siteWide),
		}
		if !overSpawn(pos) {
			return pos
		}
	}
}

// overSpawn reports whether a block there would obstruct players who climb from the spawn: readers, and writers whose
// record a cut-off gateway cannot load. They would stay below it forever.
func overSpawn(pos grid.Pos) bool {
	return max(pos.X-Spawn.X, Spawn.X-pos.X, pos.Z-Spawn.Z, Spawn.Z-pos.Z) <= 1
}

// contains reports whether edits of any work area go there.
func contains(pos grid.Pos) bool {
	return pos.Y >= siteLow && pos.Y < siteHigh && pos.X >= Low && pos.X < High && pos.Z >= Low && pos.Z < High
}
