package integrity

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

const (
	// diskTime is how long a member waits until its disk has reached the barrier.
	diskTime = 10 * time.Second
	// repairTime bounds how long a member under repair is paused. Raft's log grows meanwhile.
	repairTime = 8 * time.Second
)

// Disk reads the stored parts of regions for scrubs, and fetches the right ones for repairs.
type Disk struct {
	Node

	Pieces transport.Pieces
	// DamagedLog is called if an open group's log or vote cannot be read from disk.
	DamagedLog func(context.Context, *actor.Land, error)
}

// ReadParts digests the stored rows of a region's parts, beside its goroutine. Each part is read in one short
// transaction, so that the file does not grow by what is written meanwhile.
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

// FetchParts fetches the right parts for a paused region, beside it.
func (d *Disk) FetchParts(m actor.RepairRequest, fetched func([]actor.FetchedPart)) {
	d.Tasks.Start(func(ctx context.Context) { // if the host ends, so does the actor
		ctx, cancel := context.WithTimeout(ctx, repairTime)
		defer cancel()
		var all []actor.FetchedPart
		for _, part := range m.Repairs {
			one, err := d.fetchRight(ctx, m, part)
			if err != nil {
				d.Logger.Error("damaged part not repaired", "region", m.Region.ID, "part", part.Part.String(), "error", err)
				continue
			}
			all = append(all, one)
		}
		fetched(all)
	})
}

// fetchRight fetches the copy of a part on which enough sources agree.
func (d *Disk) fetchRight(ctx context.Context, request actor.RepairRequest, m world.Repair) (actor.FetchedPart, error) {
	var offers []partCopy
	var failures []error
	for _, peer := range m.Sources {
		o, err := d.fetchPart(ctx, peer, nodemsg.PartAt{
			LogPosition: nodemsg.LogPosition{Group: request.Region.ID, Index: request.Index}, Chunk: m.Part.Chunk, Sequences: m.Part.Sequences,
		})
		if err != nil {
			failures = append(failures, err)
			continue
		}
		offers = append(offers, o)
		if right, ok := chooseCopy(request.Need, offers); ok {
			keys, err := d.storedKeys(request.Region, m.Part)
			if err != nil {
				return actor.FetchedPart{}, err
			}
			return actor.FetchedPart{Part: m.Part, Rows: right.rows, Stored: keys}, nil
		}
	}
	return actor.FetchedPart{}, errors.Join(append(failures, fmt.Errorf("%d of %d sources sent it, and %d must agree", len(offers), len(m.Sources), request.Need))...)
}

// fetchPart fetches a part from one member, which may have to reach the barrier first.
func (d *Disk) fetchPart(ctx context.Context, peer string, at nodemsg.PartAt) (partCopy, error) {
	for {
		got, err := d.Pieces.Fetch(ctx, peer, nodemsg.Fetch{Part: &at})
		if err != nil {
			return partCopy{}, err
		}
		if !got.Wait {
			return offered(got.Data)
		}
		select {
		case <-ctx.Done():
			return partCopy{}, fmt.Errorf("%s does not reach entry %d: %w", peer, at.Index, ctx.Err())
		case <-time.After(pollEvery):
		}
	}
}

// storedKeys lists the keys of a part's rows on disk.
func (d *Disk) storedKeys(info nodemsg.Region, p world.Part) ([][]byte, error) {
	var keys [][]byte
	for _, prefix := range world.NewLand(info.ID, info.Cell, d.Height).PartPrefixes(p) {
		err := d.Storage.Keys(world.LandTable, prefix, func(key []byte) error {
			keys = append(keys, bytes.Clone(key))
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("list rows of %v: %w", p, err)
		}
	}
	return keys, nil
}

// offered decompresses and checks a part from a source, and digests it.
func offered(packed []byte) (partCopy, error) {
	data, err := nodemsg.UnpackPart(packed)
	if err != nil {
		return partCopy{}, err
	}
	rows, err := world.DecodeRows(data)
	if err != nil {
		return partCopy{}, err
	}
	o := partCopy{rows: rows}
	for _, row := range rows {
		o.digest.Add(row.Key, row.Value)
	}
	return o, nil
}
