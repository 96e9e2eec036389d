// Package balance decides which region a busy node hands to another one (docs/adr/0035). It is pure: loads go in, a move comes out; the
// caller measures, has a clock, and acts.
//
// Only package region/placement imports it.
package balance

import "slices"

const (
	// Hot is the share of its capacity above which a node sheds regions.
	Hot = 0.6
	// Room is the share that a node must stay below, with a region's load, to be given the region back, or to become a member of it. The
	// gap to Hot keeps regions from moving to and fro.
	Room = 0.4
	// Spare is how many nodes beyond the nearest may be members instead of nearer ones that have no room.
	Spare = 3

	// coldShare is how busy a target may be, as a share of how busy the node is that sheds.
	coldShare = 1.0 / 2
	// gainShare is how busy it may be afterwards, likewise. So a region that is most of a node's load stays where it is: moving it would only
	// swap the roles. Splits are for that.
	gainShare = 4.0 / 5
	// leastLoad is the load of a region, as a share of the node's capacity, below which moving it is not worth the while.
	leastLoad = 1.0 / 200
)

// Node is how busy a node is. Both are in cores.
type Node struct {
	Capacity float64 // what it gives to the world
	Busy     float64 // what it uses
}

// Share returns which share of its capacity the node uses.
func (n Node) Share() float64 { return n.Busy / n.Capacity }

// HasRoom reports whether the node can take a region of this load without becoming too busy itself.
func (n Node) HasRoom(load float64) bool { return n.Busy+load <= Room*n.Capacity }

// Region is a region that the node leads and may hand over now.
type Region struct {
	ID      uint64
	Load    float64         // in cores
	Members map[string]Node // the other members that may lead it, and whose load is known
	Spares  map[string]Node // the nodes that could become members, likewise
	Beside  map[string]int  // how many of the regions beside it each node leads; "" is the node itself
}

// Kind is a kind of move.
type Kind int

// The kinds of moves.
const (
	None    Kind = iota
	Lead         // To, a member, leads the region
	Replace      // To becomes a member instead of Out, and leads
)

// String returns the kind as in metrics.
func (k Kind) String() string { return [...]string{"none", "leader", "member"}[k] }

// Move is one change.
type Move struct {
	Kind   Kind
	Region uint64
	Load   float64 // of the region, in cores
	To     string
	Out    string
}

// Decide returns the move that helps a busy node most. Handing over leadership to a member is cheap, so members are replaced only if that
// helps nowhere.
//
// Regions beside each other should be led by the same node. So a region counts the less, the more of the regions beside it would be led by
// another node than it afterwards: regions at the edge of what the node leads move first, and to whoever leads the land beyond.
func Decide(self Node, regions []Region) Move {
	if self.Share() <= Hot {
		return Move{}
	}
	regions = slices.DeleteFunc(slices.Clone(regions), func(r Region) bool { return r.Load < leastLoad*self.Capacity })
	if m := best(self, regions, func(r Region) map[string]Node { return r.Members }); m.To != "" {
		m.Kind = Lead
		return m
	}
	m := best(self, regions, func(r Region) map[string]Node { return r.Spares })
	if m.To == "" {
		return Move{}
	}
	m.Kind = Replace
	i := slices.IndexFunc(regions, func(r Region) bool { return r.ID == m.Region })
	busiest := 0.0
	for peer, n := range regions[i].Members {
		if share := n.Share(); m.Out == "" || share > busiest || share == busiest && peer < m.Out {
			m.Out, busiest = peer, share
		}
	}
	if m.Out == "" {
		return Move{} // nobody to replace: the node is the only one that may lead
	}
	return m
}

// best returns the region and the target for which the gain is largest.
func best(self Node, regions []Region, targets func(Region) map[string]Node) Move {
	var m Move
	most, least := 0.0, 0.0
	for _, r := range regions {
		for peer, n := range targets(r) {
			after := Node{n.Capacity, n.Busy + r.Load}.Share()
			if n.Share() > coldShare*self.Share() || after > gainShare*self.Share() {
				continue
			}
			gain := r.Load / float64(1+max(0, r.Beside[""]-r.Beside[peer]))
			better := gain > most || gain == most && (after < least || after == least && (r.ID < m.Region || r.ID == m.Region && peer < m.To))
			if m.To == "" || better {
				m, most, least = Move{Region: r.ID, Load: r.Load, To: peer}, gain, after
			}
		}
	}
	return m
}
