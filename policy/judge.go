package policy

import (
	"math"
	"net/netip"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/policy/place"
	"github.com/voxelpopuli/voxeld/policy/sanction"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// Subject is a player whom the policy judges. The address is invalid if it is not known.
type Subject struct {
	Player  player.ID
	Name    string
	Guest   bool
	Address netip.Addr
}

// ClaimID returns the id that claims know a player by: zero for a guest.
func (who Subject) ClaimID() player.ID {
	if who.Guest {
		return player.ID{}
	}
	return who.Player
}

// Verdict is what a player may do.
type Verdict struct {
	Role Role
	Ban  *sanction.Sanction // nil if they are not banned
	Mute *sanction.Sanction // nil if they are not muted
	// Border is the one that holds for them: not for moderators and above.
	Border *place.Border
	// Edits is how many blocks a second they may change; 0: as many as their node grants.
	Edits int
	// Bulk is what they may change by bulk edits.
	Bulk BulkLimits
	// NewUntil is until when they are new, in Unix milliseconds: in the past if they are not, math.MaxInt64 for guests
	// and those without a registered name.
	NewUntil int64
}

// MayJoin reports whether the player may play at all.
func (v Verdict) MayJoin() bool { return v.Ban == nil && v.Role != None }

// MayBuild reports whether the player may change blocks.
func (v Verdict) MayBuild() bool { return v.MayJoin() && v.Role.MayBuild() }

// Judge returns what a player may do now. Sanctions of names and addresses do not concern moderators and above, unless
// they are an operator's: moderators could exclude those above them.
func (s *State) Judge(who Subject, now time.Time) Verdict {
	at := now.UnixMilli()
	v := Verdict{Role: s.roleOf(who.Player, who.Guest), NewUntil: math.MaxInt64}
	v.Edits, v.Bulk = s.settings.EditsOf(v.Role), s.settings.BulkOf(v.Role)
	if !who.Guest {
		v.NewUntil = s.members[who.Player].newUntil()
	}
	if !v.Role.AtLeast(Moderator) {
		v.Border = s.settings.Border
	}
	for _, target := range s.sanctions.Targets(who.Player, who.Name, who.Address) {
		for _, it := range s.sanctions.Of(target) {
			switch {
			case !it.InForce(at), target.Player != who.Player && v.Role.AtLeast(Moderator) && it.By != operatorName:
			case it.Kind == sanction.Mute:
				v.Mute = sanction.Longer(v.Mute, it)
			default:
				v.Ban = sanction.Longer(v.Ban, it)
			}
		}
	}
	return v
}

// Builders decides who may change which blocks, for leaders of regions, which have no more of players than their ids.
// It never changes: any goroutine may use it.
type Builders struct {
	players    bool // those with a key of whom nothing is known
	guests     bool
	exceptions map[player.ID]bool
	moderators map[player.ID]bool // and above
	claims     *Claims
	banned     map[player.ID]int64 // until when, in Unix milliseconds; 0: until it is lifted
	border     *place.Border
	rollbacks  []Rollback
	numbered   int64
}

// Builders returns who may change blocks now.
func (s *State) Builders() *Builders {
	b := &Builders{
		players: s.settings.Players.MayBuild(), guests: s.settings.Guests.MayBuild(),
		exceptions: make(map[player.ID]bool), moderators: make(map[player.ID]bool), claims: s.Claims(), banned: make(map[player.ID]int64),
		border: s.settings.Border, rollbacks: s.rollbacks, numbered: s.numbered,
	}
	for id, m := range s.roles.members {
		if m.Role.AtLeast(Moderator) {
			b.moderators[id] = true
		}
		b.exceptions[id] = m.Role.MayBuild()
	}
	s.sanctions.Bans(func(id player.ID, ban *sanction.Sanction) { b.banned[id] = ban.Until })
	return b
}

// Allow reports whether a player may change blocks at all. The proof is that of an edit of theirs, nil if it is not
// known to be right: then they may be a guest or not.
func (b *Builders) Allow(id player.ID, proof *nodemsg.Proof, now time.Time) bool {
	if until, banned := b.banned[id]; banned && (until == 0 || now.UnixMilli() < until) {
		return false
	}
	if proof != nil && proof.Name != "" {
		return b.guests
	}
	if may, known := b.exceptions[id]; known {
		return may
	}
	return b.players || b.guests && proof == nil
}

// newFor is how long a player counts as new after they have registered a name.
const newFor = 24 * time.Hour

// newUntil returns until when a player with a key, whose member is nil if nothing is known of them, is new, in Unix
// milliseconds: while they have no role of their own, and no name that has been registered for a day.
func (m *Member) newUntil() int64 {
	switch {
	case m == nil || m.Role == (Role{}) && m.Name == "":
		return math.MaxInt64
	case m.Role != (Role{}):
		return 0
	default:
		return m.named + newFor.Milliseconds()
	}
}

// Refuse returns why a player may not change a block: empty if they may, else a code of wire. The proof is as for
// Allow.
func (b *Builders) Refuse(id player.ID, proof *nodemsg.Proof, at grid.Pos, now time.Time) string {
	if !b.Allow(id, proof, now) {
		return wire.RefusedNotAllowed
	}
	if !b.border.Contains(at) && !b.moderators[id] {
		return wire.RefusedOutsideBorder
	}
	c := b.claims.At(at)
	if c == nil || c.Open || c.Has(id) || b.moderators[id] {
		return ""
	}
	return wire.RefusedClaimed
}

// NameFor returns the name under which a player joins: the one that they choose, or one with a fingerprint if it is
// registered to another player.
func (s *State) NameFor(id player.ID, name string) string {
	if owner, registered := s.OwnerOf(name); registered && owner != id {
		return player.Namesake(name, id.String(), 0)
	}
	return name
}
