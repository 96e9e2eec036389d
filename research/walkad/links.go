package walkad

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// linksOf returns a coordinator's own cells, and the neighbour cells that it has room for (§IV-B, Coordinator
// Selection).
//
// A contact occupies an entry of the k-bucket of its distance, and a bucket has K. A coordinator of several cells has
// one routing table for all. It adds the first neighbour of each bit of each cell, then the second ones, and so on,
// with n.Links contacts each, while there is room. With the paper's Links = R, one bucket has K/R cells (§IV-C). A
// contact counts once, however many cells it coordinates, and is then known for all of them that are neighbours.
func (n *Network) linksOf(p peer) []link {
	if l, known := n.links[p]; known {
		return l
	}
	first := make(map[cell]int) // the candidates, and the round in which each is added
	for _, own := range n.coordinates[p] {
		for _, bit := range n.world.leaves[own].neighbours {
			for round, c := range bit {
				if before, known := first[c]; !known || round < before {
					first[c] = round
				}
			}
		}
	}
	var l []link
	for _, own := range n.coordinates[p] {
		delete(first, own)
		l = append(l, link{own, n.coordinators[own]})
	}
	candidates := make([]cell, 0, len(first))
	for c := range first {
		candidates = append(candidates, c)
	}
	slices.Sort(candidates)
	rng := rand.New(rand.NewPCG(n.Seed, uint64(p)))
	rng.Shuffle(len(candidates), func(i, j int) { candidates[i], candidates[j] = candidates[j], candidates[i] })
	slices.SortStableFunc(candidates, func(a, b cell) int { return cmp.Compare(first[a], first[b]) })

	contacts, used := make(map[peer]bool), make(map[int]int)
	for _, c := range candidates {
		near := n.coordinators[c]
		for _, q := range near[:min(n.Links, len(near))] {
			if b := n.bucket(p, q); q != p && !contacts[q] && used[b] < n.K {
				contacts[q] = true
				used[b]++
			}
		}
	}
	for _, c := range candidates {
		var to []peer
		for _, q := range n.coordinators[c] {
			if contacts[q] {
				to = append(to, q)
			}
		}
		if len(to) > 0 {
			l = append(l, link{c, to})
		}
	}
	n.links[p] = l
	return l
}
