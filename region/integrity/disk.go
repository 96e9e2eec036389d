package integrity

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// diskTime is how long a member waits until its disk has reached the barrier.
const diskTime = 10 * time.Second

// Disk reads the stored parts of regions for scrubs.
type Disk struct {
	Node

	// DamagedLog is called if an open group's log or vote cannot be read from disk.
	DamagedLog func(context.Context, *actor.Land, error)
}

// ReadParts digests the stored rows of a region's parts, beside its goroutine. Each part is read in one short transaction, so that the
// file does not grow by what is written meanwhile.
func (d *Disk) ReadParts(l *actor.Land, index uint64, parts map[world.Part][][]byte, read func([]actor.DiskPart, error)) {
	d.Tasks.Start(func(ctx context.Context) { // if the host ends, so does the actor
		var disk []actor.DiskPart
		err := d.awaitStored(ctx, l.ID(), index)
		for p, prefixes := range parts {
			if err != nil {
				break
			}
			var part actor.DiskPart
			if part, err = d.readPart(l.ID(), p, prefixes); err == nil {
				disk = append(disk, part)
			}
			if ctx.Err() != nil {
				return
			}
		}
		if bad := d.Replicas.CheckStored(l.ID()); err == nil && IsDamage(bad) {
			d.DamagedLog(ctx, l, bad)
		}
		read(disk, err)
	})
}

// awaitStored waits until everything applied up to the index is on disk.
func (d *Disk) awaitStored(ctx context.Context, group, index uint64) error {
	ctx, cancel := context.WithTimeout(ctx, diskTime)
	defer cancel()
	for {
		stored, err := replica.AppliedIn(d.Storage.Get, group)
		if err != nil || stored >= index {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until entry %d is stored: %w", index, ctx.Err())
		case <-time.After(pollEvery):
		}
	}
}

// readPart digests one part. Damaged rows are a finding, not an error.
func (d *Disk) readPart(group uint64, p world.Part, prefixes [][]byte) (actor.DiskPart, error) {
	part := actor.DiskPart{Part: p}
	var unread error // why the land itself could not be read
	err := d.Storage.View(func(get func(string, []byte) ([]byte, error),
		scan func(string, []byte, func(key, value []byte) error) error,
	) (err error) {
		if part.Index, err = replica.AppliedIn(get, group); err != nil {
			return err
		}
		for _, prefix := range prefixes {
			unread = scan(world.LandTable, prefix, func(key, value []byte) error {
				part.Digest.Add(key, value)
				return nil
			})
			if unread != nil {
				return unread
			}
		}
		return nil
	})
	if IsDamage(unread) {
		part.State, err = nodemsg.DiskDamaged, nil
	}
	return part, err
}

// IsDamage reports whether an error means that the stored data is damaged.
func IsDamage(err error) bool { return errors.Is(err, kv.ErrDamaged) }
