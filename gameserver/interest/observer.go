package interest

import (
	"math"
	"slices"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// This file computes what sessions see and are sent of motion. Sessions in one cell with one view distance share an
// observer, and so one frame's motion: the cost of a crowd depends on the number of cells, not of pairs.

// keepTicks is how long an observer's tiers stay as they are while chunks neither get their first avatar nor lose their
// last one, and urgentTicks how long if they do.
const keepTicks, urgentTicks = 40, 4

// AloneView is the minimum view distance, in chunks, of a player who may count as alone: anybody who sees them from
// beyond gets them in the tier distant, once a second.
const AloneView = 2

// stayBlocks is how far beyond its cell a session keeps its observer, so that a walk to and fro costs nothing.
const stayBlocks = 1.5

// observerPoint is where a session looks from.
type observerPoint struct {
	chunk grid.ChunkPos
	cell  uint8
	view  int // chunks in each direction
}

// corner returns where a chunk's cell begins, in cells.
func corner(at grid.ChunkPos, cell uint8) (x, z int64) {
	return int64(at.X)*cellRow + int64(cell%cellRow), int64(at.Z)*cellRow + int64(cell/cellRow)
}

// holds reports whether a session at the pose may keep the point.
func (pt observerPoint) holds(p motion.Pose, view int) bool {
	x, z := corner(pt.chunk, pt.cell)
	lowX, lowZ := float64(x*sessionmsg.CellSize)-stayBlocks, float64(z*sessionmsg.CellSize)-stayBlocks
	const width = sessionmsg.CellSize + 2*stayBlocks
	return pt.view == view && p.X >= lowX && p.X < lowX+width && p.Z >= lowZ && p.Z < lowZ+width
}

func observerPointOf(p motion.Pose, view int) observerPoint {
	at := p.Chunk()
	return observerPoint{chunk: at, cell: sessionmsg.PlaceOf(at, p).Cell(), view: view}
}

// bucketView is a bucket as an observer sees it, cell by cell.
type bucketView struct {
	bucket *bucket
	tiers  [sessionmsg.CellsPerChunk]lodTier
	former [sessionmsg.CellsPerChunk]lodTier // tiers before the profile was applied last
	blocks [sessionmsg.CellsPerChunk]int32   // distances; 0 is the observer's own cell only
}

// observer is the state shared by the sessions at one point, and the motion that they are sent.
type observer struct {
	point        observerPoint
	users        int
	views        []bucketView // by chunk
	formerViews  []bucketView // scratch
	stale        bool         // tiers must be assigned anew
	assignedTick uint64       // the tick of the last assignment
	overFinest   bool         // more avatars are in view than fit the finest profile, however they move
	profile      int          // index into lodProfiles
	alone        bool         // at most the session's own avatar is in view, and nobody sees it well

	motion     []byte // of the tick, for sessions that have that of the previous one
	extra      int    // bytes of it that are not cells' pieces
	fullMotion []byte // full state for the others; of fullTick
	fullTick   uint64
}

// applyFinest applies the finest profile to an observer that sees few avatars: tiers depend on distances alone. Former
// reports whether this was so before.
func (obs *observer) applyFinest(former bool) {
	obs.profile = 0
	for i := range obs.views {
		bv := &obs.views[i]
		if former && bv.former[0] != unseen {
			continue // unchanged
		}
		for c := range bv.tiers {
			bv.tiers[c] = lodProfiles[0].tier(bv.blocks[c], 0, unseen)
		}
	}
}

// chooseProfile applies the finest profile within the budget. It returns its scratch list for reuse: cells in view, the
// nearest first, as blocks<<32 | view<<viewShift | cell.
func (obs *observer) chooseProfile(c *costs, nearest []uint64) []uint64 {
	nearest = nearest[:0]
	for i := range obs.views {
		for c, blocks := range obs.views[i].blocks {
			nearest = append(nearest, uint64(blocks)<<32|uint64(i)<<viewShift|uint64(c))
		}
	}
	slices.Sort(nearest)
	for k := range lodProfiles {
		budget := c.budget
		if k < obs.profile {
			budget *= budgetSlack
		}
		crowd, cost := 0, c.extra[k].each
		for _, near := range nearest {
			bv, cell := &obs.views[uint32(near)>>viewShift], near%sessionmsg.CellsPerChunk
			n := len(bv.bucket.cells[cell].avatars)
			crowd += n
			bv.tiers[cell] = lodProfiles[k].tier(bv.blocks[cell], crowd, bv.former[cell])
			cost += float64(n) * c.tier[bv.tiers[cell]]
		}
		if cost <= budget || k == len(lodProfiles)-1 {
			obs.profile = k
			break
		}
	}
	return nearest
}

// viewShift makes room for a cell (see cellSet) below the number of a bucket view.
const viewShift = 4

// away returns the distance of a cell from the observer's, edge to edge, in blocks; at least 1 for another one.
func (pt observerPoint) away(at grid.ChunkPos, cell uint8) int32 {
	x, z := corner(at, cell)
	ownX, ownZ := corner(pt.chunk, pt.cell)
	if x == ownX && z == ownZ {
		return 0
	}
	gapX, gapZ := max(0, x-ownX-1, ownX-x-1)*sessionmsg.CellSize, max(0, z-ownZ-1, ownZ-z-1)*sessionmsg.CellSize
	return int32(max(1, math.Hypot(float64(gapX), float64(gapZ))))
}

// shift appends the updates for sessions that had one view of the index and have another one from now on.
func shift(dst []byte, from, to []bucketView, tick uint64) []byte {
	w := chunkWriter{dst: dst, tick: tick}
	for i := range to {
		bv, before := &to[i], &nowhere
		for len(from) > 0 && from[0].bucket.at.Compare(bv.bucket.at) < 0 {
			from = from[1:]
		}
		if len(from) > 0 && from[0].bucket == bv.bucket {
			before = &from[0].tiers
		}
		if *before != bv.tiers {
			w.shift(bv, before)
		}
	}
	return w.dst
}

// nowhere are the tiers of a bucket that is not in view.
var nowhere = func() (cells [sessionmsg.CellsPerChunk]lodTier) {
	for c := range cells {
		cells[c] = unseen
	}
	return cells
}()

// fullState returns the full state, for viewers that have nothing or have missed something.
func (obs *observer) fullState(tick uint64) []byte {
	if obs.fullTick != tick || len(obs.fullMotion) == 0 {
		obs.fullMotion, obs.fullTick = shift(obs.fullMotion[:0], nil, obs.views, tick), tick
	}
	return obs.fullMotion
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
		w.dst, w.at, w.open = sessionmsg.AppendMotionChunk(w.dst, at), at, true
	}
}

func (w *chunkWriter) add(at grid.ChunkPos, piece []byte) {
	if len(piece) > 0 {
		w.under(at)
		w.dst = append(w.dst, piece...)
	}
}

// shift adds the updates for sessions that had the bucket's cells in other tiers: of all avatars whose predictions
// differ between the two.
func (w *chunkWriter) shift(bv *bucketView, from *[sessionmsg.CellsPerChunk]lodTier) {
	for left := bv.bucket.occupied; left != 0; {
		number := left.next()
		if from[number] == bv.tiers[number] {
			continue
		}
		c := &bv.bucket.cells[number]
		var m sessionmsg.MotionWriter
		m.Begin(number, c.lowest())
		for _, a := range c.avatars {
			if a.shift(from[number], bv.tiers[number]) {
				w.under(bv.bucket.at)
				moved := a.motion(&a.predictions[bv.tiers[number]], w.tick)
				w.dst = m.Append(w.dst, &moved)
			}
		}
	}
}

// cross adds the avatars that have moved, within a bucket, into a cell that the observer has in another tier.
func (w *chunkWriter) cross(bv *bucketView) {
	for i := range bv.bucket.crossed {
		c := &bv.bucket.crossed[i]
		a := c.avatar
		if a.bucket != bv.bucket {
			continue // it moved on to another chunk, whose subscribers are sent its entering
		}
		from, to := bv.tiers[c.from], bv.tiers[a.cell]
		if from == to || c.valid.has(from) && c.valid.has(to) && c.before[from] == c.before[to] {
			continue
		}
		if !a.valid.has(to) {
			a.resetPrediction(to)
		}
		w.under(bv.bucket.at)
		var m sessionmsg.MotionWriter
		m.Begin(a.cell, a.place.Y)
		moved := a.motion(&a.predictions[to], w.tick)
		w.dst = m.Append(w.dst, &moved)
	}
}
