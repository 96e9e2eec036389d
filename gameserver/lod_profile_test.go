package gameserver

import (
	"slices"
	"testing"

	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"

	"github.com/voxelpopuli/voxeld/player"
)

// In a chunk with avatars all the time, tiers depend on the crowd while there is one, and on distance alone before and after it.
func TestTiersFollowTheCrowd(t *testing.T) {
	const few, many = 50, 500
	h := newCrowdScene(many, jitter)
	s := h.addSession(0)
	var d writeBuffers
	coarsest := func() lodTier {
		t.Helper()
		for range keepTicks + 1 {
			if err := h.tick([]*session{s}); err != nil {
				t.Fatal(err)
			}
			if err := d.clear(s.out, sinkFunc(func([]byte) error { return nil })); err != nil {
				t.Fatal(err)
			}
		}
		return slices.Max(s.observer.views[0].tiers[:])
	}
	needsUpdate := func(n nodemsg.ChunkDelta) {
		t.Helper()
		if err := h.f.apply(nodemsg.FromRegion{Chunks: []nodemsg.ChunkDelta{n}}); err != nil {
			t.Fatal(err)
		}
	}
	needsUpdate(nodemsg.ChunkDelta{Enter: slices.Clone(h.crowd.bodies[:few])})
	if tier := coarsest(); tier != exact {
		t.Errorf("%d avatars in one chunk are sent in tier %d, want %d", few, tier, exact)
	}
	needsUpdate(nodemsg.ChunkDelta{Enter: slices.Clone(h.crowd.bodies[few:])})
	if tier := coarsest(); tier == exact {
		t.Errorf("%d avatars in one chunk are sent exactly", many)
	}
	var gone []player.ID
	for _, b := range h.crowd.bodies[few:] {
		gone = append(gone, b.Player)
	}
	needsUpdate(nodemsg.ChunkDelta{Leave: gone})
	if tier := coarsest(); tier != exact {
		t.Errorf("after the crowd has gone %d avatars are sent in tier %d, want %d", few, tier, exact)
	}
}

// account checks the counts of the index.
func (ix *interestIndex) account(t testing.TB) {
	t.Helper()
	type seen struct {
		uses     [sessionmsg.CellsPerChunk][tiers]int32
		weighers int
	}
	want := make(map[*bucket]*seen)
	for _, bkt := range ix.mu.buckets {
		want[bkt] = &seen{}
	}
	for _, obs := range ix.mu.observers {
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
			avatars += len(bkt.cells[c].actors)
			if clientsHere := bkt.occupied&(1<<c) != 0; clientsHere != (len(bkt.cells[c].actors) > 0) {
				t.Fatalf("chunk %v, cell %d: peopled %v; there are %d avatars", bkt.at, c, clientsHere, len(bkt.cells[c].actors))
			}
			for g, n := range bkt.uses[c] {
				if used := bkt.used[c].has(lodTier(g)); used != (n > 0) {
					t.Fatalf("chunk %v, cell %d, tier %d: used %v, by %d observers", bkt.at, c, g, used, n)
				}
			}
		}
		if bkt.actors != avatars {
			t.Fatalf("chunk %v: %d avatars, there are %d", bkt.at, bkt.actors, avatars)
		}
		if bkt.costObservers > 0 {
			weighed += avatars
		}
	}
	if ix.mu.inCostBuckets != weighed {
		t.Fatalf("%d avatars are weighed, there are %d", ix.mu.inCostBuckets, weighed)
	}
}
