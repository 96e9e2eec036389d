package actor

import (
	"github.com/voxelpopuli/voxeld/region/hub"
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// This file is a member's side of a scrub (docs/adr/0010). A barrier in the log defines the moment of the comparison. Each member
// digests its memory as of the barrier, during its ticks, and its disk, beside them. The disk is somewhat newer than the barrier, so
// the world.LandDigest also tracks the digests of later changes: memory and disk are compared at the index that the disk has.
// Package region/integrity asks for the reports and decides.

const (
	// digestUsed and digestIdle bound the edits that one tick digests, in a region that is in use (under 1 ms of a 50 ms tick),
	// and in an idle one.
	digestUsed = 4000
	digestIdle = InUseFactor * digestUsed
	// InUseFactor is how much longer a member with gateways takes for its report than one without.
	InUseFactor = 5
)

// pendingReport is what a member finds at one barrier. It belongs to the region's goroutine.
type pendingReport struct {
	index   uint64
	digest  *world.LandDigest // nil when complete
	reading bool              // the disk is being read
	digests []nodemsg.PartDigest
	failed  error // why there are no results
}

// DiskPart is one part as it is on disk.
type DiskPart struct {
	Part   world.Part
	Index  uint64 // the index that the disk had
	Digest world.Digest
	State  nodemsg.DiskState // DiskDamaged, or not yet compared
}

// inspection is a member's side of scrubs. It belongs to the region's goroutine.
type inspection struct {
	contents *hub.Contents
	self     string
	read     func(index uint64, parts map[world.Part][][]byte) // requests what is on disk, which arrives as haveRead

	waiters map[uint64]chan<- uint64 // barriers proposed here, by nonce, and the channels that wait for their indexes
	current *pendingReport           // for the newest barrier; nil if there was none
}

// apply starts what a barrier asks for: the current state is the one as of its index.
func (i *inspection) apply(index uint64, barrier world.Barrier) {
	if waiter := i.waiters[barrier.Nonce]; waiter != nil {
		delete(i.waiters, barrier.Nonce) // it waits for one index; a member that lies may commit the barrier again
		waiter <- index
	}
	if !barrier.Backup {
		i.current = &pendingReport{index: index, digest: i.contents.Land.StartDigest(index)}
	}
}

// continueReport continues the current report, as far as fits into this tick.
func (i *inspection) continueReport(inUse bool) {
	k := i.current
	if k == nil || k.digest == nil || k.reading {
		return
	}
	budget := digestIdle
	if inUse {
		budget = digestUsed
	}
	if !k.digest.Step(budget) {
		return
	}
	k.reading = true
	i.read(k.index, i.partPrefixes())
}

// partPrefixes lists the parts of the region's land and the prefixes of their rows.
func (i *inspection) partPrefixes() map[world.Part][][]byte {
	prefixes := make(map[world.Part][][]byte)
	for _, p := range i.contents.Land.Parts() {
		prefixes[p] = i.contents.Land.PartPrefixes(p)
	}
	return prefixes
}

// haveRead compares what was read from disk, which completes the report.
func (i *inspection) haveRead(index uint64, disk []DiskPart, err error) {
	k := i.current
	if k == nil || k.index != index || k.digest == nil {
		return // the next barrier came, or a snapshot
	}
	if err != nil {
		k.failed = err
	}
	for _, d := range disk {
		w := nodemsg.PartDigest{
			Chunk: d.Part.Chunk, Sequences: d.Part.Sequences, Memory: k.digest.At(d.Part, index), Disk: d.State,
		}
		if d.State == nodemsg.DiskSame && k.digest.At(d.Part, d.Index) != d.Digest {
			w.Disk = nodemsg.DiskDiffers
		}
		if w.Memory != (world.Digest{}) || w.Disk != nodemsg.DiskSame {
			k.digests = append(k.digests, w)
		}
	}
	k.digest = nil
	i.contents.Land.StopDigest()
}

// busy reports whether the region must stay open for a report.
func (i *inspection) busy() bool { return i.current != nil && i.current.digest != nil }

// report returns this member's report at the barrier.
func (i *inspection) report(index, applied uint64) nodemsg.Fetched {
	k := i.current
	switch {
	case applied < index, k != nil && k.index == index && k.digest != nil:
		return nodemsg.Fetched{Wait: true}
	case k == nil || k.index != index:
		return nodemsg.Fetched{Error: "there is no report of that barrier any more: a later one has come, or the region was opened, restored, split or merged"}
	case k.failed != nil:
		return nodemsg.Fetched{Error: transport.Clip(k.failed)}
	}
	return nodemsg.Fetched{Digests: k.digests}
}
