package interest

import (
	"slices"
	"testing"

	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// In a chunk with avatars all the time, tiers depend on the crowd while there is one, and on distance alone before and
// after it.
func TestTiersFollowTheCrowd(t *testing.T) {
	const few, many = 50, 500
	c := newLandscape(t, 1, 1, many, defaultBudget)
	crowd := c.walkers
	c.walkers = crowd[:few]
	v := c.join(0, 2, nil)
	coarsest := func() lodTier {
		t.Helper()
		for range keepTicks + 1 {
			c.walk()
			c.frame()
			c.read()
		}
		return slices.Max(v.observer.views[0].tiers[:])
	}
	if tier := coarsest(); tier != exact {
		t.Errorf("%d avatars in one chunk are sent in tier %d, want %d", few, tier, exact)
	}
	var enter nodemsg.ChunkDelta
	for _, w := range crowd[few:] {
		enter.Enter = append(enter.Enter, w.Body)
	}
	c.walkers = crowd
	if c.apply(&enter); coarsest() == exact {
		t.Errorf("%d avatars in one chunk are sent exactly", many)
	}
	var leave nodemsg.ChunkDelta
	for _, w := range crowd[few:] {
		leave.Leave = append(leave.Leave, w.Player)
	}
	c.walkers = crowd[:few]
	c.apply(&leave)
	if tier := coarsest(); tier != exact {
		t.Errorf("after the crowd has gone %d avatars are sent in tier %d, want %d", few, tier, exact)
	}
}

// A frame of a gateway around which nobody moves allocates nothing.
func TestCalmFrameAllocatesNothing(t *testing.T) {
	c := newLandscape(t, 1, 9, 60, defaultBudget)
	for i := range 5 {
		c.join(i, 1+i, nil)
	}
	for range 50 {
		c.walk()
		c.frame()
		c.read()
	}
	calm := func() {
		c.frame()
		c.read()
	}
	for range 200 { // until the last predictions of the walkers have ended
		calm()
	}
	if n := testing.AllocsPerRun(100, calm); n > 0 {
		t.Errorf("a frame allocates %v times", n)
	}
}

// account checks the counts of the index.
func (ix *Index) account(t testing.TB) {
	t.Helper()
	type seen struct {
		uses     [sessionmsg.CellsPerChunk][tiers]int32
		weighers int
	}
	want := make(map[*bucket]*seen)
	for _, bkt := range ix.buckets {
		want[bkt] = &seen{}
	}
	for _, obs := range ix.observers {
		for i := range obs.views {
			bv := &obs.views[i]
			if want[bv.bucket] == nil {
				continue // no avatar is there any more
			}
			if obs.overFinest {
				want[bv.bucket].weighers++
			}
			for c, tier := range bv.tiers {
				want[bv.bucket].uses[c][tier]++
			}
		}
	}
	weighed := 0
	for bkt, w := range want {
		if bkt.uses != w.uses || bkt.costObservers != w.weighers {
			t.Fatalf("chunk %v: uses %v, weighers %d; there are %v and %d", bkt.at, bkt.uses, bkt.costObservers, w.uses, w.weighers)
		}
		avatars := 0
		for c := range bkt.cells {
			avatars += len(bkt.cells[c].avatars)
			if clientsHere := bkt.occupied&(1<<c) != 0; clientsHere != (len(bkt.cells[c].avatars) > 0) {
				t.Fatalf("chunk %v, cell %d: peopled %v; there are %d avatars", bkt.at, c, clientsHere, len(bkt.cells[c].avatars))
			}
			for g, n := range bkt.uses[c] {
				if used := bkt.used[c].has(lodTier(g)); used != (n > 0) {
					t.Fatalf("chunk %v, cell %d, tier %d: used %v, by %d observers", bkt.at, c, g, used, n)
				}
			}
		}
		if bkt.avatars != avatars {
			t.Fatalf("chunk %v: %d avatars, there are %d", bkt.at, bkt.avatars, avatars)
		}
		if bkt.costObservers > 0 {
			weighed += avatars
		}
	}
	if ix.costs.avatars != weighed {
		t.Fatalf("%d avatars are weighed, there are %d", ix.costs.avatars, weighed)
	}
}
