package integrity

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/copies"
	"github.com/voxelpopuli/voxeld/region/placement"
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// This file replaces a copy that must not be used. It is never opened again under its replica id, because its promises
// to the group are lost. Its node asks the region's leader to remove its replica from the group. Then the node deletes
// the copy, leaves a tombstone, and joins like any other node: as a learner, under a new replica id, with a snapshot.

// replaceTime bounds one attempt to replace a copy.
const replaceTime = 20 * time.Second

// Replace has this node's replica removed from the group, and deletes it.
func (e *Executor) Replace(ctx context.Context, info nodemsg.Region) error {
	damaged := replicaOf(info, e.Self.Peer)
	if e.replacedSince(info.ID, damaged) {
		return e.Replaced(info.ID)
	}
	own, sure := e.ownPosition(info)
	if known, err := e.newest(ctx, info); err == nil {
		info = known
		own.Replica = max(own.Replica, replicaOf(info, e.Self.Peer))
	}
	if l := e.Regions.Loaded(info.ID); l != nil && l.Raft().Status().Self {
		next := e.Supervisor.Successor(placement.GroupOf(l))
		if next == "" {
			return errors.New("no other member can lead it")
		}
		if err := l.Raft().Transfer(next); err != nil {
			return err
		}
		if err := placement.AwaitGroup(ctx, func() bool { return !l.Raft().Status().Self }); err != nil {
			return err
		}
	}
	id, err := e.requestRemoval(ctx, info, own)
	if err != nil {
		return err
	}
	if sure {
		id = own.Replica // whatever the answer says: a tombstone with a later id would keep this node out of the group
	}
	if e.replacedSince(info.ID, max(id, damaged)) {
		return e.Replaced(info.ID) // it was invited again before this answer arrived
	}
	release, claimed := e.Facts.claim(info.ID)
	if !claimed {
		return errors.New("an operator is about to use it after all")
	}
	defer release()
	if open := e.openActor(info.ID); open != nil {
		open.Remove(true)
		if err := waitFor(ctx, open.Done()); err != nil {
			return err
		}
	}
	return e.discard(info, max(id, damaged))
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

// replacedSince reports whether this node's copy is of a later replica than the damaged one: the leader removed that
// one and invited this node again, but its answer was lost. The sound copy must not be discarded instead, since the
// group relies on its promises.
func (e *Executor) replacedSince(id, damaged uint64) bool {
	if damaged == 0 {
		return false
	}
	if l := e.Regions.Loaded(id); l != nil {
		return actor.OwnReplica(l.Raft(), e.Self.Peer) > damaged
	}
	if c := e.Regions.Catalog(); id == world.CatalogID && c != nil {
		return actor.OwnReplica(c.Raft(), e.Self.Peer) > damaged
	}
	p, err := e.Replicas.Position(id)
	return err == nil && p.Replica > damaged
}

// ownPosition returns the replica of this node, and the members of its group: those of the open group, else what is
// stored, else what info says. Sure means that this is its last replica: its copy can be read, and the data was not put
// back.
func (e *Executor) ownPosition(info nodemsg.Region) (own replica.Position, sure bool) {
	if open := e.openActor(info.ID); open != nil && open.Raft() != nil {
		own = replica.Position{Replica: actor.OwnReplica(open.Raft(), e.Self.Peer), Members: open.Raft().Configuration()}
		return own, own.Replica != 0
	}
	if own, err := e.Replicas.Position(info.ID); err == nil && own.Members.Index != 0 {
		return own, own.Replica != 0 && e.Facts.Stored(info.ID) != copies.Earlier
	}
	return e.Judge.PositionIn(info), false
}

// requestRemoval asks the other members until the leader has removed this node's replica, and others confirm that. It
// returns the replica's id.
func (e *Executor) requestRemoval(ctx context.Context, info nodemsg.Region, own replica.Position) (uint64, error) {
	failures := []error{errors.New("no other member could remove the replica")}
	id := uint64(0)
	for _, m := range info.Members {
		if m.Peer == e.Self.Peer {
			id = max(id, m.Replica)
			continue
		}
		answer, err := e.Questions.Ask(ctx, m.Peer, nodemsg.Question{Rejoin: &nodemsg.RejoinRequest{Group: info.ID}})
		if err == nil && answer.Replica == 0 {
			err = errors.New("it names no replica")
		}
		if err == nil {
			err = e.Judge.Confirm(ctx, info.ID, own, m.Peer, answer.Replica)
		}
		if err == nil {
			return max(id, answer.Replica), nil
		}
		failures = append(failures, fmt.Errorf("%s: %w", m.Peer, err))
	}
	return 0, errors.Join(failures...)
}

// discard deletes a region's rows, readable or not, and leaves a tombstone for the replica id.
func (e *Executor) discard(info nodemsg.Region, id uint64) error {
	writes, err := e.Deletion(info.ID)
	if err == nil {
		err = e.Replicas.Discard(info.ID, id, writes...)
	}
	if err != nil {
		return fmt.Errorf("discard region %d: %w", info.ID, err)
	}
	e.Registry.Forget(info.ID)
	if info.ID != world.CatalogID {
		e.Directory.Invalidate(info)
	}
	return e.Replaced(info.ID)
}

// RemoveReplica handles the request of a member whose copy is damaged: it removes the member from the group if this
// node leads the group, or becomes leader because the region hibernates.
func (e *Executor) RemoveReplica(ctx context.Context, peer string, group uint64) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, transport.AskTimeout)
	defer cancel()
	g, err := e.OpenMember(ctx, group)
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
			return m.ID, e.removeMember(ctx, g, m)
		}
	}
	// It is removed already, and its id is unknown here. The tombstone must not be below that id. Otherwise a member
	// that is not informed of the removal could make the node open it again, and count a vote of a replica whose
	// promises are lost.
	return g.Raft.NewestID(), nil
}

// removeMember removes a member whose copy is then deleted. It first waits until others have everything that was
// acknowledged with that member's help.
func (e *Executor) removeMember(ctx context.Context, g placement.Group, m replica.Member) error {
	if err := placement.AwaitGroup(ctx, func() bool { return e.Supervisor.BeginChange(g.ID) }); err != nil {
		return errors.New("its members are being changed")
	}
	defer e.Supervisor.EndChange(g.ID)
	last := g.Raft.Status().Last
	if err := placement.AwaitGroup(ctx, func() bool { return heldWithout(g.Raft.Status(), m.ID, last) }); err != nil {
		return errors.New("the other members do not have all that it has")
	}
	if err := e.Supervisor.Change(ctx, g, "remove", m.Peer, g.Raft.Remove); err != nil {
		return err
	}
	if slices.Contains(g.Raft.Configuration().Members, m) {
		return errors.New("another leader has changed its members")
	}
	return nil
}

// heldWithout reports whether a majority of the voters, or all other voters if they are fewer, have the log up to last
// without this member.
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

var (
	errEarlier = errors.New("this node's data was put back to an earlier state")
	// errForgotten is why a copy is not used that has forgotten what it has promised.
	errForgotten = fmt.Errorf("%w, and has forgotten what it has promised to the other members", errEarlier)
	// errMissing is why no copy is used under a replica id that is not in the earlier state: it does not exist.
	errMissing = fmt.Errorf("%w, from before it became a member", errEarlier)
)

// NoteMissing notes that this node has a replica of a region of which nothing is stored here.
func (e *Executor) NoteMissing(info nodemsg.Region) { e.Note(info, copies.Missing, errMissing) }

// NoteRolledBack notes the copies that must not be used because the node was put back to an earlier state: the replica
// of each group.
func (e *Executor) NoteRolledBack(replicas map[uint64]uint64) error {
	if len(replicas) == 0 {
		return nil
	}
	held, err := replica.Replicas(e.Storage, e.Self.Peer)
	if err != nil {
		return err
	}
	for id, rolledBack := range replicas {
		info, err := e.Regions.Member(id)
		switch {
		case errors.Is(err, actor.ErrNotHere), err == nil && held[id] != rolledBack: // it was discarded, or replaced
			err = e.Replaced(id)
		case err == nil:
			e.Note(info, copies.Earlier, errForgotten)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Abandon notes replicas that must not be used any more because the node was put back to an earlier state, and closes
// them, also those that are just being opened.
func (e *Executor) Abandon(ctx context.Context, replicas map[uint64]uint64) error {
	if err := e.NoteRolledBack(replicas); err != nil {
		return err
	}
	closed := make(map[*actor.Actor]bool)
	for id := range replicas {
		for e.Replicas.IsOpen(id) {
			if a := e.openActor(id); a != nil && !closed[a] {
				closed[a] = true
				a.Close(errEarlier.Error())
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

// Concerned returns the groups to which a damaged row may belong that was found in a table under the first of the keys,
// next to the others. Ok is false if the table holds no rows of single groups. Group 1 is the catalog.
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
