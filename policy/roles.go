package policy

import (
	"cmp"
	"slices"
	"strings"

	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/notice"
)

// Member is what is known of a player who has a role or a registered name.
type Member struct {
	Player player.ID `json:"player"`
	Name   string    `json:"name,omitempty"` // registered to them; empty if none is
	Role   Role      `json:"role,omitzero"`  // given to them; zero if none was
	seq    uint64    // of their last act
	named  int64     // when they registered the name, in Unix milliseconds
	used   bool      // they have come back since, on another day
}

// Label returns what the member is called: the registered name, else the id.
func (m Member) Label() string { return cmp.Or(m.Name, m.Player.String()) }

// Roles are the roles that admins have defined, and the players who have a role of their own.
type Roles struct {
	custom  map[string]Role       // by name
	members map[player.ID]*Member // few
	table   []Command             // commands, which functions in it cannot refer to
}

func newRoles(table []Command) *Roles {
	return &Roles{custom: make(map[string]Role), members: make(map[player.ID]*Member), table: table}
}

// Members returns the players who have a role of their own, highest first.
func (r *Roles) Members() []Member {
	all := []Member{}
	for _, m := range r.members {
		all = append(all, *m)
	}
	slices.SortFunc(all, func(a, b Member) int {
		return cmp.Or(cmp.Compare(b.Role.order(), a.Role.order()), strings.Compare(a.Name, b.Name), strings.Compare(a.Player.String(), b.Player.String()))
	})
	return all
}

// Defined returns the roles that admins have defined, highest first.
func (r *Roles) Defined() []Definition {
	all := []Definition{}
	for _, role := range r.custom {
		all = append(all, *role.of)
	}
	slices.SortFunc(all, func(a, b Definition) int {
		return cmp.Or(cmp.Compare(b.order, a.order), strings.Compare(a.Name, b.Name))
	})
	return all
}

// named returns the role with a name.
func (r *Roles) named(name string) (Role, error) {
	name = strings.ToLower(name)
	if role, ok := r.custom[name]; ok {
		return role, nil
	}
	names := []string{}
	for _, b := range builtInRoles {
		if b.of.Name == name {
			return b, nil
		}
		names = append(names, b.of.Name)
	}
	for _, d := range slices.Backward(r.Defined()) {
		names = append(names, d.Name)
	}
	return Role{}, notice.New("no_role", "there is no role \"{role}\": choose one of {roles}", name, strings.Join(names, ", "))
}

// assign sets the role of a member; the zero Role removes it.
func (r *Roles) assign(m *Member, role Role) {
	if m.Role = role; role == (Role{}) {
		delete(r.members, m.Player)
		return
	}
	r.members[m.Player] = m
}

// replace makes another role of one that players have.
func (r *Roles) replace(old, fresh Role) {
	for _, m := range r.members {
		if m.Role == old {
			m.Role = fresh
		}
	}
}
