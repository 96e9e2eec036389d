package walkad

import (
	"cmp"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/voxelpopuli/voxeld/grid"
)

// few returns the paper's network with three contacts for each neighbour cell.
func few(nodes int) Config {
	c := Paper()
	c.Nodes, c.Links = nodes, 3
	return c
}

// hops returns the share of answers with at most two hops, and the mean and maximum of the hops and the mean latency.
func hops(t *testing.T, answers []Answer) (within2, mean, most, millis float64) {
	t.Helper()
	if len(answers) < 100 {
		t.Fatalf("%d queries", len(answers))
	}
	for _, a := range answers {
		if a.Failed {
			t.Fatalf("a query failed: %+v", a)
		}
		if a.Hops <= 2 {
			within2++
		}
		mean += float64(a.Hops)
		most = max(most, float64(a.Hops))
		millis += a.Millis
	}
	count := float64(len(answers))
	return within2 / count, mean / count, most, millis / count
}

// §V-A: walking is faster than teleporting, and that than the simple approach. §IV-C: queries that are not local need
// log(m) hops, where m is the number of a region's cells.
func TestOrderOfApproaches(t *testing.T) {
	for _, nodes := range []int{256, 1024} {
		for _, keys := range []Keys{DaemonKeys, PaperKeys} {
			c := few(nodes)
			c.Keys = keys
			n := New(c)
			within2, walk, _, walkTime := hops(t, n.Move(1, 20, 3600, Walking))
			_, teleport, most, teleportTime := hops(t, n.Move(100, 20, 600, Walking))
			_, simple, _, simpleTime := hops(t, n.Move(1, 5, 3600, SimpleApproach))
			_, plain, _, _ := hops(t, n.Move(1, 5, 3600, PlainKademlia))
			t.Logf("%d nodes, %s keys: walk %.3f hops, teleport %.3f (most %g), simple %.2f, plain %.2f", nodes, keys, walk, teleport, most, simple, plain)
			if within2 < .99 || simple < 5*walk {
				t.Errorf("walking: %.4f within two hops, mean %.3f; simple approach: mean %.3f", within2, walk, simple)
			}
			if walk > teleport || teleport > simple || walkTime > teleportTime || teleportTime > simpleTime {
				t.Errorf("order: %.2f, %.2f, %.2f hops; %.0f, %.0f, %.0f ms", walk, teleport, simple, walkTime, teleportTime, simpleTime)
			}
			if m := float64(n.Cells()) / float64(n.Regions); most > math.Log2(m) {
				t.Errorf("a query needed %g hops, more than log2 of %g cells", most, m)
			}
		}
	}
}

// With contacts for all coordinators, as in the paper, at least 90 % of the local queries need one or two hops (figure
// 3a).
func TestPaperLinks(t *testing.T) {
	if within2, _, _, _ := hops(t, New(Paper()).Move(1, 20, 3600, Walking)); within2 < .9 {
		t.Errorf("%.3f within two hops", within2)
	}
}

func TestSameSeedSameAnswers(t *testing.T) {
	run := func() []Answer {
		n := New(few(128))
		return append(append(n.Move(10, 5, 300, Walking), n.Move(10, 5, 60, SimpleApproach)...), n.Loaded(10, 50, 300, 1)...)
	}
	if !reflect.DeepEqual(run(), run()) {
		t.Error("two runs with the same seed differ")
	}
}

func TestLeavesCoverTheRegion(t *testing.T) {
	w := newWorld(Paper())
	for i, r := range w.regions {
		for x := range int32(grid.DomainSize) {
			for z := range int32(grid.DomainSize) {
				p := grid.ChunkPos{X: int32(i)*grid.DomainSize + x, Z: z}
				if c := w.leafAt(p); c < r.first || c >= r.end || !w.leaves[c].Contains(p) {
					t.Fatalf("chunk %v is in %v", p, w.leaves[c].Cell)
				}
			}
		}
	}
}

// §IV-A: adjacent cells are neighbours, also where the trie is skewed; and being a neighbour is mutual.
func TestNeighbours(t *testing.T) {
	w := newWorld(Paper())
	isNeighbour := func(a, b cell) bool {
		return slices.ContainsFunc(w.leaves[a].neighbours, func(bit []cell) bool { return slices.Contains(bit, b) })
	}
	for _, r := range w.regions {
		for a := r.first; a < r.end; a++ {
			for b := r.first; b < a; b++ {
				x, y := w.leaves[a], w.leaves[b]
				if adjacent(x.Area(), y.Area()) && !isNeighbour(a, b) {
					t.Errorf("%v and %v are adjacent, but not neighbours", x.Cell, y.Cell)
				}
				if isNeighbour(a, b) != isNeighbour(b, a) {
					t.Errorf("%v and %v: only one is a neighbour of the other", x.Cell, y.Cell)
				}
			}
			for bit, of := range w.leaves[a].neighbours {
				if len(of) == 0 {
					t.Errorf("%v has no neighbour in bit %d", w.leaves[a].Cell, bit)
				}
			}
		}
	}
}

func TestClosest(t *testing.T) {
	n := New(few(300))
	rng := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		key := rng.Uint64()
		all := make([]peer, n.Nodes)
		for i := range all {
			all[i] = peer(i)
		}
		slices.SortFunc(all, func(a, b peer) int { return cmp.Compare(n.ids[a]^key, n.ids[b]^key) })
		if got := n.closest(key, 10); !slices.Equal(got, all[:10]) {
			t.Fatalf("closest to %x: %v, want %v", key, got, all[:10])
		}
	}
	if got := n.closest(1, 1000); len(got) != n.Nodes {
		t.Errorf("%d peers of %d", len(got), n.Nodes)
	}
}

// No k-bucket has more than K entries, neither of a plain routing table nor of a coordinator's contacts.
func TestBucketsAreBounded(t *testing.T) {
	for _, c := range []Config{Paper(), few(1024)} {
		n := New(c)
		for p := range peer(n.Nodes) {
			contacts := make(map[peer]bool)
			for _, l := range n.linksOf(p) {
				if !slices.Contains(n.coordinates[p], l.cell) {
					for _, q := range l.contacts {
						contacts[q] = true
					}
				}
			}
			linked, known := make(map[int]int), make(map[int]int)
			for q := range contacts {
				linked[n.bucket(p, q)]++
			}
			for _, q := range n.table(p) {
				known[n.bucket(p, q)]++
			}
			for b := range 65 {
				if linked[b] > n.K || known[b] > n.K {
					t.Fatalf("bucket %d of peer %d: %d contacts, %d in the table", b, p, linked[b], known[b])
				}
			}
		}
	}
}

func TestRoundTrips(t *testing.T) {
	n := New(few(300))
	var all []float64
	for a := range peer(n.Nodes) {
		for b := range a {
			all = append(all, n.roundTrip(a, b))
		}
	}
	slices.Sort(all)
	median, high := all[len(all)/2], all[len(all)*95/100]
	if median < 80 || median > 100 || high > 170 {
		t.Errorf("median %.1f ms, 95 %% %.1f ms", median, high)
	}
}
