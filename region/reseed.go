package region

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/kv"
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// This file replaces a copy whose log, vote or land cannot be read. Such a copy is never opened again, because its promises to
// the group are lost. Instead its node asks the region's leader to remove its replica from the group. Then the node deletes the
// copy, leaves a tombstone, and joins like any other node: as a learner, under a new replica id, with a snapshot. If there are no
// other members, the copy stays as it is, for an operator.

const (
	// reseedEvery is the pause between two attempts to have a damaged copy replaced.
	reseedEvery = 5 * time.Second
	// reseedTime bounds one attempt.
	reseedTime = 20 * time.Second
	// maxReseeds bounds how often a region's copy is replaced while the node runs. If it is damaged once more, the file itself
	// is broken in a way that rewriting does not repair, and only another file helps.
	maxReseeds = 3
)

// corruptCopy is a copy on this node that must not be used any more.
type corruptCopy struct {
	info  nodemsg.Region
	why   error
	since time.Time
}

// errCorruptCopy is why such a region is not opened.
var errCorruptCopy = errors.New("this node's copy of the region is damaged and is not used; the other members replace it")

var errHopeless = errors.New("the file is broken beyond writing: stop this node, and start it with an " +
	"empty data directory and --join; the others bring it what they have")

// structured is a Storage that can check whether a new copy in it would be damaged as well.
type structured interface{ CheckStructure() error }

// markCorrupt has a damaged copy replaced. Why describes the damage.
func (h *Host) markCorrupt(info nodemsg.Region, why error) {
	h.mu.Lock()
	_, known := h.mu.corrupt[info.ID]
	if !known {
		h.mu.corrupt[info.ID] = corruptCopy{info: info, why: why, since: time.Now()}
		h.countDamage()
	}
	h.mu.Unlock()
	if !known {
		h.Logger.Error("this node's copy of a region is damaged and is not used", "region", info.ID, "cell", info.Cell.String(),
			"members", len(info.Members), "error", why)
	}
}

func (h *Host) clearCorrupt(id uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.mu.corrupt, id)
	h.countDamage()
}

// corruptErr returns why a region must not be opened here, or nil.
func (h *Host) corruptErr(id uint64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c, found := h.mu.corrupt[id]; found {
		return fmt.Errorf("%w: %w", errCorruptCopy, c.why)
	}
	return nil
}

// damagedLog handles the finding of a scrub that an open group's log or vote cannot be read from disk. The group still has both
// in memory, so it continues until another replica has replaced this one.
func (h *Host) damagedLog(ctx context.Context, l *loop, why error) {
	if info, err := l.ask(ctx); err == nil {
		h.markCorrupt(info, why)
	}
}

// keepReseeding has damaged copies replaced until ctx ends.
func (h *Host) keepReseeding(ctx context.Context) {
	every := time.NewTicker(reseedEvery)
	defer every.Stop()
	told := make(map[uint64]bool)
	replaced := make(map[uint64]int)
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		h.mu.Lock()
		all := make([]corruptCopy, 0, len(h.mu.corrupt))
		for _, c := range h.mu.corrupt {
			all = append(all, c)
		}
		h.mu.Unlock()
		for _, c := range all {
			var err error
			if replaced[c.info.ID] < maxReseeds {
				err = h.reseed(ctx, c.info)
			} else {
				err = errHopeless
			}
			if err == nil {
				replaced[c.info.ID]++
				delete(told, c.info.ID)
				h.clearCorrupt(c.info.ID)
				h.metrics.reseeded.Inc()
				h.Logger.Warn("damaged copy discarded; waiting for a new one from the other members", "region", c.info.ID, "cell", c.info.Cell.String())
				continue
			}
			if ctx.Err() == nil && !told[c.info.ID] {
				told[c.info.ID] = true
				h.Logger.Error("damaged copy not replaced yet", "region", c.info.ID, "cell", c.info.Cell.String(), "error", err)
			}
		}
	}
}

// reseed has this node's replica removed from the group, and deletes it.
func (h *Host) reseed(ctx context.Context, info nodemsg.Region) error {
	ctx, cancel := context.WithTimeout(ctx, reseedTime)
	defer cancel()
	if s, ok := h.Storage.(structured); ok {
		if err := s.CheckStructure(); err != nil {
			return fmt.Errorf("%w: %w", errHopeless, err)
		}
	}
	damaged := replicaOf(info, h.Self.Peer)
	if h.replacedSince(info.ID, damaged) {
		return nil
	}
	if known, err := h.Directory.byID(ctx, info.ID); err == nil {
		info = known
	}
	if l := h.loop(info.ID); l != nil && l.raft.Status().Self {
		heir := h.successor(h.groupOf(l))
		if heir == "" {
			return errors.New("no other member can lead it")
		}
		if err := l.raft.Transfer(heir); err != nil {
			return err
		}
		if err := h.awaitGroup(ctx, func() bool { return !l.raft.Status().Self }); err != nil {
			return err
		}
	}
	id, err := h.requestRemoval(ctx, info)
	if err != nil {
		return err
	}
	if h.replacedSince(info.ID, max(id, damaged)) {
		return nil // it was invited again before this answer arrived
	}
	if l := h.loop(info.ID); l != nil {
		l.inbox.Put(func() { l.removed, l.discarded = true, true })
		select {
		case <-l.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return h.discard(info, max(id, damaged))
}

// replicaOf returns the replica id of a member according to the region, or 0.
func replicaOf(info nodemsg.Region, peer string) uint64 {
	for _, m := range info.Members {
		if m.Peer == peer {
			return m.Replica
		}
	}
	return 0
}

// replacedSince reports whether this node's copy is of a later replica than the damaged one: the leader removed that one and
// invited this node again, but its answer was lost. The sound copy must not be discarded instead, since the group relies on its
// promises.
func (h *Host) replacedSince(id, damaged uint64) bool {
	if damaged == 0 {
		return false
	}
	if l := h.loop(id); l != nil {
		return ownReplica(l.raft, h.Self.Peer) > damaged
	}
	p, err := h.Replicas.Position(id)
	return err == nil && p.Replica > damaged
}

// requestRemoval asks the other members until the leader has removed this node's replica. It returns the replica's id.
func (h *Host) requestRemoval(ctx context.Context, info nodemsg.Region) (uint64, error) {
	failures := []error{errors.New("no other member could remove the replica")}
	id := uint64(0)
	for _, m := range info.Members {
		if m.Peer == h.Self.Peer {
			id = max(id, m.Replica)
			continue
		}
		answer, err := h.questions.Ask(ctx, m.Peer, nodemsg.Question{Rejoin: &nodemsg.RejoinRequest{Group: info.ID}})
		if err == nil && answer.Replica != 0 {
			return max(id, answer.Replica), nil
		}
		if err == nil {
			err = errors.New("it does not know this question; upgrade it")
		}
		failures = append(failures, fmt.Errorf("%s: %w", m.Peer, err))
	}
	return 0, errors.Join(failures...)
}

// discard deletes a region's rows, readable or not, and leaves a tombstone for the replica id.
func (h *Host) discard(info nodemsg.Region, id uint64) error {
	writes := []kv.Write{{Table: regionTable, Key: regionKey(info.ID)}}
	err := h.Storage.Keys(world.LandTable, regionKey(info.ID), func(key []byte) error {
		writes = append(writes, kv.Write{Table: world.LandTable, Key: bytes.Clone(key)})
		return nil
	})
	if err == nil {
		err = h.Replicas.Discard(info.ID, id, writes...)
	}
	if err != nil {
		return fmt.Errorf("discard region %d: %w", info.ID, err)
	}
	h.Directory.invalidate(info)
	return nil
}

// removeReplica handles the request of a member whose copy is damaged: it removes the member from the group if this node leads
// the group, or becomes leader because the region hibernates.
func (h *Host) removeReplica(ctx context.Context, peer string, group uint64) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, transport.AskTimeout)
	defer cancel()
	info, err := h.membership(ctx, group)
	if err != nil {
		return 0, err
	}
	l, err := h.loadGroup(ctx, nodemsg.Hello{Region: group, Cell: info.Cell})
	if err != nil {
		return 0, err
	}
	if l.raft.Status().Leader == "" {
		l.raft.Campaign()
	}
	if err := h.awaitGroup(ctx, func() bool { return l.raft.Status().Leader != "" }); err != nil {
		return 0, errors.New("it has no leader")
	}
	if status := l.raft.Status(); !status.Self {
		return 0, fmt.Errorf("it is led by %s", status.Leader)
	}
	for _, m := range l.raft.Configuration().Members {
		if m.Peer == peer {
			return m.ID, h.removeMember(ctx, l, m)
		}
	}
	// It is removed already, and its id is unknown here. The tombstone must not be below that id. Otherwise a member that is not
	// informed of the removal could make the node open it again, and count a vote of a replica whose promises are lost.
	return l.raft.NewestID(), nil
}

// removeMember removes a member whose copy is then deleted. It first waits until others have everything that was acknowledged
// with that member's help.
func (h *Host) removeMember(ctx context.Context, l *loop, m replica.Member) error {
	if err := h.awaitGroup(ctx, func() bool { return h.beginReconcile(l.info.ID) }); err != nil {
		return errors.New("its members are being changed")
	}
	defer h.endReconcile(l.info.ID)
	last := l.raft.Status().Last
	if err := h.awaitGroup(ctx, func() bool { return heldWithout(l.raft.Status(), m.ID, last) }); err != nil {
		return errors.New("the other members do not have all that it has")
	}
	if err := h.change(ctx, h.groupOf(l), "remove", m.Peer, l.raft.Remove); err != nil {
		return err
	}
	if slices.Contains(l.raft.Configuration().Members, m) {
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

// markSuspects marks the copies as corrupt that were found damaged when the store was opened.
func (h *Host) markSuspects() error {
	for id, why := range h.Suspects {
		row, err := h.Storage.Get(regionTable, regionKey(id))
		if err != nil {
			return fmt.Errorf("look up region %d: %w", id, err)
		}
		if row == nil {
			continue // a region that this node is not a member of
		}
		info, err := nodemsg.DecodeRegion(row)
		if err != nil {
			return fmt.Errorf("read region %d: %w", id, err)
		}
		h.markCorrupt(info, fmt.Errorf("%w: %s", kv.ErrDamaged, why))
	}
	return nil
}

// mendRegistry deletes the unreadable rows of the node's list of regions: the catalog has the same data.
func (h *Host) mendRegistry() error {
	var bad []kv.Write
	var keys [][]byte
	err := h.Storage.Keys(regionTable, nil, func(key []byte) error {
		keys = append(keys, bytes.Clone(key))
		return nil
	})
	if err != nil {
		return fmt.Errorf("list regions: %w", err)
	}
	for _, key := range keys {
		row, err := h.Storage.Get(regionTable, key)
		if err == nil {
			_, err = nodemsg.DecodeRegion(row)
		}
		if err != nil {
			bad = append(bad, kv.Write{Table: regionTable, Key: key})
			h.Logger.Error("damaged row of the list of regions deleted; the catalog has the same data", "key", fmt.Sprintf("%x", key), "error", err)
		}
	}
	if len(bad) == 0 {
		return nil
	}
	// Run does not run yet, so it does not write concurrently.
	if err := h.Storage.Commit(bad); err != nil {
		return fmt.Errorf("repair list of regions: %w", err)
	}
	return nil
}

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
