package walkad

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/voxelpopuli/voxeld/grid"
)

// peer is a node of the network, as an index.
type peer int32

// Network is a Kademlia network that holds a world's cells.
type Network struct {
	Config
	world *world
	ids   []uint64 // of each peer, ascending; the first 64 bits are enough to tell peers apart
	at    []place  // of each peer
	rng   *rand.Rand

	coordinators [][]peer // of each cell, the nearest to its key first
	coordinates  [][]cell // of each peer

	// What is computed when it is first needed.
	tables  map[peer][]peer      // routing tables of plain Kademlia
	links   map[peer][]link      // of coordinators
	holders map[grid.Cell][]peer // of the nodes of the trie under hashed labels
}

// link is a cell that a coordinator knows of: its own, or a neighbour of one of its own.
type link struct {
	cell     cell
	contacts []peer // coordinators of that cell
}

// place is where a peer is on the Internet.
type place struct{ x, z, height float64 } // milliseconds

// New builds a network. It panics if the configuration is not valid.
func New(c Config) *Network {
	if err := c.Validate(); err != nil {
		panic("walkad: " + err.Error())
	}
	n := &Network{
		Config: c, world: newWorld(c), rng: rand.New(rand.NewPCG(c.Seed, math.MaxUint64)),
		tables: make(map[peer][]peer), links: make(map[peer][]link), holders: make(map[grid.Cell][]peer),
		coordinates: make([][]cell, c.Nodes),
	}
	for range c.Nodes {
		n.ids = append(n.ids, n.rng.Uint64())
		n.at = append(n.at, place{side * n.rng.Float64(), side * n.rng.Float64(), access * n.rng.ExpFloat64()})
	}
	slices.Sort(n.ids)
	for i, l := range n.world.leaves {
		near := n.closest(n.key(l), c.R)
		n.coordinators = append(n.coordinators, near)
		for _, p := range near {
			n.coordinates[p] = append(n.coordinates[p], cell(i))
		}
	}
	return n
}

// Delays follow the model with height vectors of Vivaldi (Dabek, Cox, Kaashoek, Morris: "Vivaldi: A Decentralized
// Network Coordinate System", SIGCOMM 2004): the round trip between two peers is their distance in a plane plus the
// height of each, which stands for its access link. The numbers are not fitted to measurements. They are chosen for a
// median of about 90 ms over all pairs; 95 % are under 170 ms.
const (
	side   = 140.0 // of the square in which peers are uniformly distributed, ms
	access = 10.0  // mean height, exponentially distributed, ms
)

// roundTrip returns the time in milliseconds for a question and its answer.
func (n *Network) roundTrip(a, b peer) float64 {
	if a == b {
		return 0
	}
	p, q := n.at[a], n.at[b]
	return math.Hypot(p.x-q.x, p.z-q.z) + p.height + q.height
}

// key returns a cell's place in the keyspace.
func (n *Network) key(l leaf) uint64 {
	if n.Keys == DaemonKeys {
		return hash(grid.PlacementWalkad.Key(l.Cell))
	}
	return uint64(l.code)<<(64-grid.MaxLabel) ^ hash(l.Domain.String())
}

func hash(text string) uint64 {
	sum := sha256.Sum256([]byte(text))
	return binary.BigEndian.Uint64(sum[:])
}

// closest returns the peers whose ids are closest to a key by XOR, at most count of them, the closest first.
func (n *Network) closest(key uint64, count int) []peer {
	// Peers with a common prefix are a range of n.ids. Narrow it while it has enough of them.
	low, high := 0, len(n.ids)
	for bit := 63; bit >= 0; bit-- {
		prefix := key >> bit << bit
		a, _ := slices.BinarySearch(n.ids, prefix)
		b := len(n.ids)
		if end := prefix + 1<<bit; end != 0 {
			b, _ = slices.BinarySearch(n.ids, end)
		}
		if b-a < count {
			break
		}
		low, high = a, b
	}
	near := make([]peer, 0, high-low)
	for p := low; p < high; p++ {
		near = append(near, peer(p))
	}
	n.sort(near, key)
	return near[:min(count, len(near))]
}

// sort orders peers by their distance from a key.
func (n *Network) sort(peers []peer, key uint64) {
	slices.SortFunc(peers, func(a, b peer) int { return cmp.Compare(n.ids[a]^key, n.ids[b]^key) })
}

// table returns a peer's k-buckets: of each distance 2ⁱ ≤ d < 2ⁱ⁺¹ up to K peers, any ones.
func (n *Network) table(p peer) []peer {
	if t, known := n.tables[p]; known {
		return t
	}
	var t []peer
	for bit := 63; bit >= 0; bit-- {
		first := (n.ids[p] ^ 1<<bit) >> bit << bit
		low, _ := slices.BinarySearch(n.ids, first)
		high := len(n.ids)
		if end := first + 1<<bit; end != 0 {
			high, _ = slices.BinarySearch(n.ids, end)
		}
		if high-low <= n.K {
			for q := low; q < high; q++ {
				t = append(t, peer(q))
			}
			continue
		}
		chosen := make(map[int]bool)
		for len(chosen) < n.K {
			q := low + n.rng.IntN(high-low)
			if !chosen[q] {
				chosen[q] = true
				t = append(t, peer(q))
			}
		}
	}
	n.tables[p] = t
	return t
}

// bucket returns the number of the k-bucket of one peer that another belongs to.
func (n *Network) bucket(of, other peer) int { return bits.Len64(n.ids[of] ^ n.ids[other]) }

// holdersOf returns the key and the holders of a node of the trie under its hashed label.
func (n *Network) holdersOf(c grid.Cell) (key uint64, holders []peer) {
	key = hash(grid.PlacementHash.Key(c))
	holders, known := n.holders[c]
	if !known {
		holders = n.closest(key, n.R)
		n.holders[c] = holders
	}
	return key, holders
}

// Cells returns the number of cells.
func (n *Network) Cells() int { return len(n.world.leaves) }

// Load returns the share of all pairs of cell and coordinator that each peer has, ascending, in percent: under n.Keys
// if walking, and else under hashed labels.
func (n *Network) Load(how Approach) []float64 {
	shares := make([]float64, n.Nodes)
	one := 100 / float64(n.Cells()*min(n.R, n.Nodes))
	for i, near := range n.coordinators {
		if how != Walking {
			_, near = n.holdersOf(n.world.leaves[i].Cell)
		}
		for _, p := range near {
			shares[p] += one
		}
	}
	slices.Sort(shares)
	return shares
}
