package gameserver

import (
	"cmp"
	"math"
	"slices"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/world"
)

// This file decides which cells are told to whom in which grade. Sessions that stand in one cell with one view
// distance share a vantage, and so one frame's motion: what a crowd costs is counted by cells, not by pairs.

// rings say which grade a cell is told in. Distances are in blocks, from a vantage's cell to the other one, edge to edge;
// crowds are how many avatars may be in the ring and all within it.
type rings struct {
	exactCrowd, tightCrowd int
	reach                  reach
}

// reach is how many blocks away cells may be to be told of in a grade, if no finer one reaches them.
type reach [distant]int32

const none = -1

// aloneView is how many chunks in each direction somebody has in view at least of whom it can be said that he is alone: whoever sees
// him from beyond is told of him in the grade distant, once a second.
const aloneView = 2

// coarseness are the rings to choose from, the finest first. The first one is taken that the budget allows. In a crowd
// that is too large for the better grades all within 24 blocks have the same one: walkers who cross from cells of one grade
// into those of another have to be told of, which costs more than a finer grade does.
var coarseness = [...]rings{
	{128, 384, reach{exact: 48, tight: 32, near: 24, fair: 32, loose: none, far: 64}},
	{64, 192, reach{exact: 48, tight: 32, near: 24, fair: none, loose: none, far: 64}},
	{32, 96, reach{exact: 48, tight: 32, near: 24, fair: none, loose: none, far: 64}},
	{0, 0, reach{exact: none, tight: none, near: 24, fair: none, loose: none, far: 48}},
	{0, 0, reach{exact: none, tight: none, near: none, fair: 24, loose: none, far: 32}},
	{0, 0, reach{exact: none, tight: none, near: none, fair: none, loose: 24, far: 32}},
	{0, 0, reach{exact: none, tight: none, near: none, fair: none, loose: none, far: 24}},
	{0, 0, reach{exact: none, tight: none, near: none, fair: none, loose: none, far: 1}},
	{0, 0, reach{exact: none, tight: none, near: none, fair: none, loose: none, far: none}},
}

const (
	// ringSlack is by how much a ring's crowd may be over its limit before a cell that was in it leaves it.
	ringSlack = 1.25
	// budgetSlack is how much of the budget finer rings than the present ones may take.
	budgetSlack = .95
	// settleTicks is how long rings stay as they are while no chunk's first avatar appears nor its last one vanishes,
	// and hasteTicks how long if one does.
	settleTicks, hasteTicks = 40, 4
)

// stayBlocks is how far beyond its cell a session keeps its vantage, so that a walk to and fro costs nothing.
const stayBlocks = 1.5

// vantagePoint is where a session looks from.
type vantagePoint struct {
	chunk grid.ChunkPos
	cell  uint8
	view  int // chunks in each direction
}

// cellOf is the cell of a chunk that a pose is in.
func cellOf(at grid.ChunkPos, p wire.Pose) uint8 { return wire.PlaceOf(at, p).Cell() }

const cellRow = grid.ChunkSize / wire.CellSize

// corner is where a chunk's cell begins, in cells.
func corner(at grid.ChunkPos, cell uint8) (x, z int64) {
	return int64(at.X)*cellRow + int64(cell%cellRow), int64(at.Z)*cellRow + int64(cell/cellRow)
}

// holds tells whether a session at the pose may keep the vantage point.
func (v vantagePoint) holds(p wire.Pose, view int) bool {
	x, z := corner(v.chunk, v.cell)
	lowX, lowZ := float64(x*wire.CellSize)-stayBlocks, float64(z*wire.CellSize)-stayBlocks
	const width = wire.CellSize + 2*stayBlocks
	return v.view == view && p.X >= lowX && p.X < lowX+width && p.Z >= lowZ && p.Z < lowZ+width
}

func vantagePointOf(p wire.Pose, view int) vantagePoint {
	at := world.ChunkOf(p)
	return vantagePoint{chunk: at, cell: cellOf(at, p), view: view}
}

// sightline is a cell as it is seen from a vantage.
type sightline struct {
	plot   *plot
	cell   uint8
	grade  grade
	former grade // that the vantage had it in before the rings were drawn last
	blocks int32 // away; 0 is the vantage's own cell only
}

// vantage is what sessions at one point are told of motion.
type vantage struct {
	point     vantagePoint
	sessions  int
	lines     []sightline // by chunk and cell; all cells of each chunk
	former    []sightline // spare
	unsettled bool        // the rings are to be drawn anew
	settled   uint64      // the tick at which they were
	coarser   int         // index into coarseness
	alone     bool        // nobody is seen from here but the one session's own avatar, nor sees that well

	tick      uint64
	motion    []byte // of the tick, for those who have had that of the one before
	extra     int    // bytes of it that are not cells' pieces
	whole     []byte // for those who have not; of wholeTick
	wholeTick uint64
}

// unsettle has the rings drawn anew that the chunk is in. The lock is held.
func (s *stage) unsettle(at grid.ChunkPos) {
	for point, v := range s.mu.vantages {
		if apart(point.chunk, at) <= int64(point.view)+1 {
			v.unsettled = true
		}
	}
}

// draw lays the rings: which cells are seen, and in which grade.
func (s *stage) draw(v *vantage) {
	v.former, v.lines = v.lines, v.former[:0]
	reach := int32(v.point.view) + 1 // sessions keep chunks that are one farther
	see := func(p *plot) {
		for c := range p.cells {
			v.lines = append(v.lines, sightline{plot: p, cell: uint8(c), blocks: v.point.away(p.at, uint8(c))})
		}
	}
	if side := int(2*reach + 1); side*side < len(s.mu.plots) {
		for x := -reach; x <= reach; x++ {
			for z := -reach; z <= reach; z++ {
				if p := s.mu.plots[grid.ChunkPos{X: v.point.chunk.X + x, Z: v.point.chunk.Z + z}]; p != nil {
					see(p)
				}
			}
		}
	} else {
		for at, p := range s.mu.plots {
			if apart(at, v.point.chunk) <= int64(reach) {
				see(p)
			}
		}
	}
	slices.SortFunc(v.lines, func(a, b sightline) int {
		return cmp.Or(cmp.Compare(a.blocks, b.blocks), a.plot.at.Compare(b.plot.at), cmp.Compare(a.cell, b.cell))
	})
	for i := range v.lines {
		v.lines[i].former = v.gradeOf(v.lines[i].plot, v.lines[i].cell)
	}
	s.choose(v)
	slices.SortFunc(v.lines, byCell)
	v.unsettled, v.settled = false, s.mu.tick
}

// choose takes the finest rings that the budget allows. The lines are sorted by distance.
func (s *stage) choose(v *vantage) {
	for k := range coarseness {
		budget := float64(s.budget) * region.TickEvery.Seconds()
		if k < v.coarser {
			budget *= budgetSlack
		}
		crowd, cost := 0, s.mu.extra[k].each
		for i := range v.lines {
			l := &v.lines[i]
			n := len(l.plot.cells[l.cell].actors)
			crowd += n
			l.grade = coarseness[k].ring(l.blocks, crowd, l.former)
			cost += float64(n) * s.mu.cost[l.grade]
		}
		if cost <= budget || k == len(coarseness)-1 {
			v.coarser = k
			return
		}
	}
}

func byCell(a, b sightline) int {
	return cmp.Or(a.plot.at.Compare(b.plot.at), cmp.Compare(a.cell, b.cell))
}

// gradeOf is the grade that the vantage had a cell in before.
func (v *vantage) gradeOf(p *plot, cell uint8) grade {
	i, found := slices.BinarySearchFunc(v.former, sightline{plot: p, cell: cell}, byCell)
	if !found || v.former[i].plot != p {
		return unseen
	}
	return v.former[i].grade
}

// ring is the grade of a cell, so many blocks away, with such a crowd in it and all nearer ones.
func (r *rings) ring(blocks int32, crowd int, former grade) grade {
	within := func(g grade, most int) bool {
		if former == g {
			return float64(crowd) <= ringSlack*float64(most)
		}
		return crowd <= most
	}
	g := exact
	for g < distant && blocks > r.reach[g] || g == exact && !within(exact, r.exactCrowd) || g == tight && !within(tight, r.tightCrowd) {
		g++
	}
	return g
}

// away is how far a cell is from the vantage point's, edge to edge, in blocks; at least 1 for another one.
func (v vantagePoint) away(at grid.ChunkPos, cell uint8) int32 {
	x, z := corner(at, cell)
	ownX, ownZ := corner(v.chunk, v.cell)
	if x == ownX && z == ownZ {
		return 0
	}
	gapX, gapZ := max(0, abs(x-ownX)-1)*wire.CellSize, max(0, abs(z-ownZ)-1)*wire.CellSize
	return int32(max(1, math.Hypot(float64(gapX), float64(gapZ))))
}

// compose makes the tick's motion for those who have had all before.
func (s *stage) compose(v *vantage) {
	v.tick, v.motion = s.mu.tick, v.motion[:0]
	pieces, people := 0, 0
	w := chunkWriter{dst: v.motion, tick: s.mu.tick}
	for i := range v.lines {
		l := &v.lines[i]
		if l.cell == 0 {
			people += l.plot.actors
		}
		if l.plot.looked != s.mu.tick {
			continue
		}
		piece := l.plot.cells[l.cell].pieces[l.grade]
		pieces += len(piece)
		w.add(l.plot.at, piece)
		if l.cell == wire.CellsPerChunk-1 {
			w.cross(v.lines[i+1-wire.CellsPerChunk : i+1])
		}
	}
	v.motion, v.extra = w.dst, len(w.dst)-pieces
	v.alone = people <= 1 && v.point.view >= aloneView
	if age := s.mu.tick - v.settled; age >= settleTicks || v.unsettled && age >= hasteTicks {
		s.draw(v)
		v.motion = shift(v.motion, v.former, v.lines, s.mu.tick)
	}
}

// shift adds what those need to know who have had one view of the stage and get another one from now on.
func shift(dst []byte, from, to []sightline, tick uint64) []byte {
	w := chunkWriter{dst: dst, tick: tick}
	for i := range to {
		l := &to[i]
		before := unseen
		for len(from) > 0 && byCell(from[0], *l) < 0 {
			from = from[1:]
		}
		if len(from) > 0 && from[0].plot == l.plot && from[0].cell == l.cell {
			before = from[0].grade
		}
		if before != l.grade {
			w.shift(l, before)
		}
	}
	return w.dst
}

// all gives what whoever has had nothing, or has missed something, needs to know.
func (s *stage) all(v *vantage) []byte {
	if v.wholeTick != s.mu.tick || len(v.whole) == 0 {
		v.whole, v.wholeTick = shift(v.whole[:0], nil, v.lines, s.mu.tick), s.mu.tick
	}
	return v.whole
}

// chunkWriter puts motion pieces of cells under their chunks.
type chunkWriter struct {
	dst  []byte
	tick uint64
	at   grid.ChunkPos
	open bool
}

func (w *chunkWriter) under(at grid.ChunkPos) {
	if !w.open || w.at != at {
		w.dst, w.at, w.open = wire.AppendMotionChunk(w.dst, at), at, true
	}
}

func (w *chunkWriter) add(at grid.ChunkPos, piece []byte) {
	if len(piece) > 0 {
		w.under(at)
		w.dst = append(w.dst, piece...)
	}
}

func (w *chunkWriter) shift(l *sightline, from grade) {
	if c := &l.plot.cells[l.cell]; len(c.actors) > 0 {
		w.under(l.plot.at)
		w.dst = c.shift(w.dst, l.cell, from, l.grade, w.tick)
	}
}

// cross adds the avatars that have come, within a plot, into a cell that the vantage has in another grade.
func (w *chunkWriter) cross(cells []sightline) {
	p := cells[0].plot
	for i := range p.crossed {
		c := &p.crossed[i]
		a := c.actor
		if a.plot != p {
			continue // it went on to another chunk, whose viewers are told in words
		}
		from, to := cells[c.from].grade, cells[a.cell].grade
		if c.before[from] == c.before[to] {
			continue
		}
		w.under(p.at)
		var m wire.MotionWriter
		m.Begin(a.cell, a.place.Y)
		moved := a.motion(&a.tracks[to], w.tick)
		w.dst = m.Append(w.dst, &moved)
	}
}
