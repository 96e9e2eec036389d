package gameserver

import (
	"math"
	"slices"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/world"
)

// This file is where sessions look from, and what they are told there. Sessions that stand in one cell with one view distance share a
// vantage, and so one frame's motion: what a crowd costs is counted by cells, not by pairs.

// settleTicks is how long rings stay as they are while no chunk's first avatar appears nor its last one vanishes,
// and hasteTicks how long if one does.
const settleTicks, hasteTicks = 40, 4

// aloneView is how many chunks in each direction somebody has in view at least of whom it can be said that he is alone: whoever sees
// him from beyond is told of him in the grade distant, once a second.
const aloneView = 2

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

// sightline is a plot as it is seen from a vantage, cell by cell.
type sightline struct {
	plot   *plot
	grades [wire.CellsPerChunk]grade
	former [wire.CellsPerChunk]grade // that the vantage had them in before the rings were drawn last
	blocks [wire.CellsPerChunk]int32 // away; 0 is the vantage's own cell only
}

// vantage is what sessions at one point are told of motion.
type vantage struct {
	point     vantagePoint
	sessions  int
	lines     []sightline // by chunk
	former    []sightline // spare
	unsettled bool        // the rings are to be drawn anew
	settled   uint64      // the tick at which they were
	weighs    bool        // more are seen than may be told of in the finest rings, whatever they do
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
	s.gather(v)
	rest, avatars := v.former, 0
	for i := range v.lines {
		l := &v.lines[i]
		avatars += l.plot.actors
		for len(rest) > 0 && rest[0].plot.at.Compare(l.plot.at) < 0 {
			s.lose(&rest[0], v.weighs)
			rest = rest[1:]
		}
		if len(rest) > 0 && rest[0].plot == l.plot {
			l.grades, l.former, l.blocks = rest[0].grades, rest[0].grades, rest[0].blocks
			rest = rest[1:]
			continue
		}
		for c := range l.blocks {
			l.former[c], l.blocks[c] = unseen, v.point.away(l.plot.at, uint8(c))
		}
	}
	for i := range rest {
		s.lose(&rest[i], v.weighs)
	}
	weighed := v.weighs
	if v.weighs = !s.few(avatars); v.weighs {
		s.choose(v)
	} else {
		v.lay(!weighed)
	}
	for i := range v.lines {
		s.keep(&v.lines[i], weighed, v.weighs)
	}
	v.unsettled, v.settled = false, s.mu.tick
}

// gather finds the plots in view, and puts them in order.
func (s *stage) gather(v *vantage) {
	s.found = s.found[:0]
	reach := int32(v.point.view) + 1 // sessions keep chunks that are one farther
	if side := int(2*reach + 1); side*side < len(s.mu.plots) {
		for x := -reach; x <= reach; x++ {
			for z := -reach; z <= reach; z++ {
				if p := s.mu.plots[grid.ChunkPos{X: v.point.chunk.X + x, Z: v.point.chunk.Z + z}]; p != nil {
					s.found = append(s.found, p)
				}
			}
		}
	} else {
		for at, p := range s.mu.plots {
			if apart(at, v.point.chunk) <= int64(reach) {
				s.found = append(s.found, p)
			}
		}
		slices.SortFunc(s.found, func(p, q *plot) int { return p.at.Compare(q.at) })
	}
	for _, p := range s.found {
		v.lines = append(v.lines, sightline{plot: p})
	}
}

// keep has a plot told of in the grades that a vantage has it in from now on.
func (s *stage) keep(l *sightline, weighed, weighs bool) {
	added := l.former[0] == unseen
	if weighs && (added || !weighed) {
		s.weigh(l.plot, 1)
	} else if !weighs && weighed && !added {
		s.weigh(l.plot, -1)
	}
	if l.former == l.grades {
		return
	}
	for c := range l.grades {
		l.plot.use(uint8(c), l.former[c], l.grades[c])
	}
}

// lose has it told of no more on behalf of the vantage.
func (s *stage) lose(l *sightline, weighed bool) {
	if weighed {
		s.weigh(l.plot, -1)
	}
	for c, g := range l.grades {
		l.plot.use(uint8(c), g, unseen)
	}
}

// release takes a vantage off the stage.
func (s *stage) release(v *vantage) {
	for i := range v.lines {
		s.lose(&v.lines[i], v.weighs)
	}
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
	pieces, avatars := 0, 0
	w := chunkWriter{dst: v.motion, tick: s.mu.tick}
	for i := range v.lines {
		l := &v.lines[i]
		avatars += l.plot.actors
		if l.plot.looked != s.mu.tick {
			continue
		}
		for left := l.plot.told; left != 0; {
			c := left.next()
			piece := l.plot.cells[c].piece(l.grades[c])
			pieces += len(piece)
			w.add(l.plot.at, piece)
		}
		w.cross(l)
	}
	v.motion, v.extra = w.dst, len(w.dst)-pieces
	v.alone = avatars <= 1 && v.point.view >= aloneView
	switch age := s.mu.tick - v.settled; {
	case age < hasteTicks, age < settleTicks && !v.unsettled:
	case v.unsettled, v.weighs, !s.few(avatars):
		s.draw(v)
		v.motion = shift(v.motion, v.former, v.lines, s.mu.tick)
	default: // the same chunks are in view, and distance alone says in which grade
		v.settled = s.mu.tick
	}
}

// shift adds what those need to know who have had one view of the stage and get another one from now on.
func shift(dst []byte, from, to []sightline, tick uint64) []byte {
	w := chunkWriter{dst: dst, tick: tick}
	for i := range to {
		l, before := &to[i], &nowhere
		for len(from) > 0 && from[0].plot.at.Compare(l.plot.at) < 0 {
			from = from[1:]
		}
		if len(from) > 0 && from[0].plot == l.plot {
			before = &from[0].grades
		}
		if *before != l.grades {
			w.shift(l, before)
		}
	}
	return w.dst
}

// nowhere is how those have a plot's cells who do not see it.
var nowhere = func() (cells [wire.CellsPerChunk]grade) {
	for c := range cells {
		cells[c] = unseen
	}
	return cells
}()

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

// shift adds what those need to know who have had the plot's cells in other grades: of everybody whom the two grades' clients do not
// take to do the same.
func (w *chunkWriter) shift(l *sightline, from *[wire.CellsPerChunk]grade) {
	for left := l.plot.peopled; left != 0; {
		number := left.next()
		if from[number] == l.grades[number] {
			continue
		}
		c := &l.plot.cells[number]
		var m wire.MotionWriter
		m.Begin(number, c.lowest())
		for _, a := range c.actors {
			if a.shift(from[number], l.grades[number]) {
				w.under(l.plot.at)
				moved := a.motion(&a.tracks[l.grades[number]], w.tick)
				w.dst = m.Append(w.dst, &moved)
			}
		}
	}
}

// cross adds the avatars that have come, within a plot, into a cell that the vantage has in another grade.
func (w *chunkWriter) cross(l *sightline) {
	for i := range l.plot.crossed {
		c := &l.plot.crossed[i]
		a := c.actor
		if a.plot != l.plot {
			continue // it went on to another chunk, whose viewers are told in words
		}
		from, to := l.grades[c.from], l.grades[a.cell]
		if from == to || c.kept.has(from) && c.kept.has(to) && c.before[from] == c.before[to] {
			continue
		}
		if !a.kept.has(to) {
			a.renew(to)
		}
		w.under(l.plot.at)
		var m wire.MotionWriter
		m.Begin(a.cell, a.place.Y)
		moved := a.motion(&a.tracks[to], w.tick)
		w.dst = m.Append(w.dst, &moved)
	}
}
