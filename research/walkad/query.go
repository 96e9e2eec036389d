package walkad

import (
	"slices"

	"github.com/voxelpopuli/voxeld/grid"
)

// Answer is what it took to find the coordinators of a place.
type Answer struct {
	Hops   int     // questions of which each needed the answer to the one before
	Asked  int     // peers that were sent a question
	Millis float64 // until the coordinators were known
	Failed bool
}

// maxAsked ends a walk that does not find its way.
const maxAsked = 64

// walk is a query that goes from coordinator to coordinator (§IV-B, Range Query). The peer that asks directs it: it
// asks the peer that it has not asked yet whose cell is closest to the target, and is told of closer ones.
type walk struct {
	n      *Network
	target uint16 // the Gray code of the target's chunk
	goal   cell
	list   []step // the closest first
	asked  map[peer]bool
}

type step struct {
	peer     peer
	distance uint16 // of the cell that it is known for
}

// newWalk starts a query at the coordinators of one cell for the cell of a chunk of the same region.
func (n *Network) newWalk(from cell, target grid.ChunkPos) *walk {
	w := &walk{n: n, target: grid.CellAt(target, grid.MaxLabel).Label.Gray(), goal: n.world.leafAt(target), asked: make(map[peer]bool)}
	w.add(link{from, n.coordinators[from]})
	return w
}

// distanceOf returns a cell's distance from the target.
func (w *walk) distanceOf(c cell) uint16 {
	l := &w.n.world.leaves[c]
	return distance(l.code, w.target, l.Label.Len())
}

// add adds the coordinators of a cell to the list, in random order behind those that are as close.
func (w *walk) add(l link) {
	d := w.distanceOf(l.cell)
	at, _ := slices.BinarySearchFunc(w.list, d, func(s step, d uint16) int {
		if s.distance <= d {
			return -1
		}
		return 1
	})
	for _, i := range w.n.rng.Perm(len(l.contacts)) {
		w.list = slices.Insert(w.list, at, step{l.contacts[i], d})
	}
}

// next returns the peer to ask now; ok is false if there is none.
func (w *walk) next() (p peer, ok bool) {
	for len(w.list) > 0 {
		p, w.list = w.list[0].peer, w.list[1:]
		if !w.asked[p] {
			w.asked[p] = true
			return p, len(w.asked) <= maxAsked
		}
	}
	return 0, false
}

// ask takes a peer's answer: the coordinators of the closest cell that it knows. found reports whether that is the
// target's cell.
func (w *walk) ask(p peer) (found bool) {
	links := w.n.linksOf(p)
	best := -1
	for i, l := range links {
		if w.n.world.leaves[l.cell].Domain != w.n.world.leaves[w.goal].Domain {
			continue
		}
		if l.cell == w.goal {
			return true
		}
		if best < 0 || w.distanceOf(l.cell) < w.distanceOf(links[best].cell) {
			best = i
		}
	}
	if best >= 0 {
		w.add(links[best])
	}
	return false
}

// Walk finds the coordinators of a chunk, for a peer that knows those of another cell in the same region.
func (n *Network) Walk(by peer, from cell, target grid.ChunkPos) (a Answer) {
	w := n.newWalk(from, target)
	for {
		p, ok := w.next()
		if !ok {
			a.Failed = true
			return a
		}
		a.Hops++
		a.Asked++
		a.Millis += n.roundTrip(by, p)
		if w.ask(p) {
			return a
		}
	}
}

// alpha is the number of questions that a Kademlia lookup has under way.
const alpha = 3

// contact is a peer in the list of a Kademlia lookup.
type contact struct {
	peer   peer
	hop    int
	asked  bool
	answer float64 // when it arrives; 0: not asked, or arrived
}

// Lookup finds one of the holders of a key as Kademlia does: it asks the closest peers that it knows of, alpha at a
// time, and is told of their K closest. The answer's hops are those to the holder that answers first.
func (n *Network) Lookup(by peer, key uint64, holders []peer) (a Answer) {
	if slices.Contains(holders, by) {
		return a
	}
	seen := map[peer]bool{by: true}
	var list []contact // at most K, the closest first
	learn := func(from peer, hop int) {
		known := slices.Clone(n.table(from))
		n.sort(known, key)
		for _, p := range known[:min(n.K, len(known))] {
			if !seen[p] {
				seen[p] = true
				list = append(list, contact{peer: p, hop: hop})
			}
		}
		slices.SortFunc(list, func(a, b contact) int {
			if n.ids[a.peer]^key < n.ids[b.peer]^key {
				return -1
			}
			return 1
		})
	}
	learn(by, 1)
	for underWay := 0; ; {
		for i := range list[:min(n.K, len(list))] {
			if c := &list[i]; !c.asked && underWay < alpha {
				c.asked, c.answer = true, a.Millis+n.roundTrip(by, c.peer)
				underWay++
				a.Asked++
			}
		}
		var first *contact
		for i := range list {
			if c := &list[i]; c.answer > 0 && (first == nil || c.answer < first.answer) {
				first = c
			}
		}
		if first == nil {
			a.Failed = true
			return a
		}
		a.Millis, first.answer = first.answer, 0
		underWay--
		if a.Hops = first.hop; slices.Contains(holders, first.peer) {
			return a
		}
		learn(first.peer, first.hop+1)
	}
}

// Plain finds the coordinators of a chunk whose cell is known by one lookup of the cell's hashed label.
func (n *Network) Plain(by peer, target grid.ChunkPos) Answer {
	return n.lookupCell(by, n.world.leaves[n.world.leafAt(target)].Cell)
}

// Simple finds the coordinators of a chunk by the simple approach (§III-C): it follows the trie from its root to the
// leaf that holds the chunk, with a lookup of each label's hash. So it takes log(N)·log(m) hops (§IV-C).
func (n *Network) Simple(by peer, target grid.ChunkPos) (sum Answer) {
	for length := range n.world.leaves[n.world.leafAt(target)].Label.Len() + 1 {
		a := n.lookupCell(by, grid.CellAt(target, length))
		sum.Hops += a.Hops
		sum.Asked += a.Asked
		sum.Millis += a.Millis
		sum.Failed = sum.Failed || a.Failed
	}
	return sum
}

// lookupCell looks up a cell's hashed label.
func (n *Network) lookupCell(by peer, c grid.Cell) Answer {
	key, holders := n.holdersOf(c)
	return n.Lookup(by, key, holders)
}
