package placement

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/balance"
	"github.com/voxelpopuli/voxeld/region/membership"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// replaceTime bounds how long a busy member is being replaced, and replacePoll is the pause between two steps of it.
const (
	replaceTime = time.Minute
	replacePoll = time.Second
)

// Load returns how busy this node is; nil if that is not known.
func (sv *Supervisor) Load() *nodemsg.Load { return sv.meter.Load() }

// balance measures the load, and begins a move if this node is too busy and another is not.
func (sv *Supervisor) balance(groups []Group) {
	now := time.Now()
	open := sv.InUse()
	sv.meter.sample(open, len(groups), now)
	self, known := sv.meter.node(sv.Self, now)
	if !known {
		return
	}
	sv.metrics.busy.Set(self.Busy)
	if !sv.Balance.Shed || sv.Leaves() || self.Share() <= balance.Hot || sv.moving.Load() || !sv.meter.ready(now) || !sv.pace.Ready(self.Busy, now) {
		return
	}
	byID := make(map[uint64]Group, len(groups))
	for _, w := range groups {
		byID[w.ID] = w
	}
	leaders := leadersOf(open)
	var regions []balance.Region
	for _, u := range open {
		w, led := byID[u.ID]
		if !led || u.ID == world.CatalogID || !sv.pace.MayShed(u.ID, now) {
			continue
		}
		r := balance.Region{ID: u.ID, Load: sv.meter.region(u.ID), Beside: sv.meter.beside(u.Cell, leaders)}
		if status := w.Raft.Status(); sv.ledFor(w.ID, status.Term) >= balance.Settled {
			r.Members, r.Spares = sv.targets(w, status, r.Load, now)
			regions = append(regions, r)
		}
	}
	if move := balance.Decide(self, regions); move.Kind != balance.None {
		sv.begin(byID[move.Region], move, self.Busy, now)
	}
}

// targets returns the members that could lead the group, and the node that could become a member instead of one: the nearest that has room.
// Any other would lose its place to that one.
func (sv *Supervisor) targets(w Group, status replica.Status, load float64, now time.Time) (members, spares map[string]balance.Node) {
	members, spares = make(map[string]balance.Node), make(map[string]balance.Node)
	states := sv.memberStates(w, status)
	for _, m := range states {
		if n, known := sv.meter.node(m.Peer, now); known && m.Peer != sv.Self && m.MayLead() && !m.Impaired() {
			members[m.Peer] = n
		}
	}
	size, nearest := sv.nearestOf(w, status)
	if len(states) < size {
		return members, nil
	}
	for _, peer := range nearest[:min(size+balance.Spare, len(nearest))] {
		isMember := slices.ContainsFunc(states, func(m membership.Member) bool { return m.Peer == peer })
		if n, known := sv.meter.node(peer, now); known && !isMember && n.HasRoom(load) {
			spares[peer] = n
			break
		}
	}
	return members, spares
}

// begin makes a move, in a task of its own.
func (sv *Supervisor) begin(w Group, move balance.Move, busy float64, now time.Time) {
	if !sv.BeginChange(w.ID) {
		return
	}
	sv.moving.Store(true)
	started := sv.Tasks.Start(func(ctx context.Context) {
		defer sv.moving.Store(false)
		defer sv.EndChange(w.ID)
		ctx, cancel := context.WithTimeout(ctx, replaceTime)
		defer cancel()
		err := sv.move(ctx, w, move)
		result := "done"
		if err != nil {
			result = "failed"
			sv.Logger.Info("region not moved to a less busy node", "group", w.ID, "kind", move.Kind.String(), "peer", move.To, "error", err)
		} else {
			sv.Logger.Info("region moved to a less busy node", "group", w.ID, "kind", move.Kind.String(), "peer", move.To,
				"cores", move.Load, "busy", busy)
		}
		sv.metrics.moves.WithLabelValues(move.Kind.String(), result).Inc()
		sv.metrics.moveSeconds.Add(time.Since(now).Seconds())
	})
	if !started {
		sv.moving.Store(false)
		sv.EndChange(w.ID)
		return
	}
	sv.pace.Moved(move, busy, now)
}

// move makes a move, unless the region is being split or merged.
func (sv *Supervisor) move(ctx context.Context, w Group, move balance.Move) error {
	l := sv.Regions.Loaded(w.ID)
	if l == nil {
		return actor.ErrNotHere
	}
	if _, structure, err := actor.StructureOf(ctx, l); err != nil {
		return err
	} else if structure.RefusesEdits() {
		return errors.New("it is being split or merged")
	}
	if move.Kind == balance.Lead {
		return sv.Transfer(ctx, w, move.To)
	}
	return sv.replace(ctx, w, move.Out, move.To)
}

// replace replaces a busy member of a group by the node in, the nearest that has room, which then leads.
func (sv *Supervisor) replace(ctx context.Context, w Group, out, in string) error {
	sv.meter.shift(w.ID, out)
	defer sv.meter.shift(w.ID, "")
	for slices.ContainsFunc(w.Raft.Status().Members, func(m replica.Progress) bool { return m.Peer == out }) {
		sv.reconcile(ctx, w)
		select {
		case <-ctx.Done():
			return errUnsettled
		case <-sv.leaving:
			return errUnsettled
		case <-time.After(replacePoll):
		}
	}
	return sv.Transfer(ctx, w, in)
}
