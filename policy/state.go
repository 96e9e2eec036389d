package policy

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/voxelpopuli/voxeld/player"
)

// Limits of a world's policy.
const (
	// MaxActs is the most acts. Names are registered in the first half of them, so that moderators can act for long.
	MaxActs  = 1_000_000
	MaxNames = 250_000
	// MaxSanctions is the most bans and mutes in force at a time.
	MaxSanctions = 20_000
)

// State is the policy after some acts. Create it with New.
type State struct {
	acts      uint64
	members   map[player.ID]*Member
	roles     *Roles
	names     map[string]player.ID // registered, in lower case
	nodes     map[player.ID]uint64 // the last sequence number of each operator, by the key of the node
	charter   uint64               // the newest in an act: older ones count no more
	sanctions map[Target]map[Kind]*Sanction
	networks  map[int]bool // the lengths of the prefixes of sanctioned networks; those of IPv6 below zero
	tokens    map[string]bool
	settings  Settings
	warps     Warps
	rollbacks []Rollback // by number; never changed in place
	claims    *Claims
	claiming  claiming
}

// New returns the policy of a new world: everybody may build.
func New() *State {
	return &State{
		members: make(map[player.ID]*Member), roles: newRoles(commands), names: make(map[string]player.ID), nodes: make(map[player.ID]uint64),
		sanctions: make(map[Target]map[Kind]*Sanction), tokens: make(map[string]bool),
		settings: Settings{Players: Builder, Guests: Builder, Claims: defaultClaims, ClaimArea: defaultClaimArea},
		claims:   newClaims(), warps: make(Warps),
	}
}

// Acts returns the number of acts applied.
func (s *State) Acts() uint64 { return s.acts }

// Settings returns the world's settings.
func (s *State) Settings() Settings { return s.settings }

// member returns the member with the id, who is added if they are new.
func (s *State) member(id player.ID) *Member {
	m := s.members[id]
	if m == nil {
		m = &Member{Player: id}
		s.members[id] = m
	}
	return m
}

// Roles returns who has which role. The caller must not keep it.
func (s *State) Roles() *Roles { return s.roles }

// roleOf returns the role of a player.
func (s *State) roleOf(id player.ID, guest bool) Role {
	if guest {
		return s.settings.Guests
	}
	if m := s.members[id]; m != nil && m.Role != (Role{}) {
		return m.Role
	}
	return s.settings.Players
}

// OwnerOf returns the player to whom a name is registered.
func (s *State) OwnerOf(name string) (player.ID, bool) {
	id, ok := s.names[strings.ToLower(name)]
	return id, ok
}

// NameOf returns the name that is registered to a player, or the empty string.
func (s *State) NameOf(id player.ID) string {
	if m := s.members[id]; m != nil {
		return m.Name
	}
	return ""
}

// nameOf returns what a target is called.
func (s *State) nameOf(t Target) string {
	switch {
	case t.Name != "":
		return t.Name
	case t.Network.IsValid() && t.Network.IsSingleIP():
		return t.Network.Addr().String()
	case t.Network.IsValid():
		return t.Network.String()
	}
	if m := s.members[t.Player]; m != nil {
		return m.Label()
	}
	return t.Player.String()
}

// Sanctions returns the bans and mutes in force, newest first.
func (s *State) Sanctions(now time.Time) []Sanction {
	all := []Sanction{}
	for target, kinds := range s.sanctions {
		for it := range maps.Values(kinds) {
			if it.inForce(now.UnixMilli()) {
				shown := *it
				shown.Target = s.nameOf(target)
				all = append(all, shown)
			}
		}
	}
	slices.SortFunc(all, func(a, b Sanction) int { return cmp.Or(cmp.Compare(b.At, a.At), strings.Compare(a.Target, b.Target)) })
	return all
}

// targetOf returns whom a command names: the player to whom the name is registered, a player's id, an address or a network, else
// whoever uses the name.
func (s *State) targetOf(text string) (Target, error) {
	if id, err := player.ParseID(text); err == nil {
		return Target{Player: id}, nil
	}
	if address, err := netip.ParseAddr(text); err == nil {
		return Target{Network: netip.PrefixFrom(address.Unmap(), address.Unmap().BitLen())}, nil
	}
	if network, err := netip.ParsePrefix(text); err == nil {
		if network.Addr().Is4In6() || network.Bits() < 8 {
			return Target{}, fmt.Errorf("the network %s is too large, or not written as an IPv4 or IPv6 network", text)
		}
		return Target{Network: network.Masked()}, nil
	}
	if err := player.CheckName(text); err != nil {
		return Target{}, fmt.Errorf("%q is neither a name, a player's id, an address nor a network", text)
	}
	if id, registered := s.OwnerOf(text); registered {
		return Target{Player: id}, nil
	}
	return Target{Name: strings.ToLower(text)}, nil
}

// put adds a sanction, in the place of an older one of its kind.
func (s *State) put(target Target, it Sanction) {
	if s.sanctions[target] == nil {
		s.sanctions[target] = make(map[Kind]*Sanction)
	}
	s.sanctions[target][it.Kind] = &it
	s.countNetworks()
}

// lift removes sanctions, and reports whether there were any in force.
func (s *State) lift(target Target, at int64, kinds ...Kind) (lifted bool) {
	for _, kind := range kinds {
		if it := s.sanctions[target][kind]; it != nil {
			lifted = lifted || it.inForce(at)
			delete(s.sanctions[target], kind)
		}
	}
	s.purge(at)
	return lifted
}

// purgedAfter is how long after their end sanctions are kept: the times of acts are not exact.
const purgedAfter = 48 * time.Hour

// purge removes what has not been in force for long.
func (s *State) purge(at int64) {
	at -= purgedAfter.Milliseconds()
	maps.DeleteFunc(s.sanctions, func(_ Target, kinds map[Kind]*Sanction) bool {
		maps.DeleteFunc(kinds, func(_ Kind, it *Sanction) bool { return !it.inForce(at) })
		return len(kinds) == 0
	})
	s.countNetworks()
}

// countNetworks notes the lengths of the prefixes that Judge has to look for.
func (s *State) countNetworks() {
	s.networks = make(map[int]bool)
	for target := range s.sanctions {
		if bits := target.Network.Bits(); bits > 0 && target.Network.Addr().Is4() {
			s.networks[bits] = true
		} else if bits > 0 {
			s.networks[-bits] = true
		}
	}
}
