package world

import (
	"crypto/ed25519"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// Proofs decide which edits of batches were made by those in whose names they are. All members of a region must
// decide the same.
type Proofs struct {
	// Signed reports of each edit with a key whether the key has signed it; of the others it reports anything. If nil,
	// none is signed.
	Signed func([]nodemsg.Intent) []bool
	// Own reports whether an id is one of the world itself, which edits without a proof. If nil, none is.
	Own func(player.ID) bool
	// SignedAct reports whether the key of an operator's command has signed it. If nil, none is signed.
	SignedAct func(nodemsg.Act) bool
}

// Proven reports of each edit whether its proof is right.
func (p *Proofs) Proven(edits []nodemsg.Intent) []bool {
	proven := make([]bool, len(edits))
	if p.Signed != nil && slices.ContainsFunc(edits, func(e nodemsg.Intent) bool { return e.Key != [len(e.Key)]byte{} }) {
		copy(proven, p.Signed(edits))
	}
	for i := range edits {
		e := &edits[i]
		switch a := authorOf(e); a.kind() {
		case authorKey:
			proven[i] = proven[i] && player.IDOf(ed25519.PublicKey(e.Key[:])) == e.Player
		case authorGuest:
			proven[i] = player.CheckName(e.Name) == nil && player.GuestID(e.Name) == e.Player
		default:
			proven[i] = p.Own != nil && p.Own(e.Player)
		}
	}
	return proven
}

// signedFor is how far the sequence of a signed edit, which counts microseconds since 1970, may be from the time of its
// batch. Clocks of nodes may differ by nearly as much (trust.Skew).
const signedFor = 27 * time.Hour

// timely reports whether a signed edit with the sequence belongs to a batch of the time, in milliseconds since 1970.
// Who has kept an edit cannot have it applied later.
func timely(seq uint64, at int64) bool {
	apart := int64(seq/1000) - at
	return max(apart, -apart) <= signedFor.Milliseconds()
}
