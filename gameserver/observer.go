package gameserver

import (
	"math"
	"slices"

	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/world"
)

// This file computes what sessions see and are sent of motion. Sessions in one cell with one view distance share an observer, and
// so one frame's motion: the cost of a crowd depends on the number of cells, not of pairs.

// keepTicks is how long an observer's tiers stay as they are while chunks neither get their first avatar nor lose their last
// one, and urgentTicks how long if they do.
const keepTicks, urgentTicks = 40, 4

// aloneView is the minimum view distance, in chunks, of a player who may count as alone: anybody who sees them from beyond gets
// them in the tier distant, once a second.
const aloneView = 2

// stayBlocks is how far beyond its cell a session keeps its observer, so that a walk to and fro costs nothing.
const stayBlocks = 1.5

// observerPoint is where a session looks from.
type observerPoint struct {
	chunk grid.ChunkPos
	cell  uint8
	view  int // chunks in each direction
}

// cellOf returns the cell of a chunk that a pose is in.
func cellOf(at grid.ChunkPos, p motion.Pose) uint8 { return sessionmsg.PlaceOf(at, p).Cell() }

const cellRow = grid.ChunkSize / sessionmsg.CellSize

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
	at := world.ChunkOf(p)
	return observerPoint{chunk: at, cell: cellOf(at, p), view: view}
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
	sessions     int
	views        []bucketView // by chunk
	formerViews  []bucketView // scratch
	stale        bool         // tiers must be assigned anew
	assignedTick uint64       // the tick of the last assignment
	overFinest   bool         // more avatars are in view than fit the finest profile, however they move
	profile      int          // index into lodProfiles
	alone        bool         // at most the session's own avatar is in view, and nobody sees it well

	tick       uint64
	motion     []byte // of the tick, for sessions that have that of the previous one
	extra      int    // bytes of it that are not cells' pieces
	fullMotion []byte // full state for the others; of fullTick
	fullTick   uint64
}

// reassign makes observers with the chunk in view assign tiers anew. The lock is held.
func (ix *interestIndex) reassign(at grid.ChunkPos) {
	for point, obs := range ix.mu.observers {
		if chunkDistance(point.chunk, at) <= int64(point.view)+1 {
			obs.stale = true
		}
	}
}

// assignTiers assigns tiers: which cells are in view, and in which tier.
func (ix *interestIndex) assignTiers(obs *observer) {
	obs.formerViews, obs.views = obs.views, obs.formerViews[:0]
	ix.bucketsInView(obs)
	rest, avatars := obs.formerViews, 0
	for i := range obs.views {
		bv := &obs.views[i]
		avatars += bv.bucket.actors
		for len(rest) > 0 && rest[0].bucket.at.Compare(bv.bucket.at) < 0 {
			ix.unuseBucket(&rest[0], obs.overFinest)
			rest = rest[1:]
		}
		if len(rest) > 0 && rest[0].bucket == bv.bucket {
			bv.tiers, bv.former, bv.blocks = rest[0].tiers, rest[0].tiers, rest[0].blocks
			rest = rest[1:]
			continue
		}
		for c := range bv.blocks {
			bv.former[c], bv.blocks[c] = unseen, obs.point.away(bv.bucket.at, uint8(c))
		}
	}
	for i := range rest {
		ix.unuseBucket(&rest[i], obs.overFinest)
	}
	weighed := obs.overFinest
	if obs.overFinest = !ix.fitsFinest(avatars); obs.overFinest {
		ix.chooseProfile(obs)
	} else {
		obs.applyFinest(!weighed)
	}
	for i := range obs.views {
		ix.useBucket(&obs.views[i], weighed, obs.overFinest)
	}
	obs.stale, obs.assignedTick = false, ix.mu.tick
}

// bucketsInView finds the buckets in view, in order.
func (ix *interestIndex) bucketsInView(obs *observer) {
	ix.found = ix.found[:0]
	reach := int32(obs.point.view) + 1 // sessions keep chunks that are one farther
	if side := int(2*reach + 1); side*side < len(ix.mu.buckets) {
		for x := -reach; x <= reach; x++ {
			for z := -reach; z <= reach; z++ {
				if bkt := ix.mu.buckets[grid.ChunkPos{X: obs.point.chunk.X + x, Z: obs.point.chunk.Z + z}]; bkt != nil {
					ix.found = append(ix.found, bkt)
				}
			}
		}
	} else {
		for at, bkt := range ix.mu.buckets {
			if chunkDistance(at, obs.point.chunk) <= int64(reach) {
				ix.found = append(ix.found, bkt)
			}
		}
		slices.SortFunc(ix.found, func(bkt, q *bucket) int { return bkt.at.Compare(q.at) })
	}
	for _, bkt := range ix.found {
		obs.views = append(obs.views, bucketView{bucket: bkt})
	}
}

// useBucket makes a bucket encode the tiers in which an observer has it.
func (ix *interestIndex) useBucket(bv *bucketView, weighed, weighs bool) {
	added := bv.former[0] == unseen
	if weighs && (added || !weighed) {
		ix.addCostObservers(bv.bucket, 1)
	} else if !weighs && weighed && !added {
		ix.addCostObservers(bv.bucket, -1)
	}
	if bv.former == bv.tiers {
		return
	}
	for c := range bv.tiers {
		bv.bucket.use(uint8(c), bv.former[c], bv.tiers[c])
	}
}

// unuseBucket removes these again.
func (ix *interestIndex) unuseBucket(bv *bucketView, weighed bool) {
	if weighed {
		ix.addCostObservers(bv.bucket, -1)
	}
	for c, tier := range bv.tiers {
		bv.bucket.use(uint8(c), tier, unseen)
	}
}

// release removes an observer from the index.
func (ix *interestIndex) release(obs *observer) {
	for i := range obs.views {
		ix.unuseBucket(&obs.views[i], obs.overFinest)
	}
}

// away returns the distance of a cell from the observer's, edge to edge, in blocks; at least 1 for another one.
func (pt observerPoint) away(at grid.ChunkPos, cell uint8) int32 {
	x, z := corner(at, cell)
	ownX, ownZ := corner(pt.chunk, pt.cell)
	if x == ownX && z == ownZ {
		return 0
	}
	gapX, gapZ := max(0, abs(x-ownX)-1)*sessionmsg.CellSize, max(0, abs(z-ownZ)-1)*sessionmsg.CellSize
	return int32(max(1, math.Hypot(float64(gapX), float64(gapZ))))
}

// compose assembles the tick's motion for sessions that have the previous one.
func (ix *interestIndex) compose(obs *observer) {
	obs.tick, obs.motion = ix.mu.tick, obs.motion[:0]
	pieces, avatars := 0, 0
	w := chunkWriter{dst: obs.motion, tick: ix.mu.tick}
	for i := range obs.views {
		bv := &obs.views[i]
		avatars += bv.bucket.actors
		if bv.bucket.encodedTick != ix.mu.tick {
			continue
		}
		for left := bv.bucket.withPieces; left != 0; {
			c := left.next()
			piece := bv.bucket.cells[c].piece(bv.tiers[c])
			pieces += len(piece)
			w.add(bv.bucket.at, piece)
		}
		w.cross(bv)
	}
	obs.motion, obs.extra = w.dst, len(w.dst)-pieces
	obs.alone = avatars <= 1 && obs.point.view >= aloneView
	switch age := ix.mu.tick - obs.assignedTick; {
	case age < urgentTicks, age < keepTicks && !obs.stale:
	case obs.stale, obs.overFinest, !ix.fitsFinest(avatars):
		ix.assignTiers(obs)
		obs.motion = shift(obs.motion, obs.formerViews, obs.views, ix.mu.tick)
	default: // the same chunks are in view, and tiers depend on distance alone
		obs.assignedTick = ix.mu.tick
	}
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

// fullState returns the full state, for sessions that have nothing or have missed something.
func (ix *interestIndex) fullState(obs *observer) []byte {
	if obs.fullTick != ix.mu.tick || len(obs.fullMotion) == 0 {
		obs.fullMotion, obs.fullTick = shift(obs.fullMotion[:0], nil, obs.views, ix.mu.tick), ix.mu.tick
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

// shift adds the updates for sessions that had the bucket's cells in other tiers: of all avatars whose predictions differ between
// the two.
func (w *chunkWriter) shift(bv *bucketView, from *[sessionmsg.CellsPerChunk]lodTier) {
	for left := bv.bucket.occupied; left != 0; {
		number := left.next()
		if from[number] == bv.tiers[number] {
			continue
		}
		c := &bv.bucket.cells[number]
		var m sessionmsg.MotionWriter
		m.Begin(number, c.lowest())
		for _, a := range c.actors {
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
		a := c.actor
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
