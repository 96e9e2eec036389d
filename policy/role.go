package policy

import (
	"fmt"
	"slices"
	"strings"
)

// Role is what a player may do. A role includes everything that the roles below it include.
type Role int

// The roles, lowest first. The zero value is no role.
const (
	None      Role = iota + 1 // may not join
	Visitor                   // may look around, and chat
	Builder                   // may build
	Moderator                 // may kick, mute and ban players below them
	Admin                     // may give roles, and change settings
	Owner                     // may do everything

	operator // of a node: may do everything, also to owners
)

var roleNames = []string{None: "none", Visitor: "visitor", Builder: "builder", Moderator: "moderator", Admin: "admin", Owner: "owner", operator: "operator"}

// String returns the name of the role.
func (r Role) String() string { return roleNames[r] }

// MarshalText returns the same text as String.
func (r Role) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText accepts the same text as parseRole.
func (r *Role) UnmarshalText(text []byte) (err error) {
	*r, err = parseRole(string(text))
	return err
}

func parseRole(name string) (Role, error) {
	if at := slices.Index(roleNames, strings.ToLower(name)); at >= int(None) && at <= int(Owner) {
		return Role(at), nil
	}
	return 0, fmt.Errorf("there is no role %q: choose one of %s", name, strings.Join(roleNames[None:operator], ", "))
}
