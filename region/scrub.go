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
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// This file is a member's side of a scrub (docs/adr/0010). A mark in the log defines the moment of the comparison. Each member
// digests its memory as of the mark, during its ticks, and its disk, beside them. The disk is somewhat newer than the mark, so
// the world.LandDigest also tracks the digests of later changes: memory and disk are compared at the index that the disk has.
// inspect.go is the side that asks for the reports and decides.

const (
	// digestUsed and digestIdle bound the edits that one tick digests, in a region that is in use (under 1 ms of a 50 ms tick),
	// and in an idle one.
	digestUsed = 4000
	digestIdle = 20000
	// diskTime is how long a member waits until its disk has reached the mark.
	diskTime = 10 * time.Second
	// diskPoll is the pause between two checks of that.
	diskPoll = 50 * time.Millisecond
	// keptMarks and keepTime bound for how many marks, and for how long, a member retains the parts that it is a source of.
	keptMarks = 3
	keepTime  = time.Minute
)

// look is what a member finds at one mark. It belongs to the loop.
type look struct {
	index   uint64
	survey  *world.LandDigest // nil when complete
	reading bool              // the disk is being read
	digests []nodemsg.PartDigest
	failed  error // why there are no results
}

// retained holds parts as of a mark, for the members that are repaired there.
type retained struct {
	index uint64
	until time.Time
	parts map[world.Part][]byte // rows, encoded and deflated
}

// diskPart is one part as it is on disk.
type diskPart struct {
	part   world.Part
	index  uint64 // the index that the disk had
	digest world.Digest
	state  nodemsg.DiskState // DiskDamaged, or not yet compared
}

// beginLook starts a look at a mark: the current state is the one as of its index.
func (l *loop) beginLook(index uint64, mark world.Barrier) {
	l.report() // brings the disk up to the mark; a part that is replaced must have no unreported rows
	if heard := l.markWaiters[mark.Nonce]; heard != nil {
		heard <- index
	}
	if len(mark.Repairs) > 0 {
		l.look = nil
		l.land.StopDigest()
		l.keepParts(index, mark)
		l.beginMending(index, mark)
		return
	}
	l.look = &look{index: index, survey: l.land.StartDigest(index)}
}

// proposeMark proposes a mark. Its index is sent to committed when it is committed here.
func (l *loop) proposeMark(mark world.Barrier, committed chan<- uint64) error {
	if !l.leading {
		return ErrNotHere
	}
	if err := l.group.Propose(mark.Encode()); err != nil {
		return err
	}
	if l.markWaiters == nil {
		l.markWaiters = make(map[uint64]chan<- uint64)
	}
	l.markWaiters[mark.Nonce] = committed
	return nil
}

// continueLook continues the current look, as far as fits into this tick.
func (l *loop) continueLook() {
	k := l.look
	if k == nil || k.survey == nil || k.reading {
		return
	}
	budget := digestIdle
	if len(l.subscribers) > 0 {
		budget = digestUsed
	}
	if !k.survey.Step(budget) {
		return
	}
	k.reading = true
	l.read(l, k.index, l.partPrefixes())
}

// partPrefixes lists the parts of the region's land and the prefixes of their rows.
func (l *loop) partPrefixes() map[world.Part][][]byte {
	prefixes := make(map[world.Part][][]byte)
	for _, p := range l.land.Parts() {
		prefixes[p] = l.land.PartPrefixes(p)
	}
	return prefixes
}

// haveRead compares what was read from disk, which completes the look.
func (l *loop) haveRead(index uint64, disk []diskPart, err error) {
	k := l.look
	if k == nil || k.index != index || k.survey == nil {
		return // the next mark came, or a snapshot
	}
	if err != nil {
		k.failed = err
	}
	for _, d := range disk {
		w := nodemsg.PartDigest{
			Chunk: d.part.Chunk, Sequences: d.part.Sequences, Memory: k.survey.At(d.part, index), Disk: d.state,
		}
		if d.state == nodemsg.DiskSame && k.survey.At(d.part, d.index) != d.digest {
			w.Disk = nodemsg.DiskDiffers
		}
		if w.Memory != (world.Digest{}) || w.Disk != nodemsg.DiskSame {
			k.digests = append(k.digests, w)
		}
	}
	k.survey = nil
	l.land.StopDigest()
}

// looking reports whether the region must stay open for a look or a repair.
func (l *loop) looking() bool { return l.mending != nil || l.look != nil && l.look.survey != nil }

// keepParts retains the parts that other members fetch from this one.
func (l *loop) keepParts(index uint64, mark world.Barrier) {
	now := time.Now()
	l.retained = slices.DeleteFunc(l.retained, func(k retained) bool { return now.After(k.until) })
	if len(l.retained) == keptMarks {
		l.retained = l.retained[1:]
	}
	k := retained{index: index, until: now.Add(keepTime), parts: make(map[world.Part][]byte)}
	for _, m := range mark.Repairs {
		if !slices.Contains(m.Sources, l.self) {
			continue
		}
		data, err := nodemsg.PackPart(world.EncodeRows(l.rows(m.Part)))
		if err != nil {
			l.logger.Error("part not retained for other members", "region", l.info.ID, "part", m.Part.String(), "error", err)
			continue
		}
		k.parts[m.Part] = data
	}
	if len(k.parts) > 0 {
		l.retained = append(l.retained, k)
	}
}

// rows copies the rows of a part.
func (l *loop) rows(p world.Part) []kv.Write {
	var rows []kv.Write
	l.land.Rows(p, func(key, value []byte) {
		rows = append(rows, kv.Write{Table: world.LandTable, Key: bytes.Clone(key), Value: bytes.Clone(value)})
	})
	return rows
}

// reportScrub returns this member's report at the mark.
func (l *loop) reportScrub(index uint64) nodemsg.Fetched {
	k := l.look
	switch {
	case k == nil || k.index < index:
		return nodemsg.Fetched{Wait: true}
	case k.index > index:
		return nodemsg.Fetched{Error: "a later mark has come"}
	case k.failed != nil:
		return nodemsg.Fetched{Error: transport.Clip(k.failed)}
	case k.survey != nil:
		return nodemsg.Fetched{Wait: true}
	}
	return nodemsg.Fetched{Digests: k.digests}
}

// servePart returns a part as of the mark.
func (l *loop) servePart(at nodemsg.PartAt) nodemsg.Fetched {
	for _, k := range l.retained {
		if k.index != at.Index {
			continue
		}
		if data, ok := k.parts[world.Part{Chunk: at.Chunk, Sequences: at.Sequences}]; ok {
			return nodemsg.Fetched{Data: data}
		}
	}
	if l.applied < at.Index {
		return nodemsg.Fetched{Wait: true}
	}
	return nodemsg.Fetched{Error: "it was not kept"}
}

// member reports whether the peer is a member of the group.
func (l *loop) member(peer string) bool {
	return slices.ContainsFunc(l.members, func(m replica.Member) bool { return m.Peer == peer })
}

// askLoop has a loop answer another member.
func (h *Host) askLoop(ctx context.Context, peer string, group uint64, answer func(l *loop) nodemsg.Fetched) nodemsg.Fetched {
	l := h.loop(group)
	if l == nil {
		return nodemsg.Fetched{Error: "the region is not open here"}
	}
	answered := make(chan nodemsg.Fetched, 1)
	l.inbox.Put(func() {
		if !l.member(peer) {
			answered <- nodemsg.Fetched{Error: "only members may ask"}
			return
		}
		answered <- answer(l)
	})
	select {
	case a := <-answered:
		return a
	case <-l.done:
		return nodemsg.Fetched{Error: "the region has been closed here"}
	case <-ctx.Done():
		return nodemsg.Fetched{Error: transport.Clip(ctx.Err())}
	}
}

// readParts digests the stored rows of a region's parts, beside its loop. Each part is read in one short transaction, so that the
// file does not grow by what is written meanwhile.
func (h *Host) readParts(l *loop, index uint64, parts map[world.Part][][]byte) {
	h.start(func(ctx context.Context) { // if the host ends, so does the loop
		var disk []diskPart
		err := h.awaitStored(ctx, l.info.ID, index)
		for p, prefixes := range parts {
			if err != nil {
				break
			}
			var d diskPart
			if d, err = h.readPart(l.info.ID, p, prefixes); err == nil {
				disk = append(disk, d)
			}
			if ctx.Err() != nil {
				return
			}
		}
		if bad := h.Replicas.CheckStored(l.info.ID); err == nil && isDamage(bad) {
			h.damagedLog(ctx, l, bad)
		}
		l.inbox.Put(func() { l.haveRead(index, disk, err) })
	})
}

// awaitStored waits until everything applied up to the index is on disk.
func (h *Host) awaitStored(ctx context.Context, group, index uint64) error {
	ctx, cancel := context.WithTimeout(ctx, diskTime)
	defer cancel()
	for {
		stored, err := replica.AppliedIn(h.Storage.Get, group)
		if err != nil || stored >= index {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until entry %d is stored: %w", index, ctx.Err())
		case <-time.After(diskPoll):
		}
	}
}

// readPart digests one part. Damaged rows are a finding, not an error.
func (h *Host) readPart(group uint64, p world.Part, prefixes [][]byte) (diskPart, error) {
	d := diskPart{part: p}
	err := h.Storage.View(func(get func(string, []byte) ([]byte, error),
		scan func(string, []byte, func(key, value []byte) error) error,
	) (err error) {
		if d.index, err = replica.AppliedIn(get, group); err != nil {
			return err
		}
		for _, prefix := range prefixes {
			err := scan(world.LandTable, prefix, func(key, value []byte) error {
				d.digest.Add(key, value)
				return nil
			})
			if err != nil {
				return damagedRows{err}
			}
		}
		return nil
	})
	var rows damagedRows
	if errors.As(err, &rows) && isDamage(rows.error) {
		d.state, err = nodemsg.DiskDamaged, nil
	}
	return d, err
}

// damagedRows is an error of reading the land itself.
type damagedRows struct{ error }

func (d damagedRows) Unwrap() error { return d.error }

// isDamage reports whether an error means that the stored data is damaged.
func isDamage(err error) bool {
	return errors.Is(err, kv.ErrDamaged)
}

// prefixesOf returns the key prefixes of a part's rows; it does not need the land.
func (h *Host) prefixesOf(id uint64, cell grid.Cell, p world.Part) [][]byte {
	return world.NewLand(id, cell, h.Height).PartPrefixes(p)
}
