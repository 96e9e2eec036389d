package gameserver

import (
	"math"
	"slices"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/world"
)

// This file computes what sessions see and are sent of motion. Sessions in one cell with one view distance share an observer, and
// so one frame's motion: the cost of a crowd depends on the number of cells, not of pairs.

// settleTicks is how long an observer's tiers stay as they are while chunks neither get their first avatar nor lose their last
// one, and hasteTicks how long if they do.
const settleTicks, hasteTicks = 40, 4

// aloneView is the minimum view distance, in chunks, of a player who may count as alone: anybody who sees them from beyond gets
// them in the tier distant, once a second.
const aloneView = 2

// stayBlocks is how far beyond its cell a session keeps its observer, so that a walk to and fro costs nothing.
const stayBlocks = 1.5

// vantagePoint is where a session looks from.
type vantagePoint struct {
	chunk grid.ChunkPos
	cell  uint8
	view  int // chunks in each direction
}

// cellOf returns the cell of a chunk that a pose is in.
func cellOf(at grid.ChunkPos, p wire.Pose) uint8 { return wire.PlaceOf(at, p).Cell() }

const cellRow = grid.ChunkSize / wire.CellSize

// corner returns where a chunk's cell begins, in cells.
func corner(at grid.ChunkPos, cell uint8) (x, z int64) {
	return int64(at.X)*cellRow + int64(cell%cellRow), int64(at.Z)*cellRow + int64(cell/cellRow)
}

// holds reports whether a session at the pose may keep the point.
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

// sightline is a bucket as an observer sees it, cell by cell.
type sightline struct {
	plot   *plot
	grades [wire.CellsPerChunk]grade
	former [wire.CellsPerChunk]grade // tiers before the profile was applied last
	blocks [wire.CellsPerChunk]int32 // distances; 0 is the observer's own cell only
}

// vantage is the state shared by the sessions at one point, and the motion that they are sent.
type vantage struct {
	point     vantagePoint
	sessions  int
	lines     []sightline // by chunk
	former    []sightline // scratch
	unsettled bool        // tiers must be assigned anew
	settled   uint64      // the tick of the last assignment
	weighs    bool        // more avatars are in view than fit the finest profile, however they move
	coarser   int         // index into lodProfiles
	alone     bool        // at most the session's own avatar is in view, and nobody sees it well

	tick      uint64
	motion    []byte // of the tick, for sessions that have that of the previous one
	extra     int    // bytes of it that are not cells' pieces
	whole     []byte // full state for the others; of wholeTick
	wholeTick uint64
}

// unsettle makes observers with the chunk in view assign tiers anew. The lock is held.
func (s *stage) unsettle(at grid.ChunkPos) {
	for point, v := range s.mu.vantages {
		if apart(point.chunk, at) <= int64(point.view)+1 {
			v.unsettled = true
		}
	}
}

// draw assigns tiers: which cells are in view, and in which tier.
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

// gather finds the buckets in view, in order.
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

// keep makes a bucket encode the tiers in which an observer has it.
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

// lose removes these again.
func (s *stage) lose(l *sightline, weighed bool) {
	if weighed {
		s.weigh(l.plot, -1)
	}
	for c, g := range l.grades {
		l.plot.use(uint8(c), g, unseen)
	}
}

// release removes an observer from the index.
func (s *stage) release(v *vantage) {
	for i := range v.lines {
		s.lose(&v.lines[i], v.weighs)
	}
}

// away returns the distance of a cell from the observer's, edge to edge, in blocks; at least 1 for another one.
func (v vantagePoint) away(at grid.ChunkPos, cell uint8) int32 {
	x, z := corner(at, cell)
	ownX, ownZ := corner(v.chunk, v.cell)
	if x == ownX && z == ownZ {
		return 0
	}
	gapX, gapZ := max(0, abs(x-ownX)-1)*wire.CellSize, max(0, abs(z-ownZ)-1)*wire.CellSize
	return int32(max(1, math.Hypot(float64(gapX), float64(gapZ))))
}

// compose assembles the tick's motion for sessions that have the previous one.
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
	default: // the same chunks are in view, and tiers depend on distance alone
		v.settled = s.mu.tick
	}
}

// shift appends the updates for sessions that had one view of the index and have another one from now on.
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

// nowhere are the tiers of a bucket that is not in view.
var nowhere = func() (cells [wire.CellsPerChunk]grade) {
	for c := range cells {
		cells[c] = unseen
	}
	return cells
}()

// all returns the full state, for sessions that have nothing or have missed something.
func (s *stage) all(v *vantage) []byte {
	if v.wholeTick != s.mu.tick || len(v.whole) == 0 {
		v.whole, v.wholeTick = shift(v.whole[:0], nil, v.lines, s.mu.tick), s.mu.tick
	}
	return v.whole
}

// chunkWriter writes motion pieces of cells, grouped by chunk.
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

// shift adds the updates for sessions that had the bucket's cells in other tiers: of all avatars whose predictions differ between
// the two.
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

// cross adds the avatars that have moved, within a bucket, into a cell that the observer has in another tier.
func (w *chunkWriter) cross(l *sightline) {
	for i := range l.plot.crossed {
		c := &l.plot.crossed[i]
		a := c.actor
		if a.plot != l.plot {
			continue // it moved on to another chunk, whose subscribers are sent its entering
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
