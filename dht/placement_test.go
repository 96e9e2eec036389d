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

// Of a hundred nodes twenty are hostile, run by two operators, and have generated ids next to the key that they want.
// In an open world they are its members. Where nodes are admitted they have as many places as anybody else, and one of
// each operator at most. Where enough operators run nodes, that is two of five.
func TestSybils(t *testing.T) {
	const keys, honest, hostile, candidates = 1000, 80, 20, 8
	if spreadOperators != membership.Spread {
		t.Fatalf("nodes of %d operators are looked for, and groups have %d members", spreadOperators, membership.Spread)
	}
	random := rand.NewChaCha8([32]byte{1})
	ids := randomIDs(t, random, 2000)
	places := newPlaces()
	near := make([][]peer.ID, keys) // the nodes of each key's world
	for i := range near {
		pool := slices.Clone(ids)
		sortByDistance(keyOf(i), pool[honest:], places.of)
		near[i] = pool[:honest+hostile]
	}
	// captured returns the number of groups in which most members are hostile. Operators is how many run the honest
	// nodes, 0 in an open world; spread says whether the size of a group depends on them; and the first few honest
	// nodes are down.
	captured := func(operators int, spread bool, down int) (n int) {
		for i, all := range near {
			certificates := make(map[peer.ID]trust.Certificate, len(all))
			for j, id := range all {
				c := trust.Certificate{Operator: fmt.Sprint("honest ", j%max(operators, 1))}
				if j >= honest {
					c.Operator = fmt.Sprint("hostile ", j%2)
				}
				random.Read(c.Placement[:]) //nolint:errcheck // it never fails
				certificates[id] = c
			}
			p := placement{places: places}
			if operators > 0 {
				p.certificate = func(id peer.ID) (trust.Certificate, bool) { c, known := certificates[id]; return c, known }
			}
			able := slices.DeleteFunc(p.nearest(keyOf(i), slices.Clone(all), candidates), func(id peer.ID) bool { return slices.Contains(all[:down], id) })
			size, members := 3, places.named(able)
			if spread { // as a region's leader does
				size, members = membership.Choose(size, nil, members, func(name string) string { return p.operator(decode(t, name)) })
			}
			liars := 0
			for _, name := range members[:min(size, len(members))] {
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
	if n := captured(0, true, 0); n < keys*9/10 {
		t.Errorf("ids were not generated well enough: they captured %d of %d", n, keys)
	}
	for _, c := range []struct{ operators, down, most int }{
		{honest, 0, 0},
		{10, 0, 0},
		{4, 0, 0},
		{3, 0, 5},      // some groups are not near nodes of all five
		{honest, 8, 5}, // some groups are near several that are down
	} {
		three, chosen := captured(c.operators, false, c.down), captured(c.operators, true, c.down)
		t.Logf("%2d honest operators, %d nodes down: two hostile ones are the majority of %d of %d groups; of %d if all had three members", c.operators, c.down, chosen, keys, three)
		if chosen > c.most || three < keys/50 || three > keys/5 {
			t.Errorf("captured %d groups, and %d of three members", chosen, three)
		}
	}
}

func keyOf(i int) string { return fmt.Sprintf("/chunk/%d", i) }

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
