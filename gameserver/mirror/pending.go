package mirror

import (
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// MaxPending bounds a subscription's pending edits, well below wire.MaxBodies; more are refused.
const MaxPending = 4096

// maxPendingBulk bounds the bulk edits among them: over a new link all are requested in one message.
const maxPendingBulk = 64

// pendingEdits are the edits that a region has not answered, in order. They are requested over every new link until
// they are answered. The subscription's lock guards them.
type pendingEdits []pendingEdit

// pendingEdit is an edit and the subscriber that waits for its result; nil once it was sent that.
type pendingEdit struct {
	nodemsg.Intent
	requester Subscriber
	sent      time.Time // over the current link
}

// add adds an edit. It reports whether it is new: one that is requested again, perhaps by the player's next session, is
// not, but that session gets the result. Refused says why the edit cannot be added.
func (p *pendingEdits) add(e nodemsg.Intent, by Subscriber) (added bool, refused string) {
	i := slices.IndexFunc(*p, func(i pendingEdit) bool { return i.Player == e.Player && i.Seq == e.Seq })
	switch {
	case i >= 0 && (*p)[i].Intent == e:
		(*p)[i].requester = by
		return false, ""
	case i >= 0:
		// Another edit of the same number is pending. The region would confuse the two.
		return false, wire.RefusedStale
	case len(*p) >= MaxPending, e.Bulk != "" && p.bulks() >= maxPendingBulk:
		return false, wire.RefusedUnavailable
	}
	*p = append(*p, pendingEdit{Intent: e, requester: by})
	return true, ""
}

// bulks returns how many bulk edits are pending.
func (p pendingEdits) bulks() (n int) {
	for i := range p {
		if p[i].Bulk != "" {
			n++
		}
	}
	return n
}

// find returns the edit that a result answers; nil if it was answered over an earlier link.
func (p pendingEdits) find(r *nodemsg.EditResult) *pendingEdit {
	i := slices.IndexFunc(p, func(i pendingEdit) bool { return i.requester != nil && i.Player == r.Player && i.Seq == r.Seq })
	if i < 0 {
		return nil
	}
	return &p[i]
}

// dropAnswered removes the edits whose requesters were sent the result.
func (p *pendingEdits) dropAnswered() {
	*p = slices.DeleteFunc(*p, func(i pendingEdit) bool { return i.requester == nil })
}

// breaks reports whether a player has requested to put a block at the position that is not solid.
func (p pendingEdits) breaks(pos grid.Pos, id player.ID) bool {
	return slices.ContainsFunc(p, func(i pendingEdit) bool { return i.Pos == pos && i.Player == id && !i.Block.Solid() && i.Bulk == "" })
}
