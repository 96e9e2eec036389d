package policy

import (
	"slices"
	"strings"

	"github.com/voxelpopuli/voxeld/mod"
	"github.com/voxelpopuli/voxeld/policy/sanction"
)

// Command is a command of the chat, and of operators.
type Command struct {
	Name  string
	Group string // one of Groups
	Usage string // its arguments
	Help  string
	Role  Role // the lowest role that may use it
	// Example shows its use by an operator, without the name of the program.
	Example string
	// Hidden means that no list has it: another command proposes it.
	Hidden bool
	// Local means that the player's gateway answers it: it changes no policy.
	Local bool

	// quota is what the command takes of the quota of its player's address; Free means AnyCommand, unless it is local.
	quota Kind
	// run checks the command of an author, and returns what carries it out. Nil for local ones.
	run func(s *State, by author, args []string, at int64) (do func() Effect, err error)
}

// MayUse reports whether its players may use a command.
func (r Role) MayUse(c Command) bool {
	if r.of == nil || c.Role == operator && r != operator || slices.Contains(r.of.Deny, c.Name) {
		return false
	}
	return r.AtLeast(c.Role) || slices.Contains(r.of.Allow, c.Name)
}

// Groups are the groups of commands that players may use, in the order in which they are listed. None has the name of
// such a command: /help explains either.
var Groups = []string{groupTalk, groupMove, groupBuild, groupLand, groupModeration, groupAdmin}

const (
	groupTalk       = "talk"
	groupMove       = "move"
	groupBuild      = "build"
	groupLand       = "land"
	groupModeration = "moderation"
	groupAdmin      = "admin"
)

var commands = []Command{
	{
		Name: "help", Group: groupTalk, Usage: "[" + strings.Join(Groups, "|") + " | COMMAND]", Role: None, Local: true,
		Help: "list the commands that you may use, or explain some",
	},
	{
		Name: "who", Group: groupTalk, Role: None, Local: true,
		Help: "list who plays, on your node and on others",
	},
	{
		Name: "world", Group: groupTalk, Usage: "TEXT", Role: Visitor, Local: true,
		Help: "write a line that all players of the world read",
	},
	{
		Name: "me", Group: groupTalk, Usage: "TEXT", Role: Visitor, Local: true,
		Help: "say what you do: those near you read it after your name",
	},
	{
		Name: "msg", Group: groupTalk, Usage: "NAME TEXT", Role: Visitor, Local: true,
		Help: "write a line that only that player reads",
	},
	{
		Name: "r", Group: groupTalk, Usage: "TEXT", Role: Visitor, Local: true,
		Help: "answer whom you exchanged the last such line with",
	},
	{
		Name: "spawn", Group: groupMove, Role: Visitor, Local: true,
		Help: "go back to where new players start",
	},
	{
		Name: "home", Group: groupMove, Role: Visitor, Local: true,
		Help: "go to the place that you have set with /sethome",
	},
	{
		Name: "sethome", Group: groupMove, Role: Visitor, Local: true,
		Help: "make the place where you stand your home",
	},
	{
		Name: "warp", Group: groupMove, Usage: "NAME", Role: Visitor, Local: true,
		Help: "go to a place that /warps lists",
	},
	{
		Name: "warps", Group: groupMove, Role: Visitor, Local: true,
		Help: "list the places that /warp leads to",
	},
	{
		Name: "time", Group: groupMove, Role: None, Local: true,
		Help: "show the time of day in the world",
	},
	{
		Name: "visit", Group: groupMove, Usage: "X Y Z", Role: Visitor, Local: true,
		Help: "go to the place of a link, once after joining",
	},
	{
		Name: "tp", Group: groupMove, Usage: "NAME | X Y Z", Role: Moderator, Local: true,
		Help: "go to a player, or to a place",
	},
	{
		Name: "inspect", Group: groupBuild, Usage: "X,Y,Z [X,Y,Z [UNTIL [SKIP]]]", Role: Builder, Local: true,
		Help: "show who changed a block; with two corners, the page shows what happened between them",
	},
	{
		Name: "rollback", Group: groupBuild, Usage: "PLAYER[,PLAYER…] TIME [RADIUS | X,Y,Z X,Y,Z]", Role: Builder, Local: true,
		Help: "preview undoing changes of players since a TIME, such as 2h: around you, between two corners, or wherever they are; builders in their own claims. Also as player:eve player:bob time:2h radius:50",
	},
	{
		Name: "rollbacks", Group: groupBuild, Role: Builder, Local: true,
		Help: "list the last rollbacks",
	},
	{
		Name: "revert", Group: groupBuild, Usage: "PLAYERS SINCE X,Y,Z X,Y,Z", Role: Builder, Hidden: true, run: limitedAtEntry(revert),
		Help: "order the rollback that /rollback has previewed: since a time, in seconds since 1970",
	},
	{
		Name: "undo", Group: groupBuild, Usage: "[NUMBER]", Role: Builder, run: limitedAtEntry(undo),
		Help:    "undo a rollback, your last one if you name none; undoing that again redoes it",
		Example: "undo 3",
	},
	{
		Name: "pause", Group: groupBuild, Usage: "[NUMBER]", Role: Builder, run: limitedAtEntry(control(paused, func(r *Rollback) { r.Paused = true })),
		Help:    "pause a rollback; later ones in the same land wait for it",
		Example: "pause 3",
	},
	{
		Name: "resume", Group: groupBuild, Usage: "[NUMBER]", Role: Builder, run: limitedAtEntry(control(resumed, func(r *Rollback) { r.Paused = false })),
		Help:    "let a paused rollback go on",
		Example: "resume 3",
	},
	{
		Name: "abort", Group: groupBuild, Usage: "[NUMBER]", Role: Builder, run: limitedAtEntry(control(aborted, func(r *Rollback) { r.Aborted = true })),
		Help:    "end a rollback for good",
		Example: "abort 3",
	},
	{
		Name: "register", Group: groupLand, Role: Visitor, run: registerName, quota: NewName,
		Help: "register your name to your key, so that nobody else can use it",
	},
	{
		Name: "claims", Group: groupLand, Usage: "[PLAYER]", Role: Visitor, Local: true,
		Help: "list your claims, or those of a player, and the one where you stand; as a CLAIM write eve/castle, or castle if it is yours",
	},
	{
		Name: "claim", Group: groupLand, Usage: "[NAME] | CORNER CORNER [NAME]", Role: Builder, run: limited(claimLand), quota: NewClaim,
		Help: "keep land for you and those you trust: click at two corners, or write them as X,Z or, for a box, as X,Y,Z",
	},
	{
		Name: "unclaim", Group: groupLand, Usage: "CLAIM", Role: Builder, run: limited(unclaim),
		Help:    "give up a claim; moderators name that of another player as PLAYER/NAME",
		Example: "unclaim eve/castle",
	},
	{
		Name: "trust", Group: groupLand, Usage: "CLAIM PLAYER", Role: Builder, run: limited(trust),
		Help: "let a player build in your claim, and enter it",
	},
	{
		Name: "untrust", Group: groupLand, Usage: "CLAIM PLAYER", Role: Builder, run: limited(untrust),
		Help: "let a player build in your claim no longer",
	},
	{
		Name: "flag", Group: groupLand, Usage: "CLAIM build|enter all|members", Role: Builder, run: limited(flagClaim),
		Help: "set whether all players, or only members, may build in your claim, or enter it",
	},
	{
		Name: "transfer", Group: groupLand, Usage: "CLAIM PLAYER", Role: Builder, run: limited(transfer),
		Help: "give your claim to another player",
	},
	{
		Name: "requests", Group: groupLand, Role: Visitor, Local: true,
		Help: "list the names and claims that wait for a moderator: moderators all, players theirs",
	},
	{
		Name: "approve", Group: groupModeration, Usage: "NUMBER", Role: Moderator, run: approve,
		Help:    "give a player the name or the claim that they have requested",
		Example: "approve 3",
	},
	{
		Name: "deny", Group: groupModeration, Usage: "NUMBER", Role: Moderator, run: deny,
		Help:    "refuse a player the name or the claim that they have requested",
		Example: "deny 3",
	},
	{
		Name: "bans", Group: groupModeration, Role: Moderator, Local: true,
		Help: "list the bans and mutes in force",
	},
	{
		Name: "kick", Group: groupModeration, Usage: "NAME [REASON]", Role: Moderator, run: impose(sanction.Kick),
		Help:    "disconnect a player",
		Example: "kick eve spamming",
	},
	{
		Name: "ban", Group: groupModeration, Usage: "NAME [TIME] [REASON]", Role: Moderator, run: impose(sanction.Ban),
		Help:    "exclude a player, an address or a network, for a TIME as 30m, 2h or 7d or for good",
		Example: "ban eve 7d griefing\n  voxeld ban 203.0.113.0/24",
	},
	{
		Name: "pardon", Group: groupModeration, Usage: "NAME", Role: Moderator, run: lift(sanction.Ban, sanction.Kick),
		Help:    "lift a ban",
		Example: "pardon eve",
	},
	{
		Name: "mute", Group: groupModeration, Usage: "NAME [TIME] [REASON]", Role: Moderator, run: impose(sanction.Mute),
		Help:    "keep a player from chatting",
		Example: "mute eve 30m",
	},
	{
		Name: "unmute", Group: groupModeration, Usage: "NAME", Role: Moderator, run: lift(sanction.Mute),
		Help:    "lift a mute",
		Example: "unmute eve",
	},
	{
		Name: "say", Group: groupModeration, Usage: "TEXT", Role: Moderator, run: say,
		Help:    "show a line to all players of the world",
		Example: "say The server restarts in five minutes",
	},
	{
		Name: "roles", Group: groupAdmin, Role: Visitor, Local: true,
		Help: "list the players who have a role, and the roles that admins have defined",
	},
	{
		Name: "owner", Group: groupAdmin, Usage: "TOKEN", Role: None, run: takeOwnership,
		Help: "become an owner, with the token that voxeld owner prints",
	},
	{
		Name: "role", Group: groupAdmin, Usage: roleUsage, Role: Admin, run: role,
		Help:    "give a player a role: visitor, builder, moderator, admin or owner; with none they may not join; or define a role above one of these",
		Example: "role ada moderator\n  voxeld role create helper builder allow=kick,mute",
	},
	{
		Name: "release", Group: groupAdmin, Usage: "NAME", Role: Admin, run: releaseName,
		Help:    "free a registered name, such as that of a player who has lost their key",
		Example: "release ada",
	},
	{
		Name: "set", Group: groupAdmin, Role: Admin, run: set,
		Usage:   "players|guests|message|border|edits|bulk|floodban|original|claims|quota|approval|expiry|textures VALUE",
		Help:    "set what players without a role of their own may do, or guests; what players read when they join; where the world ends; how many blocks a second a role may change, and how many by bulk edits; how much land a builder may claim; for how long who floods the chat is banned; how many names and claims an address, a range or a gateway may add a day; whether new names or claims wait for a moderator; for how long those are kept that are not used; whether VoxelPopuli's own clients may play; which textures pages show",
		Example: "set guests visitor\n  voxeld set message Welcome! Be kind.\n  voxeld set border 2000",
	},
	{
		Name: "setspawn", Group: groupAdmin, Usage: "[X Y Z]", Role: Admin, run: setSpawn,
		Help:    "make the place where you stand, or another one, the one where new players start",
		Example: "setspawn -- 120 64 -30",
	},
	{
		Name: "setwarp", Group: groupAdmin, Usage: "NAME [X Y Z]", Role: Admin, run: setWarp,
		Help:    "let /warp lead to the place where you stand, or to another one",
		Example: "setwarp market -- 120 64 -30",
	},
	{
		Name: "delwarp", Group: groupAdmin, Usage: "NAME", Role: Admin, run: deleteWarp,
		Help:    "delete a warp",
		Example: "delwarp market",
	},
	{
		Name: seenCommand, Usage: "GATEWAY TIME SALT", Role: Visitor, Hidden: true, run: seen,
		Help: "say that a player has come back, as their gateway does",
	},
	{
		Name: ExpireCommand, Role: operator, run: expire,
		Help: "end names, claims and requests that were not used, as operators' nodes do by themselves",
	},
	{
		Name: mod.GrantCommand, Usage: "NAME HASH [events=KIND,…] [blocks=BLOCK,…|all] [area=BOX|all] [rate=COUNT] [off]", Role: operator, run: grant,
		Help: "grant a mod what it may do, as voxeld mod add and voxeld mod set do",
	},
	{
		Name: mod.RevokeCommand, Usage: "NAME", Role: operator, run: revoke,
		Help: "remove a mod, as voxeld mod remove does",
	},
	{
		Name: "token", Usage: "HASH", Role: operator, run: addToken,
		Help: "accept a new token for /owner",
	},
	{
		Name: "service", Usage: serviceUsage, Role: operator, run: service,
		Help: "give a program a key, or take it back, as voxeld service does",
	},
	{
		Name: "member", Usage: "ID SEQ ROLE [NAME]", Role: operator, run: importMember,
		Help: "take over a player from a backup",
	},
	{
		Name: "sanction", Usage: "KIND TARGET AT UNTIL BY [REASON]", Role: operator, run: importSanction,
		Help: "take over a ban or mute from a backup",
	},
	{
		Name: "land", Usage: "ID NAME CORNER CORNER", Role: operator, run: importClaim,
		Help: "take over a claim from a backup",
	},
	{
		Name: numberedCommand, Usage: "NUMBER", Role: operator, run: importNumber,
		Help: "count rollbacks and claims on from a backup",
	},
}

// find returns the command with the name.
func find(table []Command, name string) (Command, bool) {
	i := slices.IndexFunc(table, func(c Command) bool { return c.Name == strings.ToLower(name) })
	if i < 0 {
		return Command{}, false
	}
	return table[i], true
}

// Local returns the command that a text begins with, and the rest of the text, if the player's gateway answers it.
func Local(text string) (c Command, rest string, local bool) {
	name, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	c, known := find(commands, name)
	return c, strings.TrimSpace(rest), known && c.Local
}

// Known reports whether a text is of a command that there is, whoever may use it.
func Known(text string) bool {
	name, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	_, known := find(commands, name)
	return known
}

// For lists the commands that a role may use.
func For(r Role) (all []Command) {
	for _, c := range commands {
		if r.MayUse(c) && !c.Hidden {
			all = append(all, c)
		}
	}
	return all
}

// ForOperators returns the commands of operators that change the policy.
func ForOperators() []Command {
	return slices.DeleteFunc(For(operator), func(c Command) bool { return c.Example == "" })
}
