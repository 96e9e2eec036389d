package region

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/kv"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// This file repairs a damaged copy. A mark in the log orders the repair. The sources retain their parts as of the mark. The
// damaged member applies nothing beyond the mark until it has fetched these parts, or given up. So the fetched part is exactly
// what the member's own part should have been at the mark, and every later entry is applied to it: no acknowledged edit is lost,
// and none is undone. Memory and disk are repaired together. The disk is written by the node's one committer, in order with all
// other writes.

// mendTime bounds how long a member under repair is paused. Raft's log grows meanwhile.
const mendTime = 8 * time.Second

// mending is a repair in progress. It belongs to the loop.
type mending struct {
	index uint64
}

// fetchedPart is what was fetched of one part.
type fetchedPart struct {
	part   world.Part
	rows   []kv.Write
	stored [][]byte // all keys of the part that are on disk, including those of damaged rows
}

// beginMending pauses at the mark if the mark names this member, and has the right parts fetched.
func (l *loop) beginMending(index uint64, mark world.Barrier) {
	mends := slices.DeleteFunc(slices.Clone(mark.Repairs), func(m world.Repair) bool { return !slices.Contains(m.Damaged, l.self) })
	if len(mends) == 0 {
		return
	}
	l.mending = &mending{index: index}
	l.logger.Warn("this node's copy is damaged and is being repaired", "region", l.info.ID, "cell", l.info.Cell.String(),
		"parts", len(mends), "first", mends[0].Part.String(), "entry", index)
	l.mend(l, index, mends, mark.Need)
}

// deliveries returns what the group has delivered, in order, or nothing while the loop is paused for a repair.
func (l *loop) deliveries() []replica.Delivery {
	if l.mending != nil {
		return nil
	}
	all := append(l.heldDeliveries, l.group.Dequeue()...)
	l.heldDeliveries = nil
	return all
}

// endMending replaces the damaged parts with the fetched ones, and resumes.
func (l *loop) endMending(index uint64, all []fetchedPart) {
	if l.mending == nil || l.mending.index != index {
		return
	}
	l.mending = nil
	var writes []kv.Write
	for _, m := range all {
		part, err := l.land.Replace(m.part, m.rows, m.stored)
		if err != nil {
			l.logger.Error("part not repaired", "region", l.info.ID, "part", m.part.String(), "error", err)
			continue
		}
		writes = append(writes, part...)
		l.metrics.repaired.Inc()
		l.logger.Info("part repaired from the other members", "region", l.info.ID, "part", m.part.String(), "rows", len(m.rows))
		l.showAgain(m.part)
	}
	l.group.ReportApplied(index, writes)
	l.deliver()
}

// showAgain has the part's chunk sent as a whole to all its subscribers.
func (l *loop) showAgain(p world.Part) {
	delete(l.bases, p.Chunk)
	for s := range l.watched[p.Chunk] {
		if !slices.Contains(s.unsent, p.Chunk) {
			s.unsent = append(s.unsent, p.Chunk)
		}
	}
}

// mendParts fetches the right parts for a paused loop, and sends the result to its inbox.
func (h *Host) mendParts(l *loop, index uint64, mends []world.Repair, need int) {
	h.start(func(ctx context.Context) { // if the host ends, so does the loop
		ctx, cancel := context.WithTimeout(ctx, mendTime)
		defer cancel()
		var all []fetchedPart
		for _, m := range mends {
			one, err := h.mendPart(ctx, l, index, m, need)
			if err != nil {
				h.Logger.Error("damaged part not repaired", "region", l.info.ID, "part", m.Part.String(), "error", err)
				continue
			}
			all = append(all, one)
		}
		l.inbox.Put(func() { l.endMending(index, all) })
	})
}

func (h *Host) mendPart(ctx context.Context, l *loop, index uint64, m world.Repair, need int) (fetchedPart, error) {
	var offers []partCopy
	var failures []error
	for _, peer := range m.Sources {
		o, err := h.fetchPart(ctx, peer, nodemsg.PartAt{
			LogPosition: nodemsg.LogPosition{Group: l.info.ID, Index: index}, Chunk: m.Part.Chunk, Sequences: m.Part.Sequences,
		})
		if err != nil {
			failures = append(failures, err)
			continue
		}
		offers = append(offers, o)
		if right, ok := chooseCopy(need, offers); ok {
			keys, err := h.storedKeys(l.info.ID, l.info.Cell, m.Part)
			if err != nil {
				return fetchedPart{}, err
			}
			return fetchedPart{part: m.Part, rows: right.rows, stored: keys}, nil
		}
	}
	return fetchedPart{}, errors.Join(append(failures, fmt.Errorf("%d of %d sources sent it, and %d must agree", len(offers), len(m.Sources), need))...)
}

// fetchPart fetches a part from one member, which may have to reach the mark first.
func (h *Host) fetchPart(ctx context.Context, peer string, at nodemsg.PartAt) (partCopy, error) {
	for {
		got, err := h.pieces.Fetch(ctx, peer, nodemsg.Fetch{Part: &at})
		if err != nil {
			return partCopy{}, err
		}
		if !got.Wait {
			return offered(got.Data)
		}
		select {
		case <-ctx.Done():
			return partCopy{}, fmt.Errorf("%s does not reach entry %d: %w", peer, at.Index, ctx.Err())
		case <-time.After(diskPoll):
		}
	}
}

// storedKeys lists the keys of a part's rows on disk.
func (h *Host) storedKeys(id uint64, cell grid.Cell, p world.Part) ([][]byte, error) {
	var keys [][]byte
	for _, prefix := range h.prefixesOf(id, cell, p) {
		err := h.Storage.Keys(world.LandTable, prefix, func(key []byte) error {
			keys = append(keys, bytes.Clone(key))
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("list rows of %v: %w", p, err)
		}
	}
	return keys, nil
}
