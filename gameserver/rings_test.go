package gameserver

import (
	"slices"
	"testing"

	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
)

// In a chunk with avatars all the time, tiers depend on the crowd while there is one, and on distance alone before and after it.
func TestRingsFollowTheCrowd(t *testing.T) {
	const few, many = 50, 500
	h := newTheatre(many, jitter)
	s := h.seat(0)
	var d desk
	coarsest := func() grade {
		t.Helper()
		for range settleTicks + 1 {
			if err := h.tick([]*session{s}); err != nil {
				t.Fatal(err)
			}
			if err := d.clear(s.out, sinkFunc(func([]byte) error { return nil })); err != nil {
				t.Fatal(err)
			}
		}
		return slices.Max(s.vantage.lines[0].grades[:])
	}
	tell := func(n wire.ChunkNews) {
		t.Helper()
		if err := h.f.take(wire.FromRegion{Chunks: []wire.ChunkNews{n}}); err != nil {
			t.Fatal(err)
		}
	}
	tell(wire.ChunkNews{Enter: slices.Clone(h.crowd.bodies[:few])})
	if g := coarsest(); g != exact {
		t.Errorf("%d avatars in one chunk are told of in grade %d, want %d", few, g, exact)
	}
	tell(wire.ChunkNews{Enter: slices.Clone(h.crowd.bodies[few:])})
	if g := coarsest(); g == exact {
		t.Errorf("%d avatars in one chunk are told of exactly", many)
	}
	var gone []player.ID
	for _, b := range h.crowd.bodies[few:] {
		gone = append(gone, b.Player)
	}
	tell(wire.ChunkNews{Leave: gone})
	if g := coarsest(); g != exact {
		t.Errorf("after the crowd has gone %d avatars are told of in grade %d, want %d", few, g, exact)
	}
}

// account checks the counts of the index.
func (s *stage) account(t testing.TB) {
	t.Helper()
	type seen struct {
		uses     [wire.CellsPerChunk][grades]int32
		weighers int
	}
	want := make(map[*plot]*seen)
	for _, p := range s.mu.plots {
		want[p] = &seen{}
	}
	for _, v := range s.mu.vantages {
		for i := range v.lines {
			l := &v.lines[i]
			if want[l.plot] == nil {
				continue // no avatar is there any more
			}
			if v.weighs {
				want[l.plot].weighers++
			}
			for c, g := range l.grades {
				want[l.plot].uses[c][g]++
			}
		}
	}
	weighed := 0
	for p, w := range want {
		if p.uses != w.uses || p.weighers != w.weighers {
			t.Fatalf("chunk %v: uses %v, weighers %d; there are %v and %d", p.at, p.uses, p.weighers, w.uses, w.weighers)
		}
		avatars := 0
		for c := range p.cells {
			avatars += len(p.cells[c].actors)
			if peopled := p.peopled&(1<<c) != 0; peopled != (len(p.cells[c].actors) > 0) {
				t.Fatalf("chunk %v, cell %d: peopled %v; there are %d avatars", p.at, c, peopled, len(p.cells[c].actors))
			}
			for g, n := range p.uses[c] {
				if used := p.used[c].has(grade(g)); used != (n > 0) {
					t.Fatalf("chunk %v, cell %d, grade %d: used %v, by %d vantages", p.at, c, g, used, n)
				}
			}
		}
		if p.actors != avatars {
			t.Fatalf("chunk %v: %d avatars, there are %d", p.at, p.actors, avatars)
		}
		if p.weighers > 0 {
			weighed += avatars
		}
	}
	if s.mu.weighed != weighed {
		t.Fatalf("%d avatars are weighed, there are %d", s.mu.weighed, weighed)
	}
}
