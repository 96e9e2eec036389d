package region

import (
	"cmp"
	"maps"
	"slices"

	"github.com/voxelpopuli/voxeld/kv"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/world"
)

// This file decides which copy of a part is damaged (docs/adr/0010): pure, no clock, no network. The scrub
// feeds it with what the members found at one mark and carries out what it says.

// testimony is what one member found out about its copy.
type testimony struct {
	peer  string
	voter bool
	parts map[world.Part]finding // those that it has; what is missing is empty
}

// finding is what a member has of one part.
type finding struct {
	memory world.Digest
	disk   wire.DiskState
}

// verdict is what the testimonies come to.
type verdict struct {
	compared int          // parts that any of them has
	mends    []world.Mend // by part
	open     []openCase   // what differs and cannot be decided, by part
}

// openCase is a part of which nobody can tell which copy is right.
type openCase struct {
	part  world.Part
	peers []string // whose copies differ from others, or from themselves
}

// judge compares the testimonies of a group that has so many voters. A part is right if more than half of the
// voters have it in memory; those who were not heard count as if they had something else. A copy whose disk tells
// something else than its memory is damaged, too. With one voter nobody could contradict it: only wrong checksums prove
// then that it is the disk that errs.
func judge(voters int, all []testimony) verdict {
	parts := make(map[world.Part]struct{})
	for _, t := range all {
		for p := range t.parts {
			parts[p] = struct{}{}
		}
	}
	v := verdict{compared: len(parts)}
	for _, p := range slices.SortedFunc(maps.Keys(parts), compareParts) {
		right, known := majority(voters, all, p)
		var damaged, sources []string
		for _, t := range all {
			f := t.parts[p]
			if f.memory == right && known {
				sources = append(sources, t.peer)
			}
			if !known || f.memory != right || f.disk != wire.DiskSame {
				damaged = append(damaged, t.peer)
			}
		}
		alone := voters == 1 && slices.ContainsFunc(all, func(t testimony) bool { return t.voter && t.parts[p].disk == wire.DiskDiffers })
		switch {
		case known && len(damaged) == 0, !known && agree(all, p):
		case !known, alone:
			v.open = append(v.open, openCase{p, damaged})
		default:
			v.mends = append(v.mends, world.Mend{Part: p, Damaged: damaged, Sources: sources})
		}
	}
	return v
}

// majority gives what more than half of the voters have in memory, if there is such a thing.
func majority(voters int, all []testimony, p world.Part) (world.Digest, bool) {
	count := make(map[world.Digest]int)
	for _, t := range all {
		if t.voter {
			count[t.parts[p].memory]++
		}
	}
	for digest, n := range count {
		if n > voters/2 {
			return digest, true
		}
	}
	return world.Digest{}, false
}

// agree tells whether all who were heard have the same.
func agree(all []testimony, p world.Part) bool {
	return !slices.ContainsFunc(all, func(t testimony) bool {
		return t.parts[p].memory != all[0].parts[p].memory || t.parts[p].disk != wire.DiskSame
	})
}

func compareParts(a, b world.Part) int {
	switch {
	case a.Sequences != b.Sequences && a.Sequences:
		return -1
	case a.Sequences != b.Sequences:
		return 1
	}
	return cmp.Or(cmp.Compare(a.Chunk.X, b.Chunk.X), cmp.Compare(a.Chunk.Z, b.Chunk.Z))
}

// offer is what one source gives of a part.
type offer struct {
	digest world.Digest
	rows   []kv.Write
}

// choose picks what at least need of the sources give. It reports false if there is no such thing.
func choose(need int, offers []offer) (offer, bool) {
	count := make(map[world.Digest]int)
	for _, o := range offers {
		if count[o.digest]++; count[o.digest] >= need {
			return o, true
		}
	}
	return offer{}, false
}
