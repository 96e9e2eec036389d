package dht

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/voxelpopuli/voxeld/region/membership"
	"github.com/voxelpopuli/voxeld/trust"
)

// Of a hundred nodes twenty are hostile, run by two operators, and have generated ids next to the key that they want. In an open world
// they are its members. Where nodes are admitted they have as many places as anybody else, one of each operator at most, and since many operators
// run nodes, two of the five members.
func TestSybils(t *testing.T) {
	const keys, honest, hostile, candidates = 1000, 80, 20, 8
	random := rand.NewChaCha8([32]byte{1})
	ids := randomIDs(t, random, 2000)
	places := newPlaces()
	captured := func(admitted, spread bool, copies int) (n int) {
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
			size, able := copies, places.named(p.nearest(key, slices.Clone(all), candidates))
			if spread { // as a region's leader does
				size, able = membership.Choose(copies, nil, able, func(name string) string { return p.operator(decode(t, name)) })
			}
			liars := 0
			for _, name := range able[:size] {
				if slices.Contains(all[honest:], decode(t, name)) {
					liars++
				}
			}
			if 2*liars > size {
				n++
			}
		}
		return n
	}
	if n := captured(false, true, 3); n < keys*9/10 {
		t.Errorf("ids were not generated well enough: they captured %d of %d", n, keys)
	}
	three, chosen := captured(true, false, 3), captured(true, true, 3)
	t.Logf("two hostile operators are the majority in %d of %d groups, and would be in %d if all had 3 members", chosen, keys, three)
	if chosen != 0 || three == 0 || three > keys/5 {
		t.Errorf("captured %d groups, and %d of 3 members", chosen, three)
	}
}

func decode(t *testing.T, name string) peer.ID {
	t.Helper()
	id, err := peer.Decode(name)
	if err != nil {
		t.Fatal(err)
	}
	return id
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
