package backups

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/voxelpopuli/voxeld/internal/backup"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/integrity"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// This file decides which copy of a group has everything that was acknowledged before its members were asked. It is pure.
//
// An edit is acknowledged when its entry is on the disks of a majority of the voters, and such an entry never leaves a log. So it is on at
// least half of the voters' disks, also if one of them has just become a voter. If a majority answers, no acknowledged entry has a higher
// index than the last ones of as many of their logs as make half of the voters together with those that do not answer, and a copy that has
// applied its log up to there has them all. It needs no leader, so hibernating regions need not wake. If members were changed meanwhile,
// the copy has another configuration than the one whose majority answered, and they are asked again.
//
// Who the voters are, no single member decides: they are those that the catalog lists, or of a configuration that most of these name.

// plan is how a group is read.
type plan struct {
	info    nodemsg.Region    // as the catalog lists it
	members []nodemsg.Replica // of the configuration whose majority answered; an id that is not known is 0
	epoch   uint64            // of that configuration
	known   uint64            // recoveries of the group
	index   uint64            // the copy must have the log up to here
	voters  int
	sources []string        // peers with a copy, the best one first
	named   []string        // peers that an answer names as members: they are asked, too, if the group cannot be read
	alone   []string        // peers that name a later configuration, which most of the others do not
	voucher *backup.Voucher // of the catalog, if an issuer among its members has signed who they are
	empty   bool            // the region was founded and never opened: nothing was ever acknowledged
	lost    string          // why it is not certain what was acknowledged; empty if it is
	awake   bool
}

// answer is one member's status.
type answer struct {
	peer string
	nodemsg.RegionStatus
}

func (a answer) usable() bool {
	return a.Epoch > 0 && (a.State == nodemsg.StateOpen || a.State == nodemsg.StateClosed || a.State == nodemsg.StateQuarantined)
}

// neverOpened reports whether the member has had no copy. One that had a copy may have voted for what no other member that answers has.
func (a answer) neverOpened() bool { return a.State == nodemsg.StateNone && !a.Forgotten }

// members returns the members that it names, in the order of their ids.
func (a answer) members() []nodemsg.Replica {
	var all []nodemsg.Replica
	for _, m := range a.Members {
		all = append(all, m.Replica)
	}
	slices.SortFunc(all, func(a, b nodemsg.Replica) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// peers returns the peer ids of the members that it names.
func (a answer) peers() []string {
	all := make([]string, len(a.Members))
	for i, m := range a.Members {
		all[i] = m.Replica.Peer
	}
	return all
}

// voucherOf returns what an issuer has signed of a status of the catalog.
func voucherOf(s nodemsg.RegionStatus) *backup.Voucher {
	v := backup.Voucher{Voucher: *s.Voucher}
	for _, m := range s.Members {
		v.Members = append(v.Members, m.Replica)
	}
	return &v
}

// planGroup decides by what the members have answered. Self is preferred among equals. Vouched reports whether an issuer has signed a
// status of the catalog.
func planGroup(self string, info nodemsg.Region, s integrity.StatusPoll, vouched func(nodemsg.RegionStatus) bool) plan {
	p := plan{info: info, members: listedMembers(info), epoch: info.Epoch}
	var all, usable []answer
	for _, peer := range slices.Sorted(maps.Keys(s.Statuses)) {
		status, answered := s.Of(peer, info.ID)
		if !answered {
			continue
		}
		a := answer{peer, status}
		if all = append(all, a); a.usable() {
			usable = append(usable, a)
		}
		p.awake = p.awake || a.State == nodemsg.StateOpen && a.Leader == a.peer
	}
	p.choose(usable, vouched)
	p.known = actor.ConfigurationOf(p.epoch).Recovered
	for _, a := range usable {
		if a.Epoch == p.epoch && p.has(a.peers()) && info.ID == world.CatalogID && vouched(a.RegionStatus) {
			p.voucher = voucherOf(a.RegionStatus)
		}
	}
	lasts, none := p.count(all)
	if answered := len(lasts); answered > 0 {
		p.index = lasts[max((p.voters+1)/2-(p.voters-answered), 1)-1]
	}
	p.sortSources(self, s)
	switch {
	case 2*none > p.voters:
		p.empty = true
	case len(usable) == 0:
		p.lost = "no copy of it could be read"
	case 2*len(lasts) <= p.voters:
		p.lost = fmt.Sprintf("%d of its %d members answered: what only the others have is missing", len(lasts), p.voters)
		for _, peer := range p.alone {
			p.lost = fmt.Sprintf("%s; %s names members that the catalog does not list", p.lost, peer)
			if !slices.Contains(p.sources, peer) {
				p.sources = append(p.sources, peer) // rather than nothing
			}
		}
	}
	return p
}

// count finds the sources among the voters. It returns the last indexes of those that count, the highest first, and how many of them have
// never opened the group.
func (p *plan) count(all []answer) (lasts []uint64, none int) {
	for _, m := range p.members {
		if m.Learner {
			continue
		}
		p.voters++
		for _, a := range all {
			switch {
			case a.peer != m.Peer:
			case a.usable() && a.Recovered == p.known && (m.ID == 0 || a.Replica == m.ID):
				lasts = append(lasts, a.Last)
				p.sources = append(p.sources, a.peer)
			case a.neverOpened() && p.epoch == actor.FirstEpoch:
				lasts = append(lasts, 0) // it has voted for nothing
				none++
			}
		}
	}
	slices.Sort(lasts)
	slices.Reverse(lasts)
	return lasts, none
}

// sortSources puts the leader first, then the copies that have applied most.
func (p *plan) sortSources(self string, s integrity.StatusPoll) {
	rank := func(peer string) (leads, own bool, applied uint64) {
		status, _ := s.Of(peer, p.info.ID)
		return status.State == nodemsg.StateOpen && status.Leader == peer, peer == self, status.Applied
	}
	slices.SortStableFunc(p.sources, func(a, b string) int {
		leadsA, ownA, appliedA := rank(a)
		leadsB, ownB, appliedB := rank(b)
		return cmp.Or(compareTrue(leadsA, leadsB), cmp.Compare(appliedB, appliedA), compareTrue(ownA, ownB))
	})
}

// choose finds the newest configuration that most of the voters listed name; or of the catalog one after a recovery, if an issuer has signed it.
// If there is none, it is the one listed.
func (p *plan) choose(usable []answer, vouched func(nodemsg.RegionStatus) bool) {
	slices.SortStableFunc(usable, func(a, b answer) int { return cmp.Compare(b.Epoch, a.Epoch) })
	recovered := actor.ConfigurationOf(p.info.Epoch).Recovered
	listed, chosen := p.members, false
	for _, a := range usable {
		for _, m := range a.members() {
			if !actor.HasMember(p.info, m.Peer) && !slices.Contains(p.named, m.Peer) && len(p.named) < wire.MaxMembers {
				p.named = append(p.named, m.Peer)
			}
		}
		if chosen || a.Epoch < p.info.Epoch {
			continue
		}
		since := actor.ConfigurationOf(a.Epoch).Recovered
		switch {
		case since == recovered && agreed(a, usable, listed), p.info.ID == world.CatalogID && since > recovered && vouched(a.RegionStatus):
			p.epoch, p.members, chosen = a.Epoch, a.members(), true
		case a.Epoch > p.info.Epoch:
			p.alone = append(p.alone, a.peer)
		}
	}
}

// agreed reports whether most of the voters name the same configuration.
func agreed(a answer, usable []answer, members []nodemsg.Replica) bool {
	voters, votes := 0, 0
	for _, m := range members {
		if m.Learner {
			continue
		}
		voters++
		if slices.ContainsFunc(usable, func(b answer) bool {
			return b.peer == m.Peer && b.Epoch == a.Epoch && slices.Equal(b.members(), a.members())
		}) {
			votes++
		}
	}
	return 2*votes > voters
}

// listedMembers returns the members that the catalog lists. The first ones are numbered.
func listedMembers(info nodemsg.Region) []nodemsg.Replica {
	all := make([]nodemsg.Replica, len(info.Members))
	for i, m := range info.Members {
		all[i] = nodemsg.Replica{ID: m.Replica, Peer: m.Peer, Learner: m.Learner}
		if m.Replica == 0 && info.Epoch == actor.FirstEpoch {
			all[i].ID = uint64(i) + 1
		}
	}
	return all
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

// unchanged returns the group as the base has it, if nothing was acknowledged since.
func (p plan) unchanged(base map[uint64]Known) (backup.Group, bool) {
	known, there := base[p.info.ID]
	if !there || p.lost != "" || p.empty || known.Position.Recovered != p.known || known.Position.Index != p.index {
		return backup.Group{}, false
	}
	return backup.Group{
		ID: p.info.ID, Cell: p.info.Cell, Position: known.Position, Members: p.peers(), Epoch: p.epoch, Same: &known.Sum,
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

// peers returns the peer ids of the members.
func (p plan) peers() []string {
	all := make([]string, len(p.members))
	for i, m := range p.members {
		all[i] = m.Peer
	}
	return all
}

// has reports whether these are the peer ids of the members.
func (p plan) has(members []string) bool {
	own := p.peers()
	slices.Sort(own)
	return slices.Equal(own, slices.Sorted(slices.Values(members)))
}

func peers(info nodemsg.Region) []string {
	all := make([]string, len(info.Members))
	for i, m := range info.Members {
		all[i] = m.Peer
	}
	return all
}
