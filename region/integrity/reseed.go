package integrity

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/region/placement"
	"github.com/voxelpopuli/voxeld/region/succession"
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// This file replaces a copy whose log, vote or land cannot be read, or that was put back to an earlier state (docs/adr/0024). Such a
// copy is never opened again under its replica id, because its promises to the group are lost. Instead its node asks the region's
// leader to remove its replica from the group. Then the node deletes the copy, leaves a tombstone, and joins like any other node: as a
// learner, under a new replica id, with a snapshot. If there are no other members, the copy stays as it is, for an operator.

const (
	// reseedEvery is the pause between two attempts to have a damaged copy replaced.
	reseedEvery = 5 * time.Second
	// reseedTime bounds one attempt.
	reseedTime = 20 * time.Second
	// maxReseeds bounds how often a region's copy is replaced within reseedsWithin. If it is damaged once more, the file
	// itself is broken in a way that rewriting does not repair, and only another file helps.
	maxReseeds, reseedsWithin = 3, 24 * time.Hour
)

// Reseeder has damaged copies replaced.
type Reseeder struct {
	Node

	Supervisor *placement.Supervisor
	Judge      *succession.Judge
	Damages    *Damages
	// OpenMember returns the group of a region, possibly the catalog, that this node is a member of, as far as it knows, and loads it
	// first if necessary.
	OpenMember func(ctx context.Context, id uint64) (placement.Group, error)
	Records    directory.Records
	// Replaced is called when the copy of a group is discarded, or used after all: it is not outdated any more.
	Replaced func(group uint64) error
	// ReopenCatalog opens the catalog again, whose copy is used after all.
	ReopenCatalog func(ctx context.Context) error
}

var errHopeless = errors.New("the file is damaged beyond repair: stop this node, and start it with an " +
	"empty data directory and --join; the others bring it what they have")

// structured is a Storage that can check whether a new copy in it would be damaged as well.
type structured interface{ CheckStructure() error }

// MarkCorrupt has a damaged copy replaced. Why describes the damage.
func (r *Reseeder) MarkCorrupt(info nodemsg.Region, why error) {
	r.Damages.mu.Lock()
	_, known := r.Damages.mu.corrupt[info.ID]
	if !known {
		r.Damages.mu.corrupt[info.ID] = corruptCopy{info: info, why: why, since: time.Now()}
		r.Damages.count()
	}
	r.Damages.mu.Unlock()
	if !known {
		r.Logger.Error("this node's copy of a region is not used", "region", info.ID, "cell", Name(info),
			"members", len(info.Members), "error", why)
	}
}

// Clear records that this node's copy of a region was replaced.
func (d *Damages) Clear(id uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.mu.corrupt, id)
	d.count()
}

// DamagedLog handles the finding of a scrub that an open group's log or vote cannot be read from disk. The group still has both
// in memory, so it continues until another replica has replaced this one.
func (r *Reseeder) DamagedLog(ctx context.Context, l *actor.Land, why error) {
	if info, err := l.Info(ctx); err == nil {
		r.MarkCorrupt(info, why)
	}
}

// reseeds are when the copies of regions were replaced, the last maxReseeds times at most.
type reseeds map[uint64][]time.Time

// allow reports whether a region's copy may be replaced once more. It forgets what was before reseedsWithin.
func (r reseeds) allow(id uint64) bool {
	lately := slices.DeleteFunc(r[id], func(at time.Time) bool { return time.Since(at) >= reseedsWithin })
	if r[id] = lately; len(lately) == 0 {
		delete(r, id)
	}
	return len(lately) < maxReseeds
}

// Run has damaged copies replaced until ctx ends.
func (r *Reseeder) Run(ctx context.Context) {
	every := time.NewTicker(reseedEvery)
	defer every.Stop()
	logged := make(map[uint64]bool)
	replaced := make(reseeds)
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		r.Damages.mu.Lock()
		all := make([]corruptCopy, 0, len(r.Damages.mu.corrupt))
		for _, c := range r.Damages.mu.corrupt {
			all = append(all, c)
		}
		r.Damages.mu.Unlock()
		slices.SortFunc(all, func(a, b corruptCopy) int { return cmp.Compare(a.info.ID, b.info.ID) }) // the catalog has the members of the others
		for _, c := range all {
			var err error
			if replaced.allow(c.info.ID) {
				err = r.reseedOrKeep(ctx, c)
			} else {
				err = errHopeless
			}
			if errors.Is(err, errOnlyCopy) {
				delete(logged, c.info.ID)
				continue
			}
			if err == nil {
				replaced[c.info.ID] = append(replaced[c.info.ID], time.Now())
				delete(logged, c.info.ID)
				r.Damages.Clear(c.info.ID)
				r.Metrics.discarded.WithLabelValues(c.reason()).Inc()
				r.Logger.Warn("unusable copy discarded; waiting for a new one from the other members", "region", c.info.ID, "cell", Name(c.info))
				continue
			}
			if ctx.Err() == nil && !logged[c.info.ID] {
				logged[c.info.ID] = true
				r.Logger.Error("unusable copy not replaced yet", "region", c.info.ID, "cell", Name(c.info), "error", err)
			}
		}
	}
}

// Reseed has this node's replica removed from the group, and deletes it.
func (r *Reseeder) Reseed(ctx context.Context, info nodemsg.Region) error {
	ctx, cancel := context.WithTimeout(ctx, reseedTime)
	defer cancel()
	if s, ok := r.Storage.(structured); ok {
		if err := s.CheckStructure(); err != nil {
			return fmt.Errorf("%w: %w", errHopeless, err)
		}
	}
	damaged := replicaOf(info, r.Self.Peer)
	if r.replacedSince(info.ID, damaged) {
		return r.Replaced(info.ID)
	}
	own, sure := r.ownPosition(info)
	if known, err := r.newest(ctx, info); err == nil {
		info = known
		own.Replica = max(own.Replica, replicaOf(info, r.Self.Peer))
	}
	if l := r.Regions.Loaded(info.ID); l != nil && l.Raft().Status().Self {
		heir := r.Supervisor.Successor(r.Regions.GroupOf(l))
		if heir == "" {
			return errors.New("no other member can lead it")
		}
		if err := l.Raft().Transfer(heir); err != nil {
			return err
		}
		if err := placement.AwaitGroup(ctx, func() bool { return !l.Raft().Status().Self }); err != nil {
			return err
		}
	}
	id, err := r.requestRemoval(ctx, info, own)
	if err != nil {
		return err
	}
	if sure {
		id = own.Replica // whatever the answer says: a tombstone with a later id would keep this node out of the group
	}
	if r.replacedSince(info.ID, max(id, damaged)) {
		return r.Replaced(info.ID) // it was invited again before this answer arrived
	}
	if open := r.openActor(info.ID); open != nil {
		open.Remove(true)
		if err := waitFor(ctx, open.Done()); err != nil {
			return err
		}
	}
	return r.discard(info, max(id, damaged))
}

// newest returns the members of a region, or of the catalog, according to the other nodes.
func (r *Reseeder) newest(ctx context.Context, info nodemsg.Region) (nodemsg.Region, error) {
	if info.ID == world.CatalogID {
		return r.Directory.NewestCatalog(ctx)
	}
	return r.Directory.ByID(ctx, info.ID)
}

// errOnlyCopy means that there is no other copy.
var errOnlyCopy = errors.New("there is no other copy")

// reseedOrKeep has a copy replaced. An outdated copy that is the only one is used after all: nobody has what it has forgotten.
func (r *Reseeder) reseedOrKeep(ctx context.Context, c corruptCopy) error {
	if !errors.Is(c.why, errOutdated) || len(c.info.Members) > 1 {
		return r.Reseed(ctx, c.info)
	}
	asking, cancel := context.WithTimeout(ctx, reseedTime)
	defer cancel()
	info, err := r.newest(asking, c.info)
	switch {
	case err != nil:
		return fmt.Errorf("find the other members: %w", err)
	case len(info.Members) != 1 || info.Members[0].Peer != r.Self.Peer:
		return r.Reseed(ctx, c.info)
	}
	if err := r.useOld(ctx, c.info); err != nil {
		return err
	}
	return errOnlyCopy
}

// useOld uses an outdated copy after all, because nobody has what it has forgotten.
func (r *Reseeder) useOld(ctx context.Context, info nodemsg.Region) error {
	if err := r.Replaced(info.ID); err != nil {
		return err
	}
	r.Damages.Clear(info.ID)
	r.Logger.Warn("the data of this node was put back to an earlier state, and no newer copy of the region is left: what was built "+
		"since then is lost", "region", info.ID, "cell", Name(info))
	if info.ID == world.CatalogID { // regions are opened when they are needed
		return r.ReopenCatalog(ctx)
	}
	return nil
}

// replicaOf returns the replica id of a member according to the region, or 0.
func replicaOf(info nodemsg.Region, peer string) uint64 {
	for i, m := range info.Members {
		if m.Peer == peer {
			return cmp.Or(m.Replica, uint64(i)+1) // the first members are numbered
		}
	}
	return 0
}

// replacedSince reports whether this node's copy is of a later replica than the damaged one: the leader removed that one and
// invited this node again, but its answer was lost. The sound copy must not be discarded instead, since the group relies on its
// promises.
func (r *Reseeder) replacedSince(id, damaged uint64) bool {
	if damaged == 0 {
		return false
	}
	if l := r.Regions.Loaded(id); l != nil {
		return actor.OwnReplica(l.Raft(), r.Self.Peer) > damaged
	}
	if c := r.Regions.Catalog(); id == world.CatalogID && c != nil {
		return actor.OwnReplica(c.Raft(), r.Self.Peer) > damaged
	}
	p, err := r.Replicas.Position(id)
	return err == nil && p.Replica > damaged
}

// ownPosition returns the replica of this node, and the members of its group: those of the open group, else what is stored, else what info says.
// Sure means that this is its last replica: its copy can be read, and the data was not put back.
func (r *Reseeder) ownPosition(info nodemsg.Region) (own replica.Position, sure bool) {
	if open := r.openActor(info.ID); open != nil && open.Raft() != nil {
		own = replica.Position{Replica: actor.OwnReplica(open.Raft(), r.Self.Peer), Members: open.Raft().Configuration()}
		return own, own.Replica != 0
	}
	if own, err := r.Replicas.Position(info.ID); err == nil && own.Members.Index != 0 {
		return own, own.Replica != 0 && !r.Damages.Old(info.ID)
	}
	return r.Judge.PositionIn(info), false
}

// requestRemoval asks the other members until the leader has removed this node's replica, and others confirm that. It returns the replica's id.
func (r *Reseeder) requestRemoval(ctx context.Context, info nodemsg.Region, own replica.Position) (uint64, error) {
	failures := []error{errors.New("no other member could remove the replica")}
	id := uint64(0)
	for _, m := range info.Members {
		if m.Peer == r.Self.Peer {
			id = max(id, m.Replica)
			continue
		}
		answer, err := r.Questions.Ask(ctx, m.Peer, nodemsg.Question{Rejoin: &nodemsg.RejoinRequest{Group: info.ID}})
		if err == nil && answer.Replica == 0 {
			err = errors.New("it does not know this question; upgrade it")
		}
		if err == nil {
			err = r.Judge.Confirm(ctx, info.ID, own, m.Peer, answer.Replica)
		}
		if err == nil {
			return max(id, answer.Replica), nil
		}
		failures = append(failures, fmt.Errorf("%s: %w", m.Peer, err))
	}
	return 0, errors.Join(failures...)
}

// discard deletes a region's rows, readable or not, and leaves a tombstone for the replica id.
func (r *Reseeder) discard(info nodemsg.Region, id uint64) error {
	writes, err := r.Deletion(info.ID)
	if err == nil {
		err = r.Replicas.Discard(info.ID, id, writes...)
	}
	if err != nil {
		return fmt.Errorf("discard region %d: %w", info.ID, err)
	}
	r.Registry.Forget(info.ID)
	if info.ID != world.CatalogID {
		r.Directory.Invalidate(info)
	}
	return r.Replaced(info.ID)
}

// RemoveReplica handles the request of a member whose copy is damaged: it removes the member from the group if this node leads
// the group, or becomes leader because the region hibernates.
func (r *Reseeder) RemoveReplica(ctx context.Context, peer string, group uint64) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, transport.AskTimeout)
	defer cancel()
	g, err := r.OpenMember(ctx, group)
	if err != nil {
		return 0, err
	}
	if g.Raft.Status().Leader == "" {
		g.Raft.Campaign()
	}
	if err := placement.AwaitGroup(ctx, func() bool { return g.Raft.Status().Leader != "" }); err != nil {
		return 0, errors.New("it has no leader")
	}
	if status := g.Raft.Status(); !status.Self {
		return 0, fmt.Errorf("it is led by %s", status.Leader)
	}
	for _, m := range g.Raft.Configuration().Members {
		if m.Peer == peer {
			return m.ID, r.removeMember(ctx, g, m)
		}
	}
	// It is removed already, and its id is unknown here. The tombstone must not be below that id. Otherwise a member that is not
	// informed of the removal could make the node open it again, and count a vote of a replica whose promises are lost.
	return g.Raft.NewestID(), nil
}

// removeMember removes a member whose copy is then deleted. It first waits until others have everything that was acknowledged
// with that member's help.
func (r *Reseeder) removeMember(ctx context.Context, g placement.Group, m replica.Member) error {
	if err := placement.AwaitGroup(ctx, func() bool { return r.Supervisor.BeginChange(g.ID) }); err != nil {
		return errors.New("its members are being changed")
	}
	defer r.Supervisor.EndChange(g.ID)
	last := g.Raft.Status().Last
	if err := placement.AwaitGroup(ctx, func() bool { return heldWithout(g.Raft.Status(), m.ID, last) }); err != nil {
		return errors.New("the other members do not have all that it has")
	}
	if err := r.Supervisor.Change(ctx, g, "remove", m.Peer, g.Raft.Remove); err != nil {
		return err
	}
	if slices.Contains(g.Raft.Configuration().Members, m) {
		return errors.New("another leader has changed its members")
	}
	return nil
}

// heldWithout reports whether a majority of the voters, or all other voters if they are fewer, have the log up to last without
// this member.
func heldWithout(s replica.Status, id, last uint64) bool {
	voters, others, have := 0, 0, 0
	for _, m := range s.Members {
		if m.Learner {
			continue
		}
		voters++
		if m.ID == id {
			continue
		}
		if others++; m.Match >= last {
			have++
		}
	}
	return have >= min(voters/2+1, others)
}

// MarkDamaged marks the copies as corrupt that were found damaged when the store was opened.
func (r *Reseeder) MarkDamaged(damaged map[uint64]string) error {
	for id, why := range damaged {
		info, err := r.Registry.Region(id)
		if errors.Is(err, actor.ErrNotHere) {
			continue // a region that this node is not a member of
		}
		if err != nil {
			return err
		}
		r.MarkCorrupt(info, fmt.Errorf("%w: %s", kv.ErrDamaged, why))
	}
	return nil
}

// MarkOutdated marks the copies that must not be used because the node was put back to an earlier state: the replica of each group.
func (r *Reseeder) MarkOutdated(replicas map[uint64]uint64) error {
	if len(replicas) == 0 {
		return nil
	}
	held, err := replica.Replicas(r.Storage, r.Self.Peer)
	if err != nil {
		return err
	}
	for id, outdated := range replicas {
		info, err := r.Regions.Member(id)
		switch {
		case errors.Is(err, actor.ErrNotHere), err == nil && held[id] != outdated: // it was discarded, or replaced
			err = r.Replaced(id)
		case err == nil:
			r.MarkCorrupt(info, errOutdated)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Abandon marks replicas that must not be used any more because the node was put back to an earlier state, and closes them, also those
// that are just being opened.
func (r *Reseeder) Abandon(ctx context.Context, replicas map[uint64]uint64) error {
	if err := r.MarkOutdated(replicas); err != nil {
		return err
	}
	closed := make(map[*actor.Actor]bool)
	for id := range replicas {
		for replica.IsOpen(r.Replicas, id) {
			if a := r.openActor(id); a != nil && !closed[a] {
				closed[a] = true
				a.Close(errPutBack.Error())
			}
			select {
			case <-time.After(pollEvery):
			case <-ctx.Done():
				return fmt.Errorf("close region %d: %w", id, ctx.Err())
			}
		}
	}
	return nil
}

// MarkLost has this node's replica of a region replaced of which nothing is stored here.
func (r *Reseeder) MarkLost(info nodemsg.Region) { r.MarkCorrupt(info, errLost) }

// Concerned returns the groups to which a damaged row may belong that was found in a table under the first of the keys, next to
// the others. Ok is false if the table holds no rows of single groups. Group 1 is the catalog.
func Concerned(table string, keys [][]byte) (groups []uint64, ok bool) {
	if table != world.LandTable && table != "raft_log" && table != "raft_state" {
		return nil, false
	}
	for _, key := range keys {
		if len(key) >= 8 {
			groups = append(groups, binary.BigEndian.Uint64(key))
		}
	}
	return groups, true
}
