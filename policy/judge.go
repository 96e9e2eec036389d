package policy

import (
	"net/netip"
	"strings"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
)

// Subject is a player whom the policy judges. The address is invalid if it is not known.
type Subject struct {
	Player  player.ID
	Name    string
	Guest   bool
	Address netip.Addr
}

// Verdict is what a player may do.
type Verdict struct {
	Role Role
	Ban  *Sanction // nil if they are not banned
	Mute *Sanction // nil if they are not muted
	// Border is the one that holds for them: not for moderators and above.
	Border *Border
}

// MayJoin reports whether the player may play at all.
func (v Verdict) MayJoin() bool { return v.Ban == nil && v.Role > None }

// MayBuild reports whether the player may change blocks.
func (v Verdict) MayBuild() bool { return v.MayJoin() && v.Role >= Builder }

// Judge returns what a player may do now. Sanctions of names and addresses do not concern moderators and above, unless they are an operator's:
// moderators could exclude those above them.
func (s *State) Judge(who Subject, now time.Time) Verdict {
	at := now.UnixMilli()
	v := Verdict{Role: s.RoleOf(who.Player, who.Guest)}
	if v.Role < Moderator {
		v.Border = s.settings.Border
	}
	for _, target := range s.targetsOf(who) {
		for _, it := range s.sanctions[target] {
			switch {
			case !it.inForce(at), target.Player != who.Player && v.Role >= Moderator && it.By != operatorName:
			case it.Kind == Mute:
				v.Mute = longer(v.Mute, it)
			default:
				v.Ban = longer(v.Ban, it)
			}
		}
	}
	return v
}

// targetsOf lists the targets of sanctions that would concern a player.
func (s *State) targetsOf(who Subject) []Target {
	all := []Target{{Player: who.Player}, {Name: strings.ToLower(who.Name)}}
	address := who.Address.Unmap()
	for size := range s.networks {
		if network, err := address.Prefix(max(size, -size)); err == nil && (size > 0) == address.Is4() {
			all = append(all, Target{Network: network})
		}
	}
	return all
}

// Builders tells who may change blocks, for leaders of regions, which know no more of players than their ids. It never changes: any goroutine
// may use it.
type Builders struct {
	others     bool // those of whom nothing is known
	exceptions map[player.ID]bool
	banned     map[player.ID]int64 // until when, in Unix milliseconds; 0: until it is lifted
	border     *Border
	moderators map[player.ID]bool // for whom it does not hold, with those above them
}

// Builders returns who may change blocks now.
func (s *State) Builders() *Builders {
	b := &Builders{
		others:     max(s.settings.Players, s.settings.Guests) >= Builder,
		exceptions: make(map[player.ID]bool), banned: make(map[player.ID]int64),
		border: s.settings.Border, moderators: make(map[player.ID]bool),
	}
	for id, m := range s.members {
		if may := m.Role >= Builder; m.Role != 0 && may != b.others {
			b.exceptions[id] = may
		}
		if m.Role >= Moderator {
			b.moderators[id] = true
		}
	}
	for target, kinds := range s.sanctions {
		ban := longer(kinds[Ban], kinds[Kick])
		if target.Player != (player.ID{}) && ban != nil {
			b.banned[target.Player] = ban.Until
		}
	}
	return b
}

// Allow reports whether a player may change a block.
func (b *Builders) Allow(id player.ID, pos grid.Pos, now time.Time) bool {
	if !b.border.Contains(pos) && !b.moderators[id] {
		return false
	}
	if until, banned := b.banned[id]; banned && (until == 0 || now.UnixMilli() < until) {
		return false
	}
	if may, known := b.exceptions[id]; known {
		return may
	}
	return b.others
}

// newFor is how long a player counts as new after they have registered a name.
const newFor = 24 * time.Hour

// IsNew reports whether a player with a key is new: they have no role of their own, and no name that has been registered for a day.
func (s *State) IsNew(id player.ID, now time.Time) bool {
	m := s.members[id]
	return m == nil || m.Role == 0 && (m.Name == "" || now.UnixMilli()-m.named < newFor.Milliseconds())
}

// NameFor returns the name under which a player joins: the one that they choose, or one with a fingerprint if it is registered to another
// player.
func (s *State) NameFor(id player.ID, name string) string {
	if owner, registered := s.OwnerOf(name); registered && owner != id {
		return player.Namesake(name, id.String(), 0)
	}
	return name
}
