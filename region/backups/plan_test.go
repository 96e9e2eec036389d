package backups

import (
	"slices"
	"testing"

	"github.com/voxelpopuli/voxeld/internal/backup"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/integrity"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// status is the answer of member number id of a group of three, a, b and c.
func status(id uint64, state nodemsg.RegionState, last, applied uint64) nodemsg.RegionStatus {
	s := nodemsg.RegionStatus{Region: 7, State: state, Last: last, Applied: applied, Epoch: actor.FirstEpoch, Replica: id}
	for i, peer := range []string{"a", "b", "c"} {
		s.Members = append(s.Members, nodemsg.MemberStatus{Replica: nodemsg.Replica{ID: uint64(i) + 1, Peer: peer}})
	}
	if state == nodemsg.StateNone {
		s = nodemsg.RegionStatus{Region: 7}
	}
	return s
}

func TestPlanGroup(t *testing.T) {
	info := nodemsg.Region{ID: 7, Epoch: actor.FirstEpoch, Members: []nodemsg.Member{{Peer: "a"}, {Peer: "b"}, {Peer: "c"}}}
	moved := info
	moved.Epoch = 20
	recovered := status(1, nodemsg.StateClosed, 30, 30)
	recovered.Recovered, recovered.Epoch, recovered.Members = 1, actor.EpochOf(actor.ConfigurationOf(1<<40+5)), recovered.Members[:1]
	leads := status(2, nodemsg.StateOpen, 12, 9)
	leads.Leader = "b"
	recoveredInfo := info
	recoveredInfo.Epoch, recoveredInfo.Members = recovered.Epoch, info.Members[:1]
	catalog := info
	catalog.ID = world.CatalogID
	signed, listed := recovered, status(1, nodemsg.StateClosed, 10, 10)
	signed.Voucher, listed.Voucher = &nodemsg.Voucher{}, &nodemsg.Voucher{}
	moved1 := status(3, nodemsg.StateClosed, 99, 99) // it says that it is the only member since a change
	moved1.Epoch, moved1.Members = 50, moved1.Members[2:]
	alone := status(3, nodemsg.StateClosed, 99, 99) // it says that it has always been
	alone.Members = alone.Members[2:]
	old := status(1, nodemsg.StateClosed, 99, 99)
	old.Replica = 9
	newMember := status(1, nodemsg.StateOpen, 12, 12)
	newMember.Members = append(slices.Clone(newMember.Members), nodemsg.MemberStatus{Replica: nodemsg.Replica{ID: 4, Peer: "d"}})
	newMember.Epoch = 11
	newMember2 := newMember
	newMember2.Replica = 2
	newMember3, newMember4 := newMember, newMember
	newMember3.Replica, newMember3.Last, newMember3.Applied = 3, 11, 11
	newMember4.Replica, newMember4.Last, newMember4.Applied = 4, 11, 11
	four := info
	four.Epoch, four.Members = 11, append(slices.Clone(info.Members), nodemsg.Member{Peer: "d"})
	forgotten := status(1, nodemsg.StateNone, 0, 0)
	forgotten.Forgotten = true
	const closed, failed, none = nodemsg.StateClosed, nodemsg.StateFailed, nodemsg.StateNone
	for name, c := range map[string]struct {
		info    nodemsg.Region
		answers map[string]nodemsg.RegionStatus
		index   uint64
		sources []string
		lost    bool
		empty   bool
		alone   []string
		voucher bool
	}{
		"one claims more than the others have":                {info, map[string]nodemsg.RegionStatus{"a": status(1, closed, 10, 10), "b": status(2, closed, 11, 10), "c": status(3, closed, 99, 10)}, 11, []string{"a", "b", "c"}, false, false, nil, false},
		"all hibernate":                                       {info, map[string]nodemsg.RegionStatus{"a": status(1, closed, 10, 10), "b": status(2, closed, 10, 10), "c": status(3, closed, 10, 10)}, 10, []string{"a", "b", "c"}, false, false, nil, false},
		"the longest log counts, the most applied serves":     {info, map[string]nodemsg.RegionStatus{"a": status(1, closed, 10, 10), "b": status(2, closed, 12, 8)}, 12, []string{"a", "b"}, false, false, nil, false},
		"the leader serves":                                   {info, map[string]nodemsg.RegionStatus{"a": status(1, closed, 10, 10), "b": leads}, 12, []string{"b", "a"}, false, false, nil, false},
		"one of three":                                        {info, map[string]nodemsg.RegionStatus{"c": status(3, closed, 10, 10)}, 10, []string{"c"}, true, false, nil, false},
		"a failed copy does not count":                        {info, map[string]nodemsg.RegionStatus{"a": status(1, closed, 10, 10), "b": status(2, failed, 50, 50)}, 10, []string{"a"}, true, false, nil, false},
		"one has never opened it":                             {info, map[string]nodemsg.RegionStatus{"a": status(1, closed, 10, 10), "b": status(2, none, 0, 0)}, 10, []string{"a"}, false, false, nil, false},
		"nobody has opened it":                                {info, map[string]nodemsg.RegionStatus{"a": status(1, none, 0, 0), "b": status(2, none, 0, 0)}, 0, nil, false, true, nil, false},
		"nobody has it, and it was had":                       {moved, map[string]nodemsg.RegionStatus{"a": status(1, none, 0, 0), "b": status(2, none, 0, 0), "c": status(3, none, 0, 0)}, 0, nil, true, false, nil, false},
		"one says it was never opened":                        {info, map[string]nodemsg.RegionStatus{"a": status(1, none, 0, 0)}, 0, nil, true, false, nil, false},
		"recovered without the others":                        {recoveredInfo, map[string]nodemsg.RegionStatus{"a": recovered, "b": status(2, closed, 40, 40), "c": status(3, closed, 40, 40)}, 30, []string{"a"}, false, false, nil, false},
		"the others are back":                                 {recoveredInfo, map[string]nodemsg.RegionStatus{"b": status(2, closed, 40, 40), "c": status(3, closed, 40, 40)}, 0, nil, true, false, nil, false},
		"one claims a recovery":                               {info, map[string]nodemsg.RegionStatus{"a": recovered, "b": status(2, closed, 40, 40), "c": status(3, closed, 40, 40)}, 40, []string{"b", "c"}, false, false, []string{"a"}, false},
		"it alone answers":                                    {info, map[string]nodemsg.RegionStatus{"a": recovered}, 0, []string{"a"}, true, false, []string{"a"}, false},
		"one claims a change":                                 {info, map[string]nodemsg.RegionStatus{"a": status(1, closed, 10, 10), "b": status(2, closed, 10, 10), "c": moved1}, 10, []string{"c", "a", "b"}, false, false, []string{"c"}, false},
		"and only it answers":                                 {info, map[string]nodemsg.RegionStatus{"c": moved1}, 99, []string{"c"}, true, false, []string{"c"}, false},
		"one of which another has never opened it":            {info, map[string]nodemsg.RegionStatus{"a": status(1, none, 0, 0), "c": alone}, 99, []string{"c"}, false, false, nil, false},
		"one opened what most never did":                      {info, map[string]nodemsg.RegionStatus{"a": status(1, none, 0, 0), "b": status(2, none, 0, 0), "c": alone}, 0, []string{"c"}, false, true, nil, false},
		"a change that most name":                             {info, map[string]nodemsg.RegionStatus{"a": newMember, "b": newMember2, "c": status(3, closed, 11, 11)}, 12, []string{"a", "b", "c"}, false, false, nil, false},
		"one who has just become a voter":                     {four, map[string]nodemsg.RegionStatus{"a": newMember, "b": newMember2, "c": newMember3, "d": newMember4}, 12, []string{"a", "b", "c", "d"}, false, false, nil, false},
		"the catalog":                                         {catalog, map[string]nodemsg.RegionStatus{"a": listed, "b": status(2, closed, 10, 10)}, 10, []string{"a", "b"}, false, false, nil, true},
		"a recovery of the catalog that an issuer has signed": {catalog, map[string]nodemsg.RegionStatus{"a": signed, "b": status(2, closed, 40, 40), "c": status(3, closed, 40, 40)}, 30, []string{"a"}, false, false, nil, true},
		"one that none has signed":                            {catalog, map[string]nodemsg.RegionStatus{"a": recovered, "b": status(2, closed, 40, 40), "c": status(3, closed, 40, 40)}, 40, []string{"b", "c"}, false, false, []string{"a"}, false},
		"one has forgotten its copy":                          {info, map[string]nodemsg.RegionStatus{"a": status(1, closed, 10, 10), "b": forgotten}, 10, []string{"a"}, true, false, nil, false},
		"all have forgotten it":                               {info, map[string]nodemsg.RegionStatus{"a": forgotten, "b": forgotten, "c": forgotten}, 0, nil, true, false, nil, false},
		"an earlier replica":                                  {info, map[string]nodemsg.RegionStatus{"a": old, "b": status(2, closed, 10, 10)}, 10, []string{"b"}, true, false, nil, false},
		"a member was added":                                  {info, map[string]nodemsg.RegionStatus{"a": newMember, "b": status(2, closed, 10, 10)}, 12, []string{"a", "b"}, false, false, []string{"a"}, false},
		"nobody answers":                                      {info, nil, 0, nil, true, false, nil, false},
	} {
		s := integrity.StatusPoll{Statuses: make(map[string]map[uint64]nodemsg.RegionStatus)}
		for peer, a := range c.answers {
			s.Statuses[peer] = map[uint64]nodemsg.RegionStatus{c.info.ID: a}
		}
		p := planGroup("a", c.info, s, func(s nodemsg.RegionStatus) bool { return s.Voucher != nil })
		if p.index != c.index || !slices.Equal(p.sources, c.sources) || (p.lost != "") != c.lost || p.empty != c.empty {
			t.Errorf("%s: index %d, sources %v, lost %q, empty %v", name, p.index, p.sources, p.lost, p.empty)
		}
		if !slices.Equal(p.alone, c.alone) || (p.voucher != nil) != c.voucher {
			t.Errorf("%s: %v are contradicted, voucher %+v", name, p.alone, p.voucher)
		}
		if name == "a member was added" && !slices.Contains(p.named, "d") {
			t.Error("the new member is not asked next")
		}
		if _, same := p.unchanged(map[uint64]Known{c.info.ID: {Position: backup.Position{Index: p.index, Recovered: p.known + 1}}}); same {
			t.Errorf("%s: unchanged since a state with another number of recoveries", name)
		}
		base := map[uint64]Known{c.info.ID: {Position: backup.Position{Index: 10}}}
		if _, same := p.unchanged(base); same != (c.index == 10 && !c.lost) {
			t.Errorf("%s: unchanged: %v", name, same)
		}
	}
}
