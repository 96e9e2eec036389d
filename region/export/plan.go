package export

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/voxelpopuli/voxeld/backup"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/integrity"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// This file decides which copy of a group has everything that was acknowledged before its members were asked. It is pure.
//
// An edit is acknowledged when its entry is on the disks of a majority of the voters, and such an entry never leaves a log. So if a
// majority answers, the highest of their last indexes is not below the index of any acknowledged entry, and a copy that has applied
// its log up to there has them all. It needs no leader, so hibernating regions need not wake. The majority must be one of the
// configuration that the copy then has: if members were changed meanwhile, the new ones are asked.

// plan is how a group is read.
type plan struct {
	info    nodemsg.Region
	epoch   uint64   // of the configuration whose majority answered
	known   uint64   // recoveries of the group
	index   uint64   // the copy must have the log up to here
	sources []string // peers with a copy, the best one first
	empty   bool     // the region was founded and never opened: nobody has a copy
	lost    string   // why it is not certain what was acknowledged; empty if it is
	awake   bool
}

// answer is one member's status.
type answer struct {
	peer string
	nodemsg.RegionStatus
}

func (a answer) usable() bool {
	return a.State == nodemsg.StateOpen || a.State == nodemsg.StateClosed || a.State == nodemsg.StateQuarantined
}

// neverOpened reports whether the member has had no copy. One that had a copy may have voted for what no other member that answers has.
func (a answer) neverOpened() bool { return a.State == nodemsg.StateNone && !a.Forgotten }

// planGroup decides by what the members have answered. Self is preferred among equals.
func planGroup(self string, info nodemsg.Region, s integrity.StatusPoll) plan {
	p := plan{info: info}
	var all, usable []answer
	for peer := range s.Statuses {
		if status, answered := s.Of(peer, info.ID); answered {
			all = append(all, answer{peer, status})
		}
	}
	newest := func(a, b answer) int {
		return cmp.Or(cmp.Compare(b.Recovered, a.Recovered), cmp.Compare(b.Epoch, a.Epoch))
	}
	for _, a := range all {
		if a.usable() && a.Epoch > 0 {
			usable = append(usable, a)
		}
		p.awake = p.awake || a.State == nodemsg.StateOpen && a.Leader == a.peer
	}
	slices.SortFunc(usable, newest)
	if len(usable) == 0 {
		return p.withoutCopy(all)
	}
	best := usable[0]
	p.epoch, p.known = best.Epoch, best.Recovered
	voters, answered := 0, 0
	for _, m := range best.Members {
		p.info.Members = withMember(p.info.Members, m.Replica)
		if m.Replica.Learner {
			continue
		}
		voters++
		for _, a := range all {
			if a.peer != m.Replica.Peer {
				continue
			}
			switch {
			case a.usable() && a.Recovered == best.Recovered && a.Replica == m.Replica.ID:
				answered++
				p.index = max(p.index, a.Last)
				p.sources = append(p.sources, a.peer)
			case a.neverOpened() && best.Epoch == actor.FirstEpoch:
				answered++ // so it has voted for nothing
			}
		}
	}
	rank := func(peer string) (leads, own bool, applied uint64) {
		status, _ := s.Of(peer, info.ID)
		return status.State == nodemsg.StateOpen && status.Leader == peer, peer == self, status.Applied
	}
	slices.SortStableFunc(p.sources, func(a, b string) int {
		leadsA, ownA, appliedA := rank(a)
		leadsB, ownB, appliedB := rank(b)
		return cmp.Or(compareTrue(leadsA, leadsB), cmp.Compare(appliedB, appliedA), compareTrue(ownA, ownB))
	})
	if 2*answered <= voters {
		p.lost = fmt.Sprintf("%d of its %d members answered: what only the others have is missing", answered, voters)
	}
	return p
}

// withoutCopy is the plan for a group of which no member that answered has a copy.
func (p plan) withoutCopy(all []answer) plan {
	none := 0
	for _, a := range all {
		if a.neverOpened() && actor.HasMember(p.info, a.peer) {
			none++
		}
	}
	if p.info.Epoch == actor.FirstEpoch && 2*none > len(p.info.Members) {
		p.empty = true
		return p
	}
	p.lost = "no copy of it could be read"
	return p
}

func compareTrue(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// withMember adds a member that is not in the list. Only its peer id counts.
func withMember(members []nodemsg.Member, m nodemsg.Replica) []nodemsg.Member {
	if slices.ContainsFunc(members, func(there nodemsg.Member) bool { return there.Peer == m.Peer }) {
		return members
	}
	return append(slices.Clip(members), nodemsg.Member{Peer: m.Peer, Replica: m.ID, Learner: m.Learner})
}

// unchanged returns the group as the base has it, if nothing was acknowledged since.
func (p plan) unchanged(base map[uint64]Known) (backup.Group, bool) {
	known, there := base[p.info.ID]
	if !there || p.lost != "" || p.empty || known.Position.Recovered != p.known || known.Position.Index != p.index {
		return backup.Group{}, false
	}
	return backup.Group{
		ID: p.info.ID, Cell: p.info.Cell, Position: known.Position, Members: peers(p.info), Epoch: p.epoch, Same: &known.Sum,
	}, true
}

// founded returns a region that was founded and never opened.
func (p plan) founded() []backup.Record {
	g := backup.Group{
		ID: p.info.ID, Cell: p.info.Cell, Epoch: p.info.Epoch, Members: peers(p.info),
		Position: backup.Position{Index: replica.FoundingIndex, Term: replica.FoundingTerm, Next: uint64(len(p.info.Members)) + 1},
	}
	records := []backup.Record{{Group: &g}}
	rows := backup.NewRowsWriter(func(r backup.Record) error {
		records = append(records, r)
		return nil
	})
	_ = rows.Close() // emit never fails
	return records
}

func peers(info nodemsg.Region) []string {
	all := make([]string, len(info.Members))
	for i, m := range info.Members {
		all[i] = m.Peer
	}
	return all
}
