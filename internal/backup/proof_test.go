package backup

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/trust"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// member is a node of the world of the tests, or one that would like to be.
type member struct {
	trust.PrivateKey
	certificate []byte
}

func (m member) peer() string { return m.Key().String() }

func keyOf(peer string) (trust.Key, error) {
	raw, err := hex.DecodeString(peer)
	if err != nil || len(raw) != len(trust.Key{}) {
		return trust.Key{}, errors.New("no key")
	}
	return trust.Key(raw), nil
}

// privateKey returns a key that is the same in every run.
func privateKey(n byte) trust.PrivateKey {
	return trust.PrivateKey(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, ed25519.SeedSize)))
}

// Only the right signatures of admitted members prove a region's rows.
func TestProofs(t *testing.T) {
	root, issuer := privateKey(1), privateKey(2)
	g := testGenesis
	g.Roots = []trust.Key{root.Key()}
	c := Contents{Header: Header{Begun: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()}, Genesis: g, Voters: make(map[uint64][]string), Sums: map[uint64]ID{7: {1}, world.CatalogID: {2}}}
	charter := trust.Charter{World: worldOf(c), Number: 1, Roots: g.Roots, Issuers: []trust.Issuer{{Key: issuer.Key(), Name: "founder"}}}
	sealed, err := charter.Seal(root)
	if err != nil {
		t.Fatal(err)
	}
	c.Summary.Charters = [][]byte{sealed}
	authority, err := trust.NewAuthority(worldOf(c), g.Roots)
	if err == nil {
		_, err = authority.AddCharter(sealed)
	}
	if err != nil {
		t.Fatal(err)
	}
	var all []member
	for n := range byte(4) { // the last one is no member of the region
		m := member{PrivateKey: privateKey(10 + n)}
		if m.certificate, err = authority.Issue(issuer, m.Key(), "op", [16]byte{n}, trust.TokenID{}, c.Header.Time()); err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
		c.Summary.Certificates = append(c.Summary.Certificates, m.certificate)
	}
	c.Voters[7] = []string{all[0].peer(), all[1].peer(), all[2].peer()}
	stranger := member{PrivateKey: privateKey(99)}
	sign := func(m member, index uint64, change func(*trust.Attestation)) Attestation {
		signed := trust.Attestation{World: worldOf(c), Group: 7, Index: index, Sum: c.Sums[7]}
		change(&signed)
		signature, err := signed.Sign(m.PrivateKey)
		if err != nil {
			t.Fatal(err)
		}
		return Attestation{Node: m.Key(), Index: index, Signature: signature}
	}
	right := func(*trust.Attestation) {}
	good := func(n int) Attestation { return sign(all[n], 9, right) }
	other := ID{3}
	differs := sign(all[2], 9, func(a *trust.Attestation) { a.Sum = other })
	differs.Sum = &other
	for _, tt := range []struct {
		name           string
		attestations   []Attestation
		signed, differ int
	}{
		{"nobody", nil, 0, 0},
		{"a majority", []Attestation{good(0), good(1)}, 2, 0},
		{"all, one at a later entry that changed nothing", []Attestation{good(0), good(1), sign(all[2], 12, right)}, 3, 0},
		{"one twice", []Attestation{good(0), good(0)}, 1, 0},
		{"one that differs", []Attestation{good(0), good(1), differs}, 2, 1},
		{"other rows", []Attestation{good(0), sign(all[1], 9, func(a *trust.Attestation) { a.Sum = other })}, 1, 0},
		{"another region", []Attestation{good(0), sign(all[1], 9, func(a *trust.Attestation) { a.Group = 8 })}, 1, 0},
		{"another world", []Attestation{good(0), sign(all[1], 9, func(a *trust.Attestation) { a.World[0]++ })}, 1, 0},
		{"before a recovery", []Attestation{good(0), sign(all[1], 9, func(a *trust.Attestation) { a.Recovered = 1 })}, 1, 0},
		{"another index than it says", []Attestation{good(0), sign(all[1], 9, func(a *trust.Attestation) { a.Index = 8 })}, 1, 0},
		{"no member", []Attestation{good(0), sign(all[3], 9, right)}, 1, 0},
		{"a stranger", []Attestation{good(0), sign(stranger, 9, right)}, 1, 0},
	} {
		c.Groups = []Group{{ID: 7, Position: Position{Index: 9}, Attestations: tt.attestations}}
		proofs, err := c.Proofs(keyOf)
		if err != nil || len(proofs) != 1 {
			t.Fatalf("%s: %v, %v", tt.name, proofs, err)
		}
		p := proofs[0]
		if len(p.Signed) != tt.signed || len(p.Differ) != tt.differ || p.Majority() != (tt.signed >= 2) {
			t.Errorf("%s: %d have signed, %d differ, majority %v", tt.name, len(p.Signed), len(p.Differ), p.Majority())
		}
	}

	c.Groups = []Group{{ID: 7, Position: Position{Index: 9}, Attestations: []Attestation{good(0), good(1)}}}
	checkVoucher(t, c, issuer)
	c.Summary.Charters = nil
	if proofs, err := c.Proofs(keyOf); err != nil || proofs[0].Majority() {
		t.Errorf("without the charter that names the issuer: %v, %v", proofs, err)
	}
	c.Genesis = testGenesis
	if _, err := c.Proofs(keyOf); !errors.Is(err, ErrOpenWorld) {
		t.Errorf("open world: %v", err)
	}
}

// checkVoucher checks that only an issuer's signature of just these members counts.
func checkVoucher(t *testing.T, c Contents, issuer trust.PrivateKey) {
	t.Helper()
	for name, tt := range map[string]struct {
		by     trust.PrivateKey
		change func(*Group)
		want   bool
	}{
		"an issuer":     {issuer, func(*Group) {}, true},
		"nobody":        {issuer, func(g *Group) { g.Voucher = nil }, false},
		"no issuer":     {privateKey(99), func(*Group) {}, false},
		"other members": {issuer, func(g *Group) { g.Members = []string{"liar"} }, false},
		"others in both": {issuer, func(g *Group) {
			g.Members, g.Voucher.Members = []string{"liar"}, []nodemsg.Replica{{ID: 1, Peer: "liar"}}
		}, false},
		"another epoch":   {issuer, func(g *Group) { g.Epoch++ }, false},
		"another charter": {issuer, func(g *Group) { g.Voucher.Charter++ }, false},
	} {
		members := []nodemsg.Replica{{ID: 2, Peer: "b"}, {ID: 1, Peer: "a"}}
		s := nodemsg.RegionStatus{Region: world.CatalogID, Epoch: 7, Members: []nodemsg.MemberStatus{{Replica: members[0]}, {Replica: members[1]}}}
		key := tt.by.Key()
		v := Voucher{Members: members, Voucher: nodemsg.Voucher{Key: key[:], Charter: 1}}
		v.Signature = ed25519.Sign(ed25519.PrivateKey(tt.by), s.VouchedText(c.Genesis.ID(), v.Charter))
		g := Group{ID: world.CatalogID, Epoch: 7, Members: []string{"a", "b"}, Voucher: &v}
		tt.change(&g)
		c.Groups = []Group{g}
		if vouched, err := c.Vouched(); vouched != tt.want || err != nil {
			t.Errorf("signed by %s: %v, %v", name, vouched, err)
		}
	}
}
