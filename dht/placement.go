package dht

import (
	"cmp"
	"crypto/sha256"
	"slices"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/voxelpopuli/voxeld/trust"
)

// placement decides which nodes should be the members of a key's group (docs/adr/0039). In a world that admits its
// nodes, a node's place is drawn by the issuer of its certificate: nobody can choose a place near to a key by
// generating ids. In an open world it is that of its id.
type placement struct {
	places      *places
	certificate func(peer.ID) (trust.Certificate, bool) // nil in an open world
}

// of returns a node's place.
func (p placement) of(id peer.ID) place {
	if p.certificate != nil {
		if c, known := p.certificate(id); known {
			return sha256.Sum256(c.Placement[:])
		}
	}
	return p.places.of(id)
}

// operator returns who runs a node; "" if unknown.
func (p placement) operator(id peer.ID) string {
	if p.certificate == nil {
		return ""
	}
	c, _ := p.certificate(id)
	return c.Operator
}

// spreadOver is how many of the nodes nearest to a key a group is spread over. With more of them, an operator with one
// node among many of others would hold more than its share; with fewer, two hostile operators are more often most of
// them.
const spreadOver = 12

// Where so many operators run nodes, a group has that many members (docs/adr/0074). To find that many, it is spread
// over more nodes: with five members instead of three, an operator with one node has no more than its share for that.
const spreadOperators, spreadFar = 5, 24

// nearest returns the n peers whose places are nearest to the key. Of the nearest few, the nearest one of each operator
// comes first, then each one's second, and so on, by distance: so as many operators as possible are among a group's
// members, and the nearest node of all remains the first. It changes peers.
func (p placement) nearest(key string, peers []peer.ID, n int) []peer.ID {
	sortByDistance(key, peers, p.of)
	peers = slices.Compact(peers)
	if p.certificate != nil {
		near, far := peers[:min(spreadOver, len(peers))], peers[:min(spreadFar, len(peers))]
		if p.operators(near) < spreadOperators && p.operators(far) >= spreadOperators {
			near = far
		}
		p.spread(near)
	}
	return peers[:min(n, len(peers))]
}

// operators returns how many operators run these nodes, as far as that is known.
func (p placement) operators(peers []peer.ID) int {
	distinct := make(map[string]bool)
	for _, id := range peers {
		if operator := p.operator(id); operator != "" {
			distinct[operator] = true
		}
	}
	return len(distinct)
}

// spread sorts peers by how many of the others before them have the same operator.
func (p placement) spread(peers []peer.ID) {
	before := make(map[peer.ID]int, len(peers))
	count := make(map[string]int)
	for _, id := range peers {
		if operator := p.operator(id); operator != "" {
			before[id] = count[operator]
			count[operator]++
		}
	}
	slices.SortStableFunc(peers, func(a, b peer.ID) int { return cmp.Compare(before[a], before[b]) })
}
