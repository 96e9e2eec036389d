package integrity

import (
	"cmp"
	"maps"
	"slices"

	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// This file decides which copy of a part is damaged (docs/adr/0010). It is pure: no clock, no network. The scrub passes
// in the members' reports as of one barrier and carries out the result.

// scrubReport is what one member found in its copy.
type scrubReport struct {
	peer  string
	voter bool
	parts map[world.Part]finding // its parts; a missing part is empty
}

// finding is one member's state of one part.
type finding struct {
	memory world.Digest
	disk   nodemsg.DiskState
}

// comparison is the result of comparing the reports.
type comparison struct {
	compared int            // parts that any member has
	repairs  []world.Repair // by part
	open     []openCase     // differences that cannot be decided, by part
}

// openCase is a part whose right copy cannot be determined.
type openCase struct {
	part  world.Part
	peers []string // members whose copies differ from others, or whose disk differs from their memory
}

// compareReports compares the reports of a group with the given number of voters. The right state of a part is the one
// that more than half of the voters have in memory; a voter without a report counts against every state. A copy whose
// disk differs from its memory is damaged, too. With a single voter there is no second copy to compare with: only wrong
// checksums prove that the disk is wrong.
func compareReports(voters int, all []scrubReport) comparison {
	parts := make(map[world.Part]struct{})
	for _, t := range all {
		for p := range t.parts {
			parts[p] = struct{}{}
		}
	}
	v := comparison{compared: len(parts)}
	for _, p := range slices.SortedFunc(maps.Keys(parts), compareParts) {
		right, known := majority(voters, all, p)
		var damaged, sources []string
		for _, t := range all {
			f := t.parts[p]
			if f.memory == right && known {
				sources = append(sources, t.peer)
			}
			if !known || f.memory != right || f.disk != nodemsg.DiskSame {
				damaged = append(damaged, t.peer)
			}
		}
		alone := voters == 1 && slices.ContainsFunc(all, func(t scrubReport) bool { return t.voter && t.parts[p].disk == nodemsg.DiskDiffers })
		switch {
		case known && len(damaged) == 0, !known && agree(all, p):
		case !known, alone:
			v.open = append(v.open, openCase{p, damaged})
		default:
			v.repairs = append(v.repairs, world.Repair{Part: p, Damaged: damaged, Sources: sources})
		}
	}
	return v
}

// majority returns the digest that more than half of the voters have in memory, if there is one.
func majority(voters int, all []scrubReport, p world.Part) (world.Digest, bool) {
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

// agree reports whether all reports have the same state of the part.
func agree(all []scrubReport, p world.Part) bool {
	return !slices.ContainsFunc(all, func(t scrubReport) bool {
		return t.parts[p].memory != all[0].parts[p].memory || t.parts[p].disk != nodemsg.DiskSame
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

// partCopy is one source's copy of a part.
type partCopy struct {
	digest world.Digest
	rows   []kv.Write
}

// chooseCopy returns the copy that at least need of the sources have. It reports false if there is none.
func chooseCopy(need int, offers []partCopy) (partCopy, bool) {
	count := make(map[world.Digest]int)
	for _, o := range offers {
		if count[o.digest]++; count[o.digest] >= need {
			return o, true
		}
	}
	return partCopy{}, false
}
