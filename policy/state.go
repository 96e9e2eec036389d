package policy

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/voxelpopuli/voxeld/internal/netaddr"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/policy/sanction"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/notice"
)

// Limits of a world's policy.
const (
	// MaxActs is the most acts. Players below moderator give commands in the first half of them; after it they only
	// come back, once for what they have registered and not used yet. So MaxActs/2 - MaxNames - MaxClaims of them are
	// for moderators and operators.
	MaxActs  = 1_000_000
	MaxNames = 250_000
	// maxClaimActs and maxRollbackActs are how many acts may be about claims, and about rollbacks, but for those of
	// moderators and above: together less than MaxActs/2, so that names can still be registered.
	maxClaimActs    = MaxActs / 4
	maxRollbackActs = MaxActs / 8
)

// State is the policy after some acts. Create it with New.
type State struct {
	acts      uint64
	members   map[player.ID]*Member
	roles     *Roles
	names     map[string]player.ID // registered, in lower case
	nodes     map[player.ID]uint64 // the last sequence number of each operator, by the key of the node
	charter   uint64               // the newest in an act: older ones count no more
	sanctions *sanction.List
	tokens    map[string]bool
	services  map[player.ID]*Service
	settings  Settings
	warps     Warps
	rollbacks []Rollback // by number; never changed in place
	claims    *Claims
	claiming  tally         // commands about claims
	undoing   tally         // commands about rollbacks, of players below moderator
	mods      []Mod         // by name; never changed in place
	modActs   []nodemsg.Act // theirs
	requests  []Request     // by ID; never changed in place
	requested int           // ID of the last one
	expiring  int64         // when the first command expire came, in Unix milliseconds; 0: none did
	// forgotten is the highest number of a command of those who are forgotten. Of others of whom nothing is known,
	// older commands do not count.
	forgotten uint64
	numbered  int64 // the number of the last rollback or claim
}

// Words in notices.
var (
	claimsWord    = notice.New("claims", "claims")
	namesWord     = notice.New("names", "names")
	rollbacksWord = notice.New("rollbacks", "rollbacks")
	playersWord   = notice.New("players", "players")
	guestsWord    = notice.New("guests", "guests")
)

// New returns the policy of a new world: everybody may build.
func New() *State {
	return &State{
		members: make(map[player.ID]*Member), roles: newRoles(commands), names: make(map[string]player.ID), nodes: make(map[player.ID]uint64),
		sanctions: sanction.NewList(), tokens: make(map[string]bool),
		services: make(map[player.ID]*Service),
		settings: Settings{Players: Builder, Guests: Builder, Claims: defaultClaims, ClaimArea: defaultClaimArea, AddressQuota: defaultAddressQuota, GatewayQuota: defaultGatewayQuota, Expiry: defaultExpiry.Milliseconds()},
		claims:   newClaims(), warps: make(Warps),
		claiming: tally{what: claimsWord, most: maxClaimActs}, undoing: tally{what: rollbacksWord, most: maxRollbackActs},
	}
}

// Acts returns the number of acts applied.
func (s *State) Acts() uint64 { return s.acts }

// Filling is from which share on operators are told that the log fills up, as the alert VoxeldCommandLogFilling does.
const Filling = 0.8

// Used returns which share is used of what the log takes from players below moderator: of the commands after which no
// more names are registered, of those about claims, of those about rollbacks, or of the names, whichever is largest. At
// 1 players who are new get no name, or nobody can claim land, or undo damage. It can exceed 1: moderators and above
// have the second half of the log.
func (s *State) Used() float64 {
	share := func(n, most int) float64 { return float64(n) / float64(most) }
	return max(float64(s.acts)/float64(MaxActs/2), share(len(s.names), MaxNames), share(s.claiming.acts, s.claiming.most), share(s.undoing.acts, s.undoing.most))
}

// Charter returns the newest charter under which an operator has given a command; 0 if there is none.
func (s *State) Charter() uint64 { return s.charter }

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
	if s.services[id] != nil {
		return None // who has its key does not join with it
	}
	if m := s.members[id]; m != nil && m.Role != (Role{}) {
		return m.Role
	}
	return s.settings.Players
}

// RoleOf returns the role of a player with a key.
func (s *State) RoleOf(id player.ID) Role { return s.roleOf(id, false) }

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
func (s *State) nameOf(t sanction.Target) string {
	switch {
	case t.Name != "":
		return t.Name
	case t.Network.IsValid():
		return netaddr.Text(t.Network)
	}
	if m := s.members[t.Player]; m != nil {
		return m.Label()
	}
	return t.Player.String()
}

// Sanctions returns the bans and mutes in force, newest first.
func (s *State) Sanctions(now time.Time) []sanction.Sanction {
	all := s.sanctions.InForce(now.UnixMilli(), s.nameOf)
	slices.SortFunc(all, func(a, b sanction.Sanction) int {
		return cmp.Or(cmp.Compare(b.At, a.At), strings.Compare(a.Target, b.Target))
	})
	return all
}

// targetOf returns whom a command names: the player to whom the name is registered, a player's id, an address (of IPv6
// its /64) or a network, else whoever uses the name.
func (s *State) targetOf(text string) (sanction.Target, error) {
	if id, err := player.ParseID(text); err == nil {
		return sanction.Target{Player: id}, nil
	}
	if network, ok := netaddr.Parse(text); ok {
		if network.Bits() < 8 {
			return sanction.Target{}, notice.New("large_network", "the network {network} is too large", text)
		}
		return sanction.Target{Network: network}, nil
	}
	if err := player.CheckName(text); err != nil {
		return sanction.Target{}, notice.New("not_a_target", "\"{text}\" is neither a name, a player's id, an address nor a network", text)
	}
	if id, registered := s.OwnerOf(text); registered {
		return sanction.Target{Player: id}, nil
	}
	return sanction.Target{Name: strings.ToLower(text)}, nil
}
