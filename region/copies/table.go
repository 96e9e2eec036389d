package copies

// Row is a row of the table.
type Row struct {
	When string // for people
	Decision
	matches func(Facts) bool
}

// Table is the decisions. The first row that matches counts.
var Table = []Row{
	{
		"most voters, the catalog, or of the catalog an issuer, say that the group continues without it",
		Decision{Drop, Superseded},
		func(f Facts) bool { return f.Peers == Without },
	},
	{
		"its node's data was put back, and it is the only copy",
		Decision{Serve, RolledBackAlone},
		func(f Facts) bool { return f.Stored == Earlier && f.Members == Alone },
	},
	{
		"it must not be used, and who else has one is not known",
		Decision{Wait, MembersUnknown},
		func(f Facts) bool { return f.Stored != Sound && f.Members == Unknown },
	},
	{
		"it must not be used, and is the only copy",
		Decision{Ask, OnlyCopy},
		func(f Facts) bool { return f.Stored != Sound && f.Members == Alone },
	},
	{
		"it must not be used, and the structure of the node's file is damaged",
		Decision{Ask, FileDamaged},
		func(f Facts) bool { return f.Stored != Sound && f.Limit == Broken },
	},
	{
		"it must not be used, and was replaced three times within a day",
		Decision{Ask, ReplacedTooOften},
		func(f Facts) bool { return f.Stored != Sound && f.Limit == TooOften },
	},
	{
		"its log, vote or land cannot be read",
		Decision{Replace, Damaged},
		func(f Facts) bool { return f.Stored == Unreadable },
	},
	{
		"its node's data was put back to an earlier state",
		Decision{Replace, RolledBack},
		func(f Facts) bool { return f.Stored == Earlier },
	},
	{
		"the leader counts on entries that it lacks",
		Decision{Replace, Forgetful},
		func(f Facts) bool { return f.Stored == Lacking },
	},
	{
		"its node's data was put back to a state without it",
		Decision{Replace, Lost},
		func(f Facts) bool { return f.Stored == Missing },
	},
	{
		"it failed twice here within ten minutes (six times, if the disk refused to write), and was not released since",
		Decision{Ask, Quarantined},
		func(f Facts) bool { return f.Failed == Repeatedly },
	},
	{
		"it has just failed here",
		Decision{Wait, Failure},
		func(f Facts) bool { return f.Failed == Pausing },
	},
	{
		"nothing is known to be wrong with it",
		Decision{Serve, InOrder},
		func(Facts) bool { return true },
	},
}

// Reason is why a node does something with a copy.
type Reason uint8

// The reasons, in the order of the table.
const (
	Superseded Reason = iota
	RolledBackAlone
	MembersUnknown
	OnlyCopy
	FileDamaged
	ReplacedTooOften
	Damaged
	RolledBack
	Forgetful
	Lost
	Quarantined
	Failure
	InOrder
	reasons
)

// texts are the reasons' names, and what an operator does about them.
var texts = [reasons]struct{ name, do string }{
	Superseded:       {"superseded", ""},
	RolledBackAlone:  {"rolled_back_alone", "what was built since the earlier state is lost; look for a newer backup"},
	MembersUnknown:   {"members_unknown", "see that most of the catalog's members run"},
	OnlyCopy:         {"only_copy", "put it back from a backup: voxeld region recover CELL --from FILE"},
	FileDamaged:      {"file_damaged", "stop this node, and start it with an empty data directory and --join: the others bring it what they have"},
	ReplacedTooOften: {"replaced_too_often", "look for disk errors; then start this node with an empty data directory, on another disk, and --join"},
	Damaged:          {"damaged", "nothing while most other members run: they bring a new copy. Look for disk errors"},
	RolledBack:       {"rolled_back", "nothing while most other members run: they bring a new copy; start those that are down"},
	Forgetful:        {"forgetful", "nothing while most other members run: they bring a new copy"},
	Lost:             {"lost", "nothing while most other members run: they bring a new copy"},
	Quarantined:      {"quarantined", "look for \"region isolated\" in the log; run another version, or try it again: voxeld region release CELL"},
	Failure:          {"failed", "nothing: it is opened again by itself"},
	InOrder:          {"in_order", ""},
}

// String returns the reason's name: a label of the metrics, and an entry of the runbook.
func (r Reason) String() string { return texts[r].name }

// Do returns what an operator does about it, or "". CELL stands for the region.
func (r Reason) Do() string { return texts[r].do }
