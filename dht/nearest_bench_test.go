package dht

import (
	"crypto/rand"
	"fmt"
	"testing"

	"github.com/libp2p/go-libp2p/core/peer"
	mh "github.com/multiformats/go-multihash"
)

// Finding the nearest of 40 peers, and their names: what a supervisor does again and again for each region.
func BenchmarkPlaces(b *testing.B) {
	var peers []peer.ID
	for range 40 {
		var digest [32]byte
		rand.Read(digest[:])
		sum, err := mh.Sum(digest[:], mh.SHA2_256, -1)
		if err != nil {
			b.Fatal(err)
		}
		peers = append(peers, peer.ID(sum))
	}
	p := newPlaces()
	for i := 0; b.Loop(); i++ {
		sortByDistance(fmt.Sprint(i), peers, p.of)
		for _, each := range peers[:8] {
			if _, err := p.id(p.name(each)); err != nil {
				b.Fatal(err)
			}
		}
	}
}
