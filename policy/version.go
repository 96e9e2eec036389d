package policy

import (
	"slices"
	"strings"

	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// Needs returns the version of nodes that understands an act with the text, and what earlier ones do not know; 0 if all that know acts do.
func Needs(text string) (version int, what string) {
	words := strings.Fields(text)
	switch {
	case len(words) > 3 && strings.EqualFold(words[0], "role") && words[1] == createRole:
		return nodemsg.VersionRoles, "roles of your own"
	case len(words) > 1 && strings.EqualFold(words[0], "revert") && strings.Contains(words[1], ","):
		return nodemsg.VersionPlayers, "rollbacks of several players"
	case len(words) > 1 && strings.EqualFold(words[0], "set") && words[1] == "quota":
		return nodemsg.VersionQuotas, "quotas"
	case len(words) > 1 && strings.EqualFold(words[0], "set") && (words[1] == "approval" || words[1] == "expiry"):
		return nodemsg.VersionQuotas, words[1]
	case len(words) > 0 && (strings.EqualFold(words[0], seenCommand) || strings.EqualFold(words[0], ExpireCommand)):
		return nodemsg.VersionQuotas, "names and claims that expire"
	case len(words) == 6 && strings.EqualFold(words[0], "land"), len(words) == 2 && strings.EqualFold(words[0], numberedCommand):
		return nodemsg.VersionMarks, "the marks of claims"
	}
	return 0, ""
}

// Needed returns the newest version that an act, of which something is left, has needed.
func (s *State) Needed() int {
	switch {
	case s.expiring > 0 || len(quotaCommands(s.settings))+len(keepingCommands(s.settings)) > 0:
		return nodemsg.VersionQuotas
	case slices.ContainsFunc(s.rollbacks, func(r Rollback) bool { return len(r.Players) > 1 }):
		return nodemsg.VersionPlayers
	case len(s.roles.Defined()) > 0:
		return nodemsg.VersionRoles
	}
	return 0
}
