package raftgroup

import "github.com/voxelpopuli/voxeld/replica/raftlog"

// Status describes a group as seen from this node.
type Status struct {
	Term    uint64
	Leader  string     // peer; "" while unknown
	Self    bool       // this node leads, according to the newest Leadership delivered
	Last    uint64     // index of the last entry in this node's log
	Commit  uint64     // entries up to here are known to be safe
	Applied uint64     // the owner has applied the entries up to here
	Lost    bool       // a leader counts on entries that this member has acknowledged, and does not have: its storage was put back
	Members []Progress // by ascending replica id
}

// Progress is how far a member has come. Only the leader knows Match, Active and Snapshotting; elsewhere they are zero.
// They are as of the last tick.
type Progress struct {
	raftlog.Member
	Match        uint64 // entries up to here are on the member's disk
	Active       bool   // a message arrived within the election timeout; always true of the leader itself
	Snapshotting bool   // it lags behind the start of the log: a snapshot is being sent, or is due
}

// basicStatus is the part of Status that is updated at every step.
type basicStatus struct {
	term, last, commit, applied uint64
	leader                      string
	lost, conflict              bool
}

// contact records when messages of each member arrived.
type contact struct {
	ticks     uint64            // since Open
	lastHeard map[uint64]uint64 // replica id → ticks at its newest message
}

func (c *contact) record(id uint64) {
	if c.lastHeard == nil {
		c.lastHeard = make(map[uint64]uint64)
	}
	c.lastHeard[id] = c.ticks
}

// within reports whether a message of the member arrived in the last ticks.
func (c *contact) within(id, ticks uint64) bool {
	at, known := c.lastHeard[id]
	return known && c.ticks-at <= ticks
}
