package policy

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/policy/sanction"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/notice"
)

// changesADay is how many commands about claims, and about rollbacks, a player may give on a day, newChangesADay how
// many one who is new.
const (
	changesADay    = 200
	newChangesADay = 20
)

// refuse returns why a player may give no more commands of the kind.
func (t *tally) refuse(s *State, by author) error {
	most := changesADay
	if by.entered < s.members[by.id].newUntil() {
		most = newChangesADay
	}
	switch {
	case (t.acts >= t.most || s.acts >= MaxActs/2) && !by.role.AtLeast(Moderator):
		return notice.New("commands_used_up", "this world has had too many commands about {what}: only moderators give them now", t.what)
	case by.day() == t.day && t.changes[by.id] >= most:
		return notice.New("commands_of_today", "you have given {count} commands about {what} today: go on tomorrow", most, t.what)
	}
	return nil
}

// counting returns what carries out a command, and counts it.
func (t *tally) counting(by author, do func() Effect) func() Effect {
	return func() Effect {
		if day := by.day(); day != t.day || t.changes == nil {
			t.day, t.changes = day, make(map[player.ID]int)
		}
		t.changes[by.id]++
		t.acts++
		return do()
	}
}

type run = func(s *State, by author, args []string, at int64) (func() Effect, error)

// limited is a command about claims, of which players may give so many.
func limited(of run) run {
	return func(s *State, by author, args []string, at int64) (func() Effect, error) {
		if by.role == operator {
			return of(s, by, args, at)
		}
		if err := s.claiming.refuse(s, by); err != nil {
			return nil, err
		}
		do, err := of(s, by, args, at)
		return s.claiming.counting(by, do), err
	}
}

// limitedAtEntry is a command about rollbacks, of which players below moderator may give so many. One that is in the
// catalog is not refused: earlier versions had no limit.
func limitedAtEntry(of run) run {
	return func(s *State, by author, args []string, at int64) (func() Effect, error) {
		if by.role.AtLeast(Moderator) {
			return of(s, by, args, at)
		}
		if err := s.undoing.refuse(s, by); err != nil && by.entering {
			return nil, err
		}
		do, err := of(s, by, args, at)
		return s.undoing.counting(by, do), err
	}
}

func notACorner(text string) error {
	return notice.New("not_a_corner", "\"{text}\" is not a corner: write X,Z or X,Y,Z", text)
}

// parseCorner reads X,Z or X,Y,Z.
func parseCorner(text string) (pos grid.Pos, columns bool, err error) {
	var at []int32
	for word := range strings.SplitSeq(text, ",") {
		n, err := strconv.ParseInt(word, 10, 32)
		if err != nil {
			return pos, false, notACorner(text)
		}
		at = append(at, int32(n))
	}
	switch {
	case len(at) == 2:
		return grid.Pos{X: at[0], Z: at[1]}, true, nil
	case len(at) == 3 && at[1] >= 0 && at[1] < MaxHeight:
		return grid.Pos{X: at[0], Y: at[1], Z: at[2]}, false, nil
	}
	return pos, false, notACorner(text)
}

// parseBox reads two corners.
func parseBox(from, to string) (grid.Box, error) {
	a, columns, err := parseCorner(from)
	b, alsoColumns, errB := parseCorner(to)
	if err := errors.Join(err, errB); err != nil {
		return grid.Box{}, err
	}
	if columns != alsoColumns {
		return grid.Box{}, notice.New("unlike_corners", "write both corners as X,Z, or both as X,Y,Z")
	}
	box := grid.Box{
		Min: grid.Pos{X: min(a.X, b.X), Y: min(a.Y, b.Y), Z: min(a.Z, b.Z)},
		Max: grid.Pos{X: max(a.X, b.X), Y: max(a.Y, b.Y), Z: max(a.Z, b.Z)},
	}
	if columns {
		box.Max.Y = MaxHeight - 1
	}
	x, y, z := box.Sides()
	if min(x, y, z) < MinClaimSide {
		return grid.Box{}, notice.New("small_claim", "a claim is at least {least} blocks wide, long and high", MinClaimSide)
	}
	if max(x, z) > MaxClaimSide {
		return grid.Box{}, notice.New("large_claim", "a claim is at most {most} blocks wide and long", MaxClaimSide)
	}
	return box, nil
}

// claimLimits returns how many claims a player may have, and their area.
func claimLimits(s *State, role Role) (count int, area int64) {
	if role.of != nil && role.of.Claims != nil {
		return role.of.Claims.Count, role.of.Claims.Area
	}
	count, area = s.settings.Claims, s.settings.ClaimArea
	if role.AtLeast(Moderator) {
		count, area = count*moderatorClaims, area*moderatorClaims
	}
	return count, area
}

// checkLimits returns why a player may not have one more claim.
func checkLimits(s *State, owner player.ID, box grid.Box) error {
	role := s.roleOf(owner, false)
	most, mostArea := claimLimits(s, role)
	own := s.claims.Of(owner)
	area := areaOf(box)
	for _, it := range own {
		area += areaOf(it.Box)
	}
	switch {
	case len(own) >= most:
		return notice.New("many_claims", "the role {role} may have {most} {most:claim|claims}: {count} {count:exists|exist} already", role, most, len(own))
	case area > mostArea:
		return notice.New("much_claimed", "the role {role} may claim {most} columns of blocks in all: with this claim it would be {area}", role, mostArea, area)
	}
	return nil
}

func claimThere(label string) error {
	return notice.New("claim_there", "there is a claim {claim} already: choose another name", label)
}

// addable returns why a claim cannot be added: others are in its place, or have its name, or there are too many.
func addable(s *State, c *Claim) error {
	if err := player.CheckName(c.Name); err != nil {
		return notice.New("bad_claim_name", "\"{text}\" is no name of a claim: use 1 to {most} letters, digits, _ and -", c.Name, player.MaxName)
	}
	if s.claims.named(c.Owner, c.Name) != nil {
		return claimThere(s.LabelOf(c))
	}
	if there := s.claims.overlapping(c.Box); there != nil {
		return notice.New("part_claimed", "a part of that is claimed: {claim}, from {from} to {to}", s.LabelOf(there), there.Min, there.Max)
	}
	if s.claims.Count() >= MaxClaims {
		return notice.New("claims_full", "this world has {count} claims, and takes no more", MaxClaims)
	}
	return nil
}

// checkPublic returns an error if a box contains a place where players are brought.
func checkPublic(s *State, box grid.Box) error {
	if at := s.settings.Spawn; at != nil && box.Contains(*at) {
		return notice.New("spawn_not_claimable", "only moderators claim the place where new players start")
	}
	for _, name := range s.warps.Names() {
		if box.Contains(s.warps[name]) {
			return notice.New("warp_not_claimable", "only moderators claim the place of the warp {warp}", name)
		}
	}
	return nil
}

// claimLand adds a claim: CORNER CORNER [NAME].
func claimLand(s *State, by author, args []string, at int64) (func() Effect, error) {
	switch {
	case by.role == operator:
		return nil, notice.New("only_players_claim", "only players claim land")
	case len(args) < 2:
		return nil, notice.New("claim_corners", "write two corners, as in /claim 10,20 30,40 harbour; in the browser, /claim harbour lets you click at them")
	case len(args) > 3:
		return nil, ErrUsage
	case s.NameOf(by.id) == "":
		return nil, notice.New("register_first", "register your name first, by /register: others see whose claim it is")
	}
	box, err := parseBox(args[0], args[1])
	if err != nil {
		return nil, err
	}
	c := &Claim{Owner: by.id, Box: box, At: max(at, by.entered)}
	if len(args) == 3 {
		c.Name = args[2]
	}
	for n := 1; c.Name == ""; n++ {
		if name := strconv.Itoa(n); s.claims.named(by.id, name) == nil {
			c.Name = name
		}
	}
	if !by.role.AtLeast(Moderator) {
		if err := checkPublic(s, box); err != nil {
			return nil, err
		}
	}
	if err := checkLimits(s, by.id, box); err != nil {
		return nil, err
	}
	if err := addable(s, c); err != nil {
		return nil, err
	}
	if s.settings.ApproveClaims && !by.role.AtLeast(Moderator) {
		return s.request(by, c.At, c)
	}
	return func() Effect {
		c.Number = s.nextNumber(at)
		s.changeClaims(nil, c)
		x, _, z := box.Sides()
		return Effect{Text: notice.New("claimed", "The claim {claim} is yours: {x} × {z} blocks. /trust {claim} PLAYER lets others build in it.", c.Name, x, z)}
	}, nil
}

// claimOf returns the claim that a command names: NAME, of the author, or PLAYER/NAME.
func claimOf(s *State, by author, text string) (*Claim, error) {
	owner, name := by.id, text
	if who, of, other := strings.Cut(text, "/"); other {
		target, err := s.targetOf(who)
		if err != nil {
			return nil, err
		}
		owner, name = target.Player, of
	}
	if c := s.claims.named(owner, name); c != nil {
		return c, nil
	}
	return nil, notice.New("no_claim", "there is no claim {claim}: /claims lists yours", text)
}

func claimNotYours(label string) error {
	return notice.New("claim_not_yours", "the claim {claim} is not yours", label)
}

// ownClaim returns the claim that a command names, if it is the author's. Operators own all.
func ownClaim(s *State, by author, text string) (*Claim, error) {
	c, err := claimOf(s, by, text)
	if err == nil && c.Owner != by.id && by.role != operator {
		err = claimNotYours(s.LabelOf(c))
	}
	return c, err
}

// unclaim removes a claim.
func unclaim(s *State, by author, args []string, _ int64) (func() Effect, error) {
	if len(args) != 1 {
		return nil, ErrUsage
	}
	c, err := claimOf(s, by, args[0])
	switch {
	case err != nil:
		return nil, err
	case c.Owner != by.id && !by.role.AtLeast(Moderator):
		return nil, claimNotYours(s.LabelOf(c))
	case c.Owner != by.id:
		err = s.outranks(by, sanction.Target{Player: c.Owner})
	}
	return func() Effect {
		done := notice.New("unclaimed", "The land of {claim} is free again.", s.LabelOf(c))
		s.changeClaims(c, nil)
		return Effect{Text: done}
	}, err
}

// keyOwner returns the player or service that a command names, of which it is known that they have a key: guests are
// nobody for long.
func keyOwner(s *State, by author, text string) (player.ID, error) {
	target, err := s.targetOf(text)
	if err != nil {
		return player.ID{}, err
	}
	m := s.members[target.Player]
	keyed := by.role == operator || m != nil && m.seq != 0 || s.services[target.Player] != nil // which give no commands
	if target.Player == (player.ID{}) || !keyed {
		return player.ID{}, notice.New("name_without_key", "no player with a key has registered the name {name}: a page does so when its player first builds, writes or claims land", text)
	}
	return target.Player, nil
}

// trust adds a member to a claim.
func trust(s *State, by author, args []string, _ int64) (func() Effect, error) {
	if len(args) != 2 {
		return nil, ErrUsage
	}
	c, err := ownClaim(s, by, args[0])
	if err != nil {
		return nil, err
	}
	who, err := keyOwner(s, by, args[1])
	already := who == c.Owner || slices.Contains(c.Members, who)
	switch {
	case err != nil:
		return nil, err
	case already && by.role != operator: // a restore may enter a command twice
		return nil, notice.New("trusted_already", "the player {name} may build there already", s.PlayerLabel(who))
	case len(c.Members) >= MaxClaimMembers && !already:
		return nil, notice.New("many_members", "a claim has at most {most} members", MaxClaimMembers)
	}
	return func() Effect {
		if fresh := *c; !already {
			fresh.Members = append(slices.Clone(c.Members), who)
			s.changeClaims(c, &fresh)
		}
		return Effect{Text: notice.New("trusted", "{name} may build in {claim}.", s.PlayerLabel(who), s.LabelOf(c))}
	}, nil
}

// untrust removes a member from a claim.
func untrust(s *State, by author, args []string, _ int64) (func() Effect, error) {
	if len(args) != 2 {
		return nil, ErrUsage
	}
	c, err := ownClaim(s, by, args[0])
	if err != nil {
		return nil, err
	}
	target, err := s.targetOf(args[1])
	if err != nil {
		return nil, err
	}
	at := slices.Index(c.Members, target.Player)
	if at < 0 {
		return nil, notice.New("no_member", "the claim {claim} has no member {name}", s.LabelOf(c), args[1])
	}
	return func() Effect {
		fresh := *c
		fresh.Members = slices.Delete(slices.Clone(c.Members), at, at+1)
		s.changeClaims(c, &fresh)
		return Effect{Text: notice.New("untrusted", "{name} is no member of {claim} any more.", s.nameOf(target), s.LabelOf(c))}
	}, nil
}

// flagClaim changes what all players may do in a claim.
func flagClaim(s *State, by author, args []string, _ int64) (func() Effect, error) {
	if len(args) != 3 || args[2] != "all" && args[2] != "members" {
		return nil, ErrUsage
	}
	c, err := ownClaim(s, by, args[0])
	if err != nil {
		return nil, err
	}
	fresh := *c
	all := args[2] == "all"
	switch args[1] {
	case "build":
		fresh.Open = all
	case "enter":
		fresh.Private = !all
	default:
		return nil, ErrUsage
	}
	switch {
	case fresh.Open == c.Open && fresh.Private == c.Private && by.role != operator: // a restore may enter a command twice
		return nil, notice.New("flagged_already", "that is so already in {claim}", s.LabelOf(c))
	case fresh.Private && !c.Private && !by.role.AtLeast(Moderator):
		if err := checkPublic(s, c.Box); err != nil {
			return nil, err
		}
	}
	return func() Effect {
		s.changeClaims(c, &fresh)
		return Effect{Text: flagged(args[1] == "build", all, s.LabelOf(c))}
	}, nil
}

// flagged returns what all players, or only members, may do in a claim: build, or enter it.
func flagged(build, all bool, label string) notice.Notice {
	switch {
	case build && all:
		return notice.New("open_to_build", "All players may build in {claim}.", label)
	case build:
		return notice.New("closed_to_build", "Only members may build in {claim}.", label)
	case all:
		return notice.New("open_to_enter", "All players may enter {claim}.", label)
	}
	return notice.New("closed_to_enter", "Only members may enter {claim}.", label)
}

// transfer makes another player the owner of a claim.
func transfer(s *State, by author, args []string, _ int64) (func() Effect, error) {
	if len(args) != 2 {
		return nil, ErrUsage
	}
	c, err := ownClaim(s, by, args[0])
	if err != nil {
		return nil, err
	}
	to, err := keyOwner(s, by, args[1])
	if err != nil {
		return nil, err
	}
	name := s.NameOf(to)
	switch {
	case to == c.Owner:
		return nil, notice.New("theirs_already", "the claim {claim} is theirs already", s.LabelOf(c))
	case name == "", s.services[to] != nil:
		return nil, notice.New("transfer_to_registered", "claims are given to players who have registered their names")
	case s.claims.named(to, c.Name) != nil:
		return nil, claimThere(name + "/" + c.Name)
	}
	if err := checkLimits(s, to, c.Box); err != nil {
		return nil, notice.New("transfer_refused", "the player {name} may not have that claim: {why}", name, wire.NoticeOf(err))
	}
	return func() Effect {
		fresh := *c
		fresh.Owner = to
		fresh.Members = slices.DeleteFunc(slices.Clone(c.Members), func(id player.ID) bool { return id == to })
		s.changeClaims(c, &fresh)
		return Effect{Text: notice.New("transferred", "The claim {claim} is {name}'s now.", c.Name, name)}
	}, nil
}

// claimCommands returns commands that make the same claims in another policy.
func claimCommands(s *State) (all []string) {
	s.claims.All(func(c *Claim) {
		all = append(all, fmt.Sprintf("land %v %s %s %d", c.Owner, c.Name, corners(c.Box), c.Number))
		name := c.Owner.String() + "/" + c.Name
		for _, id := range c.Members {
			all = append(all, fmt.Sprintf("trust %s %v", name, id))
		}
		if c.Open {
			all = append(all, fmt.Sprintf("flag %s build all", name))
		}
		if c.Private {
			all = append(all, fmt.Sprintf("flag %s enter members", name))
		}
	})
	return all
}

// importClaim takes over a claim of another policy: ID NAME CORNER CORNER [NUMBER]. The restored land has the mark of
// the number.
func importClaim(s *State, _ author, args []string, at int64) (func() Effect, error) {
	if len(args) != 4 && len(args) != 5 {
		return nil, ErrUsage
	}
	number := int64(0)
	if len(args) == 5 {
		var err error
		if number, err = strconv.ParseInt(args[4], 10, 64); err != nil || number < 0 {
			return nil, notAMark(args[4])
		}
	}
	owner, err := player.ParseID(args[0])
	box, errBox := parseBox(args[2], args[3])
	c := &Claim{Owner: owner, Name: args[1], Box: box, Used: true}
	if err := errors.Join(err, errBox); err != nil {
		return nil, err
	}
	if there := s.claims.named(owner, c.Name); there != nil && there.Box == box { // a restore may enter a command twice
		return func() Effect {
			return Effect{Text: notice.New("imported_already", "{what} is taken over already.", s.LabelOf(there))}
		}, nil
	}
	return func() Effect {
		c.Number = number
		if s.numbered = max(s.numbered, number); number == 0 {
			c.Number = s.nextNumber(at)
		}
		s.changeClaims(nil, c)
		return imported(s.LabelOf(c))
	}, addable(s, c)
}
