package actor

import (
	"bytes"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// This file is a member's side of a scrub (docs/adr/0010). A barrier in the log defines the moment of the comparison.
// Each member digests its memory as of the barrier, during its ticks, and its disk, beside them. The disk is somewhat
// newer than the barrier, so the world.LandDigest also tracks the digests of later changes: memory and disk are
// compared at the index that the disk has. Package region/integrity asks for the reports and decides.

const (
	// digestUsed and digestIdle bound the edits that one tick digests, in a region that is in use (under 1 ms of a 50
	// ms tick), and in an idle one.
	digestUsed = 4000
	digestIdle = InUseFactor * digestUsed
	// InUseFactor is how much longer a member with gateways takes for its report than one without.
	InUseFactor = 5
	// keptBarriers and keepTime bound for how many barriers, and for how long, a member retains the parts that it is a
	// source of.
	keptBarriers = 3
	keepTime     = time.Minute
)

// pendingReport is what a member finds at one barrier.
type pendingReport struct {
	index   uint64
	digest  *world.LandDigest // nil when complete
	reading bool              // the disk is being read
	digests []nodemsg.PartDigest
	failed  error // why there are no results
}

// retained holds parts as of a barrier, for the members that are repaired there.
type retained struct {
	index uint64
	until time.Time
	parts map[world.Part][]byte // rows, encoded and deflated
}

// DiskPart is one part as it is on disk.
type DiskPart struct {
	Part   world.Part
	Index  uint64 // the index that the disk had
	Digest world.Digest
	State  nodemsg.DiskState // DiskDamaged, or not yet compared
}

// inspection is a member's side of scrubs and repairs.
type inspection struct {
	contents *contents
	self     string
	read     func(index uint64, parts map[world.Part][][]byte) // requests what is on disk, which arrives as haveRead
	unkept   func(p world.Part, err error)                     // called if a part cannot be retained

	waiters   map[uint64]chan<- uint64 // barriers proposed here, by nonce, and the channels that wait for their indexes
	current   *pendingReport           // for the newest barrier; nil if there was none
	retained  []retained               // oldest first
	repairing uint64                   // index of the barrier at which the copy is being repaired; 0 if it is not
}

// apply starts what a barrier asks for: the current state is the one as of its index. It returns the repairs of this
// member's copy.
func (i *inspection) apply(index uint64, barrier world.Barrier) []world.Repair {
	if waiter := i.waiters[barrier.Nonce]; waiter != nil {
		delete(i.waiters, barrier.Nonce) // it waits for one index; a member that lies may commit the barrier again
		waiter <- index
	}
	if barrier.Backup {
		return nil
	}
	if len(barrier.Repairs) == 0 {
		i.current = &pendingReport{index: index, digest: i.contents.land.StartDigest(index)}
		return nil
	}
	i.current = nil
	i.contents.land.StopDigest()
	i.keepParts(index, barrier)
	repairs := slices.DeleteFunc(slices.Clone(barrier.Repairs), func(m world.Repair) bool { return !slices.Contains(m.Damaged, i.self) })
	if len(repairs) > 0 {
		i.repairing = index
	}
	return repairs
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
	for _, p := range i.contents.land.Parts() {
		prefixes[p] = i.contents.land.PartPrefixes(p)
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
	i.contents.land.StopDigest()
}

// busy reports whether the region must stay open for a report or a repair.
func (i *inspection) busy() bool {
	return i.repairing != 0 || i.current != nil && i.current.digest != nil
}

// keepParts retains the parts that other members fetch from this one.
func (i *inspection) keepParts(index uint64, barrier world.Barrier) {
	now := time.Now()
	i.retained = slices.DeleteFunc(i.retained, func(k retained) bool { return now.After(k.until) })
	if len(i.retained) == keptBarriers {
		i.retained = i.retained[1:]
	}
	k := retained{index: index, until: now.Add(keepTime), parts: make(map[world.Part][]byte)}
	for _, m := range barrier.Repairs {
		if !slices.Contains(m.Sources, i.self) {
			continue
		}
		data, err := nodemsg.PackPart(world.EncodeRows(i.rows(m.Part)))
		if err != nil {
			i.unkept(m.Part, err)
			continue
		}
		k.parts[m.Part] = data
	}
	if len(k.parts) > 0 {
		i.retained = append(i.retained, k)
	}
}

// rows copies the rows of a part.
func (i *inspection) rows(p world.Part) []kv.Write {
	var rows []kv.Write
	i.contents.land.Rows(p, func(key, value []byte) {
		rows = append(rows, kv.Write{Table: world.LandTable, Key: bytes.Clone(key), Value: bytes.Clone(value)})
	})
	return rows
}

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

// part returns a part as of the barrier.
func (i *inspection) part(at nodemsg.PartAt, applied uint64) nodemsg.Fetched {
	for _, k := range i.retained {
		if k.index != at.Index {
			continue
		}
		if data, ok := k.parts[world.Part{Chunk: at.Chunk, Sequences: at.Sequences}]; ok {
			return nodemsg.Fetched{Data: data}
		}
	}
	if applied < at.Index {
		return nodemsg.Fetched{Wait: true}
	}
	return nodemsg.Fetched{Error: "it was not kept"}
}

// FetchedPart is what was fetched of one part.
type FetchedPart struct {
	Part   world.Part
	Rows   []kv.Write
	Stored [][]byte // all keys of the part that are on disk, including those of damaged rows
}

// RepairRequest is a request for the right parts of a damaged copy.
type RepairRequest struct {
	Region  nodemsg.Region
	Index   uint64 // of the barrier
	Repairs []world.Repair
	Need    int // number of sources that must agree
}
