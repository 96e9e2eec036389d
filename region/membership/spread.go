package membership

import "slices"

// Spread is the number of members of a group near whose key at least that many operators run nodes: each member is
// another operator's, so that two operators together are not the majority (docs/adr/0074).
const Spread = 5

// Choose returns how many members a group should have, of which at least copies are wanted, and which nodes can be
// members: all of nearest, or if the group has Spread members, the nearest of each operator. A group that has them
// keeps its size while members of all but one of their operators are among nearest, and the last place is that of the
// member that is away, so that a node that comes and goes changes nothing: four of five can lose one more. Nearest
// lists the live nodes, nearest to the key first, and voters the members with a vote, if the group exists. Operator
// returns who runs a node; "" if that is not known. If fewer than three copies are wanted, or more than Spread, or no
// operator is known, the group has that many.
func Choose(copies int, voters, nearest []string, operator func(peer string) string) (size int, able []string) {
	if copies < 3 || copies > Spread {
		return copies, nearest
	}
	isVoter := func(peer string) bool { return slices.Contains(voters, peer) }
	seen := make(map[string]bool)
	unknown := 0 // members whose operator is not known
	for _, peer := range nearest {
		switch name := operator(peer); {
		case name != "" && !seen[name]:
			seen[name] = true
			able = append(able, peer)
		case name == "" && isVoter(peer):
			unknown++
			able = append(able, peer)
		}
	}
	if len(seen) == 0 { // an open world
		return copies, nearest
	}
	if len(seen) >= Spread {
		return Spread, able
	}
	if !spread(copies, voters, nearest, operator) || len(seen)+unknown < Spread-1 {
		return copies, nearest
	}
	for _, peer := range voters { // the member that is away keeps its place
		if !slices.Contains(nearest, peer) && !seen[operator(peer)] && len(able) < Spread {
			able = append(able, peer)
		}
	}
	return Spread, able
}

// spread reports whether the group has members of Spread operators. A member whose operator is not known counts as one
// of another operator, unless it is away and the group would have that many members anyway: it may be a second node of
// one of the others, and is replaced.
func spread(copies int, voters, nearest []string, operator func(peer string) string) bool {
	distinct := make(map[string]bool)
	for _, peer := range voters {
		switch name := operator(peer); {
		case name != "":
			distinct[name] = true
		case copies < Spread || slices.Contains(nearest, peer):
			distinct["\x00"+peer] = true // no operator's name
		}
	}
	return len(distinct) >= Spread
}
