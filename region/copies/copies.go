// Package copies decides what a node does with its copy of a region, or of the catalog: from what is stored here, what
// the catalog lists, what the other members say, and what failed here. Each decision has a reason, which the log, the
// status, doctor and the metrics give.
//
// It is a step machine: no goroutine, lock, clock or logger. Package region/integrity finds the facts and carries out
// the decisions.
package copies

// Facts are what is known of a copy. The zero value is a sound copy of which nobody was asked.
type Facts struct {
	Stored  Stored
	Members Members
	Peers   Peers
	Failed  Failed
	Limit   Limit
}

// Stored is what is stored here.
type Stored uint8

// What may be stored here.
const (
	Sound      Stored = iota // nothing is known to be wrong. So is a copy that is yet to be made
	Unreadable               // the log, the vote or the land cannot be read, or a row near them
	Earlier                  // the node's data was put back to an earlier state: the copy has forgotten what it has promised
	Lacking                  // the leader counts on entries that the copy lacks
	Missing                  // the node's data was put back to a state from before it became a member: there is no copy
	stored                   // how many there are
)

// Members is what the catalog lists as members.
type Members uint8

// Whom the catalog may list.
const (
	Others  Members = iota // this node and others
	Alone                  // this node only
	Unknown                // the copy here names no others, and the catalog does not answer
	members
)

// Peers is what the other members say of the copy.
type Peers uint8

// What the other members may say.
const (
	Unasked Peers = iota // too few have answered
	Agree                // most have answered, and none says that the group continues without this copy
	Claim                // one says so, and nothing confirms it
	Without              // most voters say so, or the catalog, or of the catalog an issuer (docs/adr/0051)
	peers
)

// Failed is what failed here.
type Failed uint8

// What may have failed here; see Failures.
const (
	Works      Failed = iota
	Pausing           // it failed, and is opened again after a pause
	Repeatedly        // it failed too often, and was not released since
	failed
)

// Limit is why the copy cannot be replaced.
type Limit uint8

// Why a copy may not be replaceable.
const (
	NoLimit  Limit = iota
	TooOften       // it was replaced MostReplaced times within ReplacedWithin
	Broken         // the structure of the node's file is damaged: a new copy would be, too
	limits
)

// Action is what a node does with a copy.
type Action uint8

// The actions. A copy is opened only to serve; one that is open with a damaged log, or lacks entries, runs until it is
// removed.
const (
	Serve   Action = iota // it is opened when it is needed; raft decides whether it leads or follows
	Wait                  // for now
	Replace               // the others remove its replica, then it is deleted, and a new one joins
	Drop                  // it is deleted: the group continues without it
	Ask                   // an operator decides
)

var actions = [...]string{"serve", "wait", "replace", "drop", "ask"}

func (a Action) String() string { return actions[a] }

// Decision is what a node does with a copy, and why.
type Decision struct {
	Action Action
	Reason Reason
}

// Opens reports whether the copy may be opened.
func (d Decision) Opens() bool { return d.Action == Serve }

// Decide returns what to do with a copy.
func Decide(f Facts) Decision { return Table[row(f)].Decision }

// row returns the index of the first row of the table that matches.
func row(f Facts) int {
	for i := range Table {
		if Table[i].matches(f) {
			return i
		}
	}
	panic("the last row matches everything")
}
