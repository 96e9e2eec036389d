package integrity

import (
	"crypto/ed25519"

	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// Issuers sign what their copies of the catalog have as its members, and verify what others sign.
type Issuers struct {
	World string // its id
	// Issued reports whether a charter of the world makes the node of a key an issuer.
	Issued func(charter uint64, node ed25519.PublicKey) (bool, error)
	// Key and Sign are this node's. Charter returns the number of the newest charter that it knows. Sign is nil if the
	// node never signs.
	Key     ed25519.PublicKey
	Sign    func(text []byte) ([]byte, error)
	Charter func() uint64
}

// Vouch signs the status of this node's copy of the catalog, if this node is an issuer.
func (i *Issuers) Vouch(s *nodemsg.RegionStatus) {
	if i.Sign == nil {
		return
	}
	v := nodemsg.Voucher{Key: i.Key, Charter: i.Charter()}
	if issuer, err := i.Issued(v.Charter, v.Key); err != nil || !issuer {
		return
	}
	var err error
	if v.Signature, err = i.Sign(s.VouchedText(i.World, v.Charter)); err == nil {
		s.Voucher = &v
	}
}

// Vouched reports whether an issuer has signed a status of the catalog.
func (i *Issuers) Vouched(s nodemsg.RegionStatus) bool {
	v := s.Voucher
	if v == nil || s.Region != world.CatalogID || !ed25519.Verify(v.Key, s.VouchedText(i.World, v.Charter), v.Signature) {
		return false
	}
	issuer, err := i.Issued(v.Charter, v.Key)
	return err == nil && issuer
}
