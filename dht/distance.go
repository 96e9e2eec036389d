package dht

import (
	"bytes"
	"crypto/sha256"
	"slices"

	lru "github.com/hashicorp/golang-lru/v2"
	kb "github.com/libp2p/go-libp2p-kbucket"
	"github.com/libp2p/go-libp2p/core/peer"
)

// place is a peer's or a key's place in the keyspace.
type place [sha256.Size]byte

// maxPlaced bounds the caches of peers, of about 200 bytes each.
const maxPlaced = 4096

// places caches what is computed from the ids of peers: a supervisor needs the nodes nearest to each of its regions
// again and again.
type places struct {
	places *lru.Cache[peer.ID, place]
	names  *lru.Cache[peer.ID, string]
	ids    *lru.Cache[string, peer.ID]
}

func newPlaces() *places {
	return &places{places: newLRU[peer.ID, place](), names: newLRU[peer.ID, string](), ids: newLRU[string, peer.ID]()}
}

func newLRU[K comparable, V any]() *lru.Cache[K, V] {
	c, err := lru.New[K, V](maxPlaced)
	if err != nil {
		panic(err) // only if the size is not positive
	}
	return c
}

// of returns the peer's place.
func (p *places) of(id peer.ID) place {
	at, known := p.places.Get(id)
	if !known {
		at = place(kb.ConvertPeerID(id))
		p.places.Add(id, at)
	}
	return at
}

// name returns the peer's id in base58.
func (p *places) name(id peer.ID) string {
	name, known := p.names.Get(id)
	if !known {
		name = id.String()
		p.names.Add(id, name)
	}
	return name
}

// named returns the peers' ids in base58.
func (p *places) named(peers []peer.ID) []string {
	names := make([]string, len(peers))
	for i, id := range peers {
		names[i] = p.name(id)
	}
	return names
}

// id is the inverse of name. It returns an error if the name is not a peer's.
func (p *places) id(name string) (peer.ID, error) {
	id, known := p.ids.Get(name)
	if !known {
		var err error
		if id, err = peer.Decode(name); err != nil {
			return "", err
		}
		p.ids.Add(name, id)
	}
	return id, nil
}

// sortByDistance sorts peers by the distance of their places to the key, the nearest first.
func sortByDistance(key string, peers []peer.ID, of func(peer.ID) place) {
	type placed struct {
		distance place
		id       peer.ID
	}
	to := kb.ConvertKey(key)
	all := make([]placed, len(peers))
	for i, id := range peers {
		all[i].id = id
		for j, b := range of(id) {
			all[i].distance[j] = b ^ to[j]
		}
	}
	slices.SortFunc(all, func(a, b placed) int { return bytes.Compare(a.distance[:], b.distance[:]) })
	for i := range all {
		peers[i] = all[i].id
	}
}
