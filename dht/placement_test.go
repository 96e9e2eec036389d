package dht

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/voxelpopuli/voxeld/trust"
)

// Of a hundred nodes twenty are hostile, run by two operators, and have generated ids next to the key that they want. In an open world
// they are its members. Where nodes are admitted they have as many places as anybody else, and one of each operator at most.
func TestSybils(t *testing.T) {
	const keys, honest, hostile = 1000, 80, 20
	random := rand.NewChaCha8([32]byte{1})
	ids := randomIDs(t, random, 2000)
	places := newPlaces()
	captured := func(admitted bool, copies int) (n int) {
		for i := range keys {
			key := fmt.Sprintf("/chunk/%d", i)
			pool := slices.Clone(ids)
			sortByDistance(key, pool[honest:], places.of)
			all := pool[:honest+hostile]
			certificates := make(map[peer.ID]trust.Certificate, len(all))
			for j, id := range all {
				c := trust.Certificate{Operator: fmt.Sprint("honest ", j)}
				if j >= honest {
					c.Operator = fmt.Sprint("hostile ", j%2)
				}
				random.Read(c.Placement[:]) //nolint:errcheck // it never fails
				certificates[id] = c
			}
			p := placement{places: places}
			if admitted {
				p.certificate = func(id peer.ID) (trust.Certificate, bool) { c, known := certificates[id]; return c, known }
			}
			liars := 0
			for _, id := range p.nearest(key, slices.Clone(all), 8)[:copies] {
				if slices.Contains(all[honest:], id) {
					liars++
				}
			}
			if 2*liars > copies {
				n++
			}
		}
		return n
	}
	if n := captured(false, 3); n < keys*9/10 {
		t.Errorf("ids were not generated well enough: they captured %d of %d", n, keys)
	}
	of3, of5 := captured(true, 3), captured(true, 5)
	t.Logf("two hostile operators are the majority of 3 members in %d of %d groups, and of 5 in %d", of3, keys, of5)
	if of3 > keys/5 || of5 != 0 {
		t.Errorf("captured %d groups of 3 members and %d of 5", of3, of5)
	}
}

func TestPlacementSpreadsOperators(t *testing.T) {
	ids := randomIDs(t, rand.NewChaCha8([32]byte{2}), 4)
	p := placement{places: newPlaces()}
	p.certificate = func(id peer.ID) (trust.Certificate, bool) {
		i := slices.Index(ids, id)
		return trust.Certificate{Placement: [16]byte{byte(i)}, Operator: []string{"ann", "ann", "bob", ""}[max(i, 0)]}, i >= 0
	}
	plain := slices.Clone(ids)
	sortByDistance("/chunk/1", plain, p.of)
	got := p.nearest("/chunk/1", slices.Clone(ids), 4)
	farther := ids[1] // of Ann's nodes
	if slices.Index(plain, ids[0]) > slices.Index(plain, ids[1]) {
		farther = ids[0]
	}
	want := append(slices.DeleteFunc(slices.Clone(plain), func(id peer.ID) bool { return id == farther }), farther)
	if !slices.Equal(got, want) || got[0] != plain[0] {
		t.Errorf("%v, want %v", got, want)
	}
	if got := p.nearest("/chunk/1", slices.Clone(ids), 2); len(got) != 2 {
		t.Errorf("%d nodes, want 2", len(got))
	}
}

func randomIDs(t *testing.T, random io.Reader, n int) []peer.ID {
	t.Helper()
	ids := make([]peer.ID, n)
	for i := range ids {
		_, public, err := crypto.GenerateEd25519Key(random)
		if err != nil {
			t.Fatal(err)
		}
		if ids[i], err = peer.IDFromPublicKey(public); err != nil {
			t.Fatal(err)
		}
	}
	return ids
}
