package dht

import (
	"bytes"
	"crypto/sha256"
	"slices"

	kb "github.com/libp2p/go-libp2p-kbucket"
	"github.com/libp2p/go-libp2p/core/peer"
)

// sortByDistance sorts peers by their distance to the key, the nearest first.
func sortByDistance(key string, peers []peer.ID) {
	type placed struct {
		distance [sha256.Size]byte
		id       peer.ID
	}
	place := kb.ConvertKey(key)
	all := make([]placed, len(peers)) // one hash per peer instead of one per comparison
	for i, id := range peers {
		all[i].id = id
		for j, b := range kb.ConvertPeerID(id) {
			all[i].distance[j] = b ^ place[j]
		}
	}
	slices.SortFunc(all, func(a, b placed) int { return bytes.Compare(a.distance[:], b.distance[:]) })
	for i := range all {
		peers[i] = all[i].id
	}
}
