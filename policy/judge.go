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
			case !it.InForce(at), target.Player != who.Player && v.Role.AtLeast(Moderator) && it.By != sanction.Operator:
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
	players   rights // of those with a key of whom nothing is known
	guests    rights
	members   map[player.ID]rights // of those with a role of their own, and of services
	claims    *Claims
	banned    map[player.ID]int64 // until when, in Unix milliseconds; 0: until it is lifted
	border    *place.Border
	rollbacks []Rollback
	numbered  int64
	modActs   []nodemsg.Act
}

// rights is what a role may do.
type rights struct {
	build     bool
	bulk      bool // make bulk edits: gateways count their blocks
	moderator bool // or above
	service   *Service
}

func (s *State) rightsOf(r Role) rights {
	return rights{build: r.MayBuild(), moderator: r.AtLeast(Moderator), bulk: s.settings.BulkOf(r).AtOnce > 0}
}

// Builders returns who may change blocks now.
func (s *State) Builders() *Builders {
	b := &Builders{
		players: s.rightsOf(s.settings.Players), guests: s.rightsOf(s.settings.Guests), members: make(map[player.ID]rights),
		claims: s.Claims(), banned: make(map[player.ID]int64),
		border: s.settings.Border, rollbacks: s.rollbacks, numbered: s.numbered, modActs: s.modActs,
	}
	for id, m := range s.roles.members {
		b.members[id] = s.rightsOf(m.Role)
	}
	for id, v := range s.services {
		b.members[id] = rights{build: true, bulk: true, service: v}
	}
	s.sanctions.Bans(func(id player.ID, ban *sanction.Sanction) { b.banned[id] = ban.Until })
	return b
}

// of returns the rights of who has made an edit.
func (b *Builders) of(e *nodemsg.Intent) rights {
	if e.Proof.Name != "" { // a guest's
		return b.guests
	}
	if r, known := b.members[e.Player]; known {
		return r
	}
	return b.players
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

// Refuse returns why a player may not make an edit, if its proof is right: empty if they may, else a code of wire.
func (b *Builders) Refuse(e *nodemsg.Intent, now time.Time) string {
	may := b.of(e)
	if !b.mayBuild(e.Player, may, now) || e.Bulk != "" && !may.bulk {
		return wire.RefusedNotAllowed
	}
	if e.Bulk == "" {
		return b.refuseAt(e.Player, may, e.Pos)
	}
	for to := range e.Bulk.All() {
		if why := b.refuseAt(e.Player, may, to.At.Pos(e.Pos.Chunk())); why != "" {
			return why
		}
	}
	return ""
}

// RefuseMod returns why a mod may not change a block for a player, or a service, who has caused that; empty if it may,
// else a code of wire. An id does not say whether it is a guest's: a player of whom nothing is known may build if either
// may.
func (b *Builders) RefuseMod(id player.ID, at grid.Pos, now time.Time) string {
	may, known := b.members[id]
	if !known {
		if may = b.players; !may.build {
			may = b.guests
		}
	}
	if !b.mayBuild(id, may, now) {
		return wire.RefusedNotAllowed
	}
	return b.refuseAt(id, may, at)
}

// mayBuild reports whether a player who has these rights may change blocks now.
func (b *Builders) mayBuild(id player.ID, may rights, now time.Time) bool {
	if until, banned := b.banned[id]; banned && (until == 0 || now.UnixMilli() < until) {
		return false
	}
	return may.build && (may.service == nil || may.service.May(ScopeEdit, now))
}

// refuseAt returns why a player who has these rights may not change a block.
func (b *Builders) refuseAt(id player.ID, may rights, at grid.Pos) string {
	if may.moderator {
		return ""
	}
	if v := may.service; v != nil && !v.Area.Contains(at) {
		return wire.RefusedNotAllowed
	}
	if !b.border.Contains(at) {
		return wire.RefusedOutsideBorder
	}
	if c := b.claims.At(at); c != nil && !c.Open && !c.Has(id) {
		return wire.RefusedClaimed
	}
	return ""
}

// NameFor returns the name under which a player joins: the one that they choose, or one with a fingerprint if it is
// registered to another player.
func (s *State) NameFor(id player.ID, name string) string {
	if owner, registered := s.OwnerOf(name); registered && owner != id {
		return player.Namesake(name, id.String(), 0)
	}
	return name
}
