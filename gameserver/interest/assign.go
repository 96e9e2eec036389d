package interest

import (
	"slices"

	"github.com/voxelpopuli/voxeld/grid"
)

// assignTiers assigns tiers: which cells are in view, and in which tier.
func (ix *Index) assignTiers(obs *observer) {
	obs.formerViews, obs.views = obs.views, obs.formerViews[:0]
	ix.bucketsInView(obs)
	rest, avatars := obs.formerViews, 0
	for i := range obs.views {
		bv := &obs.views[i]
		avatars += bv.bucket.avatars
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
	if obs.overFinest = !ix.costs.fitsFinest(avatars); obs.overFinest {
		ix.nearest = obs.chooseProfile(&ix.costs, ix.nearest)
	} else {
		obs.applyFinest(!weighed)
	}
	for i := range obs.views {
		ix.useBucket(&obs.views[i], weighed, obs.overFinest)
	}
	obs.stale, obs.assignedTick = false, ix.tick
}

// bucketsInView finds the buckets in view, in order.
func (ix *Index) bucketsInView(obs *observer) {
	ix.found = ix.found[:0]
	reach := int32(obs.point.view) + 1 // sessions keep chunks that are one farther
	if side := int(2*reach + 1); side*side < len(ix.buckets) {
		for x := -reach; x <= reach; x++ {
			for z := -reach; z <= reach; z++ {
				if bkt := ix.buckets[grid.ChunkPos{X: obs.point.chunk.X + x, Z: obs.point.chunk.Z + z}]; bkt != nil {
					ix.found = append(ix.found, bkt)
				}
			}
		}
	} else {
		for at, bkt := range ix.buckets {
			if at.Distance(obs.point.chunk) <= int64(reach) {
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
func (ix *Index) useBucket(bv *bucketView, weighed, weighs bool) {
	added := bv.former[0] == unseen
	if weighs && (added || !weighed) {
		ix.costs.addObservers(bv.bucket, 1)
	} else if !weighs && weighed && !added {
		ix.costs.addObservers(bv.bucket, -1)
	}
	if bv.former == bv.tiers {
		return
	}
	for c := range bv.tiers {
		bv.bucket.use(uint8(c), bv.former[c], bv.tiers[c])
	}
}

// unuseBucket removes these again.
func (ix *Index) unuseBucket(bv *bucketView, weighed bool) {
	if weighed {
		ix.costs.addObservers(bv.bucket, -1)
	}
	for c, tier := range bv.tiers {
		bv.bucket.use(uint8(c), tier, unseen)
	}
}

// release removes an observer from the index.
func (ix *Index) release(obs *observer) {
	for i := range obs.views {
		ix.unuseBucket(&obs.views[i], obs.overFinest)
	}
}
