package policy

import (
	"errors"
	"slices"

	"github.com/voxelpopuli/voxeld/player"
)

// Role is what a player may do. The zero value is no role.
type Role struct{ of *Definition }

// Definition is what a role is. It never changes: a changed role is another value.
type Definition struct {
	Name string `json:"name"`
	Base Role   `json:"base"` // the built-in role from which it has everything that it does not define; zero for those themselves
	Rank int    `json:"rank"` // its place between its base and the next built-in role: 1 to maxRank
	// Build means that its players may change blocks.
	Build bool `json:"build"`
	// Edits is how many blocks a second they may change; 0: as many as those of the base.
	Edits int `json:"edits,omitempty"`
	// Bulk is what they may change by bulk edits; nil: as much as those of the base.
	Bulk *BulkLimits `json:"bulk,omitempty"`
	// Claims is how much land they may claim; nil: as much as those of the base.
	Claims *ClaimLimits `json:"claims,omitempty"`
	// Allow and Deny are commands that they may use although the base may not, or may not although the base may.
	Allow []string `json:"allow,omitempty"`
	Deny  []string `json:"deny,omitempty"`

	order int // higher roles have greater numbers
}

// ClaimLimits is how many claims a player may have, and how many columns of blocks in all.
type ClaimLimits struct {
	Count int   `json:"count"`
	Area  int64 `json:"area"`
}

// The built-in roles, lowest first. Each includes everything that those before it include.
var (
	None      = builtIn("none", 1)      // may not join
	Visitor   = builtIn("visitor", 2)   // may look around, and chat
	Builder   = builtIn("builder", 3)   // may build
	Moderator = builtIn("moderator", 4) // may kick, mute and ban players below them
	Admin     = builtIn("admin", 5)     // may give and define roles, and change settings
	Owner     = builtIn("owner", 6)     // may do everything

	operator = builtIn("operator", 7) // of a node: may do everything, also to owners
)

// builtInRoles are those that players can have.
var builtInRoles = []Role{None, Visitor, Builder, Moderator, Admin, Owner}

// maxRank is the highest place above a built-in role.
const maxRank = 99

func builtIn(name string, level int) Role {
	return Role{&Definition{Name: name, Build: level >= 3, order: level * (maxRank + 1)}}
}

// String returns the name of the role.
func (r Role) String() string {
	if r.of == nil {
		return ""
	}
	return r.of.Name
}

// MarshalText returns the same text as String.
func (r Role) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText takes the name of a role. Of one that is not built in, only the name is known then.
func (r *Role) UnmarshalText(text []byte) error {
	name := string(text)
	if i := slices.IndexFunc(builtInRoles, func(b Role) bool { return b.String() == name }); i >= 0 {
		*r = builtInRoles[i]
		return nil
	}
	if len(name) > player.MaxName {
		return errors.New("the name of a role is too long")
	}
	*r = Role{&Definition{Name: name}}
	return nil
}

func (r Role) order() int {
	if r.of == nil {
		return 0
	}
	return r.of.order
}

// AtLeast reports whether the role is another one, or above it.
func (r Role) AtLeast(other Role) bool { return r.order() >= other.order() }

// MayBuild reports whether its players may change blocks.
func (r Role) MayBuild() bool { return r.of != nil && r.of.Build }

// base returns the built-in role that it is, or is made from.
func (r Role) base() Role {
	if r.of == nil || r.of.Base.of == nil {
		return r
	}
	return r.of.Base
}

// custom reports whether it is no built-in role.
func (r Role) custom() bool { return r.base() != r }
