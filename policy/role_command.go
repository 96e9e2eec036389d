package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/notice"
)

// MaxRoles is the most roles that admins can define.
const MaxRoles = 32

const (
	defaultRank = 50
	createRole  = "create"
	deleteRole  = "delete"
	roleUsage   = "NAME ROLE | create ROLE BASE [build=yes|no] [edits=COUNT] [bulk=BLOCKS,HOUR|off] [claims=COUNT,AREA] [allow=COMMAND,…] [deny=COMMAND,…] [rank=NUMBER] | delete ROLE"
)

// role gives a player a role, or defines or deletes a role. A player may be called "delete": built-in roles cannot be
// deleted, so /role delete builder makes that player a builder.
func role(s *State, by author, args []string, at int64) (func() Effect, error) {
	if len(args) > 2 && args[0] == createRole {
		return defineRole(s, by, args[1:])
	}
	if len(args) == 2 && args[0] == deleteRole {
		if r, err := s.roles.named(args[1]); err != nil || r.custom() {
			return removeRole(s, by, r, err)
		}
	}
	return giveRole(s, by, args, at)
}

// defineRole adds a role, or takes the place of the one with its name: ROLE BASE [OPTION=VALUE]….
func defineRole(s *State, by author, args []string) (func() Effect, error) {
	d, err := s.roles.parse(args)
	if err != nil {
		return nil, err
	}
	fresh := Role{d}
	if err := mayGrant(by, fresh); err != nil {
		return nil, err
	}
	for _, name := range d.Allow {
		if c, _ := find(s.roles.table, name); !by.role.MayUse(c) {
			return nil, notice.New("may_not_allow", "you may not use /{command}, and so cannot allow it", name)
		}
	}
	old, there := s.roles.custom[d.Name]
	switch {
	case !there && len(s.roles.custom) >= MaxRoles:
		return nil, notice.New("many_roles", "there are {count} roles beside the built-in ones: delete some first", MaxRoles)
	case there && (old == s.settings.Players || old == s.settings.Guests) && fresh.AtLeast(Moderator):
		return nil, notice.New("role_of_all", "the role {role} is that of all players or guests: its base is visitor or builder", d.Name)
	case there:
		if err := mayGrant(by, old); err != nil {
			return nil, err
		}
	}
	return func() Effect {
		s.roles.custom[d.Name] = fresh
		if there {
			s.replaceRole(old, fresh)
		}
		return Effect{Text: d.Line()}
	}, nil
}

// removeRole deletes a role. Its players have its base then.
func removeRole(s *State, by author, old Role, err error) (func() Effect, error) {
	if err == nil {
		err = mayGrant(by, old)
	}
	return func() Effect {
		delete(s.roles.custom, old.of.Name)
		s.replaceRole(old, old.of.Base)
		return Effect{Text: notice.New("role_deleted", "The role {role} is deleted. Players who had it now have the role {base}.", old, old.of.Base)}
	}, err
}

// replaceRole makes another role of one, wherever it is set.
func (s *State) replaceRole(old, fresh Role) {
	s.roles.replace(old, fresh)
	for _, of := range []*Role{&s.settings.Players, &s.settings.Guests} {
		if *of == old {
			*of = fresh
		}
	}
}

// parse reads ROLE BASE [OPTION=VALUE]….
func (r *Roles) parse(args []string) (*Definition, error) {
	d := &Definition{Name: strings.ToLower(args[0]), Rank: defaultRank}
	var base Role
	if err := player.CheckName(d.Name); err != nil || d.Name[0] == '-' {
		return nil, notice.New("bad_role_name", "\"{text}\" is no name for a role: use 1 to {most} letters, digits, _ and -", args[0], player.MaxName)
	}
	for _, b := range append(slices.Clone(builtInRoles), operator) {
		if d.Name == b.of.Name {
			return nil, notice.New("built_in_role", "the role {role} is built in: choose another name", d.Name)
		}
		if strings.EqualFold(args[1], b.of.Name) && b != None && b != Owner && b != operator {
			base = b
		}
	}
	if base.of == nil {
		return nil, notice.New("bad_base", "\"{text}\" cannot be the base of a role: choose visitor, builder, moderator or admin", args[1])
	}
	d.Base, d.Build = base, base.of.Build
	seen := make(map[string]bool)
	for _, arg := range args[2:] {
		option, value, _ := strings.Cut(arg, "=")
		if seen[option] || !d.set(option, value, r.table) {
			return nil, notice.New("bad_option", "\"{text}\" is no option of a role, or not with that value: write build=yes or no, edits=1 to {edits}, bulk=BLOCKS,HOUR or off, claims=COUNT,AREA, allow= or deny= and commands, or rank=1 to {rank}", arg, maxEdits, maxRank)
		}
		seen[option] = true
	}
	d.order = base.of.order + d.Rank
	for _, name := range d.Allow {
		if slices.Contains(d.Deny, name) {
			return nil, notice.New("allowed_and_denied", "/{command} cannot be both allowed and denied", name)
		}
	}
	return d, nil
}

// set sets an option, and reports whether there is such a one with such a value.
func (d *Definition) set(option, value string, table []Command) bool {
	n, err := strconv.Atoi(value)
	switch option {
	case "build":
		d.Build = value == "yes"
		return d.Build || value == "no"
	case "edits":
		d.Edits = n
		return err == nil && n > 0 && n <= maxEdits
	case "rank":
		d.Rank = n
		return err == nil && n > 0 && n <= maxRank
	case "bulk":
		limits, ok := parseBulk(strings.Split(value, ","))
		d.Bulk = &limits
		return ok
	case "claims":
		var ok bool
		d.Claims, ok = parseClaimLimits(strings.Split(value, ","))
		return ok
	case "allow", "deny":
		list := strings.Split(strings.ToLower(value), ",")
		slices.Sort(list)
		list = slices.Compact(list)
		if option == "allow" {
			d.Allow = list
		} else {
			d.Deny = list
		}
		return !slices.ContainsFunc(list, func(name string) bool { c, known := find(table, name); return !known || c.Role == operator })
	}
	return false
}

// Options returns the options that differ from the base, as parse reads them.
func (d *Definition) Options() (all []string) {
	if d.Build != d.Base.of.Build {
		all = append(all, "build="+map[bool]string{true: "yes", false: "no"}[d.Build])
	}
	if d.Edits != 0 {
		all = append(all, fmt.Sprintf("edits=%d", d.Edits))
	}
	if d.Bulk != nil {
		all = append(all, "bulk="+d.Bulk.args(","))
	}
	if c := d.Claims; c != nil {
		all = append(all, fmt.Sprintf("claims=%d,%d", c.Count, c.Area))
	}
	if len(d.Allow) > 0 {
		all = append(all, "allow="+strings.Join(d.Allow, ","))
	}
	if len(d.Deny) > 0 {
		all = append(all, "deny="+strings.Join(d.Deny, ","))
	}
	if d.Rank != defaultRank {
		all = append(all, fmt.Sprintf("rank=%d", d.Rank))
	}
	return all
}

// Line returns the role as a line of a list.
func (d *Definition) Line() notice.Notice {
	return notice.New("role", "The role {role} is above {base}[: {options}].", d.Name, d.Base, strings.Join(d.Options(), " "))
}

// roleCommands returns the commands that define the same roles in another policy.
func roleCommands(r *Roles) (all []string) {
	for _, d := range r.Defined() {
		all = append(all, strings.Join(append([]string{"role", createRole, d.Name, d.Base.String()}, d.Options()...), " "))
	}
	return all
}
