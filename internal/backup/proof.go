package backup

import (
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/trust"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// This file tells who has signed the rows of a backup. A member of a group signs the checksum of its copy as of the log
// index that the backup has. Its certificate, and the charter that names whoever issued that, are in the backup, and
// the genesis names the root keys. So nobody has to be asked, and who made the backup does not matter.

// ErrOpenWorld is returned for a backup of a world whose genesis names no root keys.
var ErrOpenWorld = errors.New("the world is open: nobody can tell whose the signatures are")

// Proof tells which members of a group have signed its rows.
type Proof struct {
	Group  Group
	Voters int                 // members with a vote, as the catalog of the backup lists them
	Signed []trust.Certificate // of the voters that have signed these rows
	Differ []trust.Certificate // of the voters that have signed other rows as of the same log index
}

// Majority reports whether a majority of the voters have signed the rows.
func (p Proof) Majority() bool { return 2*len(p.Signed) > p.Voters }

// Proofs returns the proofs of the groups whose rows the backup has, or ErrOpenWorld. KeyOf returns the key of a peer
// id.
func (c Contents) Proofs(keyOf func(peer string) (trust.Key, error)) ([]Proof, error) {
	certificates, err := c.certificates()
	if err != nil {
		return nil, err
	}
	world := worldOf(c)
	var all []Proof
	for _, g := range c.Groups {
		if !g.HasRows() {
			continue
		}
		p := Proof{Group: g, Voters: len(c.Voters[g.ID])}
		voters := make(map[trust.Key]bool)
		for _, peer := range c.Voters[g.ID] {
			if key, err := keyOf(peer); err == nil {
				voters[key] = true
			}
		}
		for _, a := range g.Attestations {
			certificate, certified := certificates[a.Node]
			if !certified || !voters[a.Node] || !a.of(world, g, c.Sums[g.ID]).Verify(a.Node, a.Signature) {
				continue
			}
			delete(voters, a.Node) // each counts once
			switch {
			case a.Sum == nil || *a.Sum == c.Sums[g.ID]:
				p.Signed = append(p.Signed, certificate)
			case a.Index == g.Position.Index:
				p.Differ = append(p.Differ, certificate)
			}
		}
		all = append(all, p)
	}
	return all, nil
}

// Vouched reports whether an issuer has signed who the catalog's members are. Otherwise whoever made the backup may
// have named others, who have signed a catalog of theirs.
func (c Contents) Vouched() (bool, error) {
	g := c.Groups[0]
	v := g.Voucher
	if v == nil {
		return false, nil
	}
	s := nodemsg.RegionStatus{Region: g.ID, Epoch: g.Epoch}
	var peers []string
	for _, m := range v.Members {
		s.Members = append(s.Members, nodemsg.MemberStatus{Replica: m})
		peers = append(peers, m.Peer)
	}
	slices.Sort(peers)
	if !slices.Equal(peers, slices.Sorted(slices.Values(g.Members))) || !ed25519.Verify(v.Key, s.VouchedText(c.Genesis.ID(), v.Charter), v.Signature) {
		return false, nil
	}
	return c.Issued(v.Charter, v.Key)
}

// of returns what was signed, of a group whose rows have the sum.
func (a Attestation) of(world trust.World, g Group, sum ID) trust.Attestation {
	if a.Sum != nil {
		sum = *a.Sum
	}
	return trust.Attestation{World: world, Group: g.ID, Recovered: g.Position.Recovered, Index: a.Index, Sum: sum}
}

// authority returns who could admit nodes when the backup was made.
func (c Contents) authority() (*trust.Authority, error) {
	authority, err := trust.NewAuthority(worldOf(c), c.Genesis.Roots)
	if err != nil {
		return nil, err
	}
	for _, raw := range c.Summary.Charters {
		if _, err := authority.AddCharter(raw); err != nil {
			return nil, damaged("%v", err)
		}
	}
	return authority, nil
}

// ChartersTo returns the charters that make a key the world's root key; none if it is the first. The last one has no
// issuers: what the former ones had issued is worth nothing in a restored world, which does not know the revocations.
// An error means that it is not the root key, or not any more.
func (c Contents) ChartersTo(root trust.Signer, now time.Time) ([][]byte, error) {
	authority, err := c.authority()
	switch {
	case err != nil:
		return nil, err
	case !slices.Contains(authority.Charter().Roots, root.Key()):
		return nil, errors.New("the backup names another one")
	case slices.Contains(c.Genesis.Roots, root.Key()):
		return nil, nil
	}
	next := authority.Charter().Next(now)
	next.Issuers = nil
	last, err := next.Seal(root)
	return append(authority.Chain(0), last), err
}

// Issued reports whether a charter of the world made the node of a key an issuer; in an open world every node was one.
func (c Contents) Issued(charter uint64, node ed25519.PublicKey) (bool, error) {
	if c.Genesis.Open() {
		return charter == 0, nil
	}
	authority, err := c.authority()
	if err != nil || len(node) != len(trust.Key{}) {
		return false, err
	}
	issued, _ := authority.Issued(charter, trust.Key(node))
	return issued, nil
}

// certificates returns the certificates that were valid when the backup was begun, by node.
func (c Contents) certificates() (map[trust.Key]trust.Certificate, error) {
	if c.Genesis.Open() {
		return nil, ErrOpenWorld
	}
	authority, err := c.authority()
	if err != nil {
		return nil, err
	}
	valid := make(map[trust.Key]trust.Certificate)
	for _, raw := range c.Summary.Certificates {
		shown, _, err := trust.ReadCertificate(raw)
		if err != nil {
			continue
		}
		if checked, err := authority.Check(raw, shown.Node, time.UnixMilli(c.Header.Begun)); err == nil {
			valid[shown.Node] = checked
		}
	}
	return valid, nil
}

func worldOf(c Contents) trust.World { return sha256.Sum256(c.Genesis.Encode()) }
