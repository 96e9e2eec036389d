package integrity

import (
	"cmp"
	"maps"
	"slices"

	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// This file decides whose copy differs from that of a majority (docs/adr/0010). It is pure: no clock, no network. The scrub passes in the
// members' reports as of one barrier.

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

// decision is the result of comparing the reports.
type decision struct {
	compared int                     // parts that any member has
	differ   map[string][]world.Part // by member: parts in which its copy is not that of the majority, or its disk not its memory
	open     []openCase              // differences that cannot be decided, by part
}

// openCase is a part whose right copy cannot be determined.
type openCase struct {
	part  world.Part
	peers []string // members whose copies differ from others, or whose disk differs from their memory
}

// decide compares the reports of a group with the given number of voters. The right state of a part is the one that more than
// half of the voters have in memory; a voter without a report counts against every state. A copy whose disk differs from its
// memory differs, too. With a single voter there is no second copy to compare with.
func decide(voters int, all []scrubReport) decision {
	parts := make(map[world.Part]struct{})
	for _, t := range all {
		for p := range t.parts {
			parts[p] = struct{}{}
		}
	}
	v := decision{compared: len(parts), differ: make(map[string][]world.Part)}
	for _, p := range slices.SortedFunc(maps.Keys(parts), compareParts) {
		right, known := majority(voters, all, p)
		var wrong []string
		for _, t := range all {
			if f := t.parts[p]; !known || f.memory != right || f.disk != nodemsg.DiskSame {
				wrong = append(wrong, t.peer)
			}
		}
		alone := voters == 1 && slices.ContainsFunc(all, func(t scrubReport) bool { return t.voter && t.parts[p].disk != nodemsg.DiskSame })
		switch {
		case !known && agree(all, p):
		case !known, alone:
			v.open = append(v.open, openCase{p, wrong})
		default:
			for _, peer := range wrong {
				v.differ[peer] = append(v.differ[peer], p)
			}
		}
	}
	return v
}

// sound lists the members whose whole copies are those of the majority, in memory and on disk.
func (v decision) sound(all []scrubReport) (peers []string) {
	for _, t := range all {
		if len(v.open) == 0 && len(v.differ[t.peer]) == 0 {
			peers = append(peers, t.peer)
		}
	}
	return peers
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
