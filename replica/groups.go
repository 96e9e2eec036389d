package replica

import (
	"maps"
	"slices"

	"github.com/voxelpopuli/voxeld/replica/raftgroup"
)

// hosted is an open replica, with what the host records of it. Owned by Host.Run.
type hosted struct {
	*raftgroup.Replica
	dirty, lazy bool // in committer.dirty, in committer.lazy
	ended       bool // closed or failed
	tickingAt   int  // its index in openGroups.ticking, from 1; 0: none
	lag         uint64
}

// openGroups are the groups that are open on this node. Owned by Host.Run.
type openGroups struct {
	input    *input // shows Receive which groups are open
	metrics  *metrics
	replicas map[uint64]*hosted
	ticking  clock  // replicas that need it: all but leaders without followers
	lag      uint64 // entries, over all groups
}

// get returns the replica of a group, nil if it is not open any more.
func (o *openGroups) get(g *Group) *hosted {
	if r := o.replicas[g.ID()]; r != nil && r.Group() == g {
		return r
	}
	return nil
}

// sorted returns the replicas by their groups' numbers, so that the same schedule has the same result.
func (o *openGroups) sorted() []*hosted {
	all := make([]*hosted, 0, len(o.replicas))
	for _, group := range slices.Sorted(maps.Keys(o.replicas)) {
		all = append(all, o.replicas[group])
	}
	return all
}

func (o *openGroups) add(r *hosted) {
	group := r.Group().ID()
	o.replicas[group] = r
	o.input.setOpen(group, r.Group())
}

func (o *openGroups) remove(r *hosted) {
	group := r.Group().ID()
	o.countLag(r, 0)
	delete(o.replicas, group)
	o.ticking.stop(r)
	o.input.setOpen(group, nil)
}

func (o *openGroups) countLag(r *hosted, lag uint64) {
	if lag == r.lag {
		return
	}
	o.lag += lag - r.lag
	r.lag = lag
	o.metrics.lag.Set(float64(o.lag))
}

// clock is the list of the replicas with ticks. It is a list because a map's order would differ from run to run.
type clock []*hosted

func (c *clock) start(r *hosted) {
	if r.tickingAt == 0 {
		*c = append(*c, r)
		r.tickingAt = len(*c)
	}
}

func (c *clock) stop(r *hosted) {
	if r.tickingAt == 0 {
		return
	}
	last := len(*c) - 1
	moved := (*c)[last]
	(*c)[r.tickingAt-1], moved.tickingAt = moved, r.tickingAt
	(*c)[last], r.tickingAt = nil, 0
	*c = (*c)[:last]
}
