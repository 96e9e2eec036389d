package integrity

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

var aPart = world.Part{Chunk: grid.ChunkPos{X: 1, Z: 2}}

func reportOf(peer string, memory byte, disk nodemsg.DiskState) scrubReport {
	t := scrubReport{peer: peer, voter: true, parts: map[world.Part]finding{}}
	if memory != 0 || disk != nodemsg.DiskSame {
		t.parts[aPart] = finding{world.Digest{memory}, disk}
	}
	return t
}

func learner(t scrubReport) scrubReport {
	t.voter = false
	return t
}

func TestDecide(t *testing.T) {
	same, differs, damaged := nodemsg.DiskSame, nodemsg.DiskDiffers, nodemsg.DiskDamaged
	for name, c := range map[string]struct {
		voters int
		all    []scrubReport
		differ []string
		open   []string
	}{
		"all equal":              {3, []scrubReport{reportOf("A", 1, same), reportOf("B", 1, same), reportOf("C", 1, same)}, nil, nil},
		"one is wrong":           {3, []scrubReport{reportOf("A", 1, same), reportOf("B", 2, same), reportOf("C", 1, same)}, []string{"B"}, nil},
		"one has nothing":        {3, []scrubReport{reportOf("A", 1, same), reportOf("B", 0, same), reportOf("C", 1, same)}, []string{"B"}, nil},
		"one has too much":       {3, []scrubReport{reportOf("A", 0, same), reportOf("B", 1, same), reportOf("C", 0, same)}, []string{"B"}, nil},
		"one's disk differs":     {3, []scrubReport{reportOf("A", 1, same), reportOf("B", 1, differs), reportOf("C", 1, same)}, []string{"B"}, nil},
		"one's disk is damaged":  {3, []scrubReport{reportOf("A", 1, same), reportOf("B", 1, damaged), reportOf("C", 1, same)}, []string{"B"}, nil},
		"one is silent":          {3, []scrubReport{reportOf("A", 1, same), reportOf("B", 1, same)}, nil, nil},
		"one of two differs":     {3, []scrubReport{reportOf("A", 1, same), reportOf("B", 2, same)}, nil, []string{"A", "B"}},
		"silent, a disk differs": {3, []scrubReport{reportOf("A", 1, same), reportOf("B", 1, differs)}, []string{"B"}, nil},
		"only one is heard":      {3, []scrubReport{reportOf("A", 1, same)}, nil, nil},
		"it alone, disk differs": {3, []scrubReport{reportOf("A", 1, differs)}, nil, []string{"A"}},
		"all differ":             {3, []scrubReport{reportOf("A", 1, same), reportOf("B", 2, same), reportOf("C", 3, same)}, nil, []string{"A", "B", "C"}},
		"two of two":             {2, []scrubReport{reportOf("A", 1, same), reportOf("B", 2, same)}, nil, []string{"A", "B"}},
		"two of two, a disk":     {2, []scrubReport{reportOf("A", 1, same), reportOf("B", 1, damaged)}, []string{"B"}, nil},
		"alone":                  {1, []scrubReport{reportOf("A", 1, same)}, nil, nil},
		"alone, disk differs":    {1, []scrubReport{reportOf("A", 1, differs)}, nil, []string{"A"}},
		"alone, checksums":       {1, []scrubReport{reportOf("A", 1, damaged)}, nil, []string{"A"}},
		"a learner is wrong":     {1, []scrubReport{reportOf("A", 1, same), learner(reportOf("B", 2, same))}, []string{"B"}, nil},
		"learners do not vote":   {3, []scrubReport{reportOf("A", 1, same), reportOf("B", 1, same), learner(reportOf("C", 2, same)), learner(reportOf("D", 2, same))}, []string{"C", "D"}, nil},
	} {
		v := decide(c.voters, c.all)
		var open []string
		if len(v.open) > 0 {
			open = v.open[0].peers
		}
		if differ := slices.Sorted(maps.Keys(v.differ)); !slices.Equal(differ, c.differ) || !slices.Equal(open, c.open) {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// Copies that differ from the majority are replaced. A copy that is right in memory and on disk never is, and reports of less than a majority
// never change anything. Only copies that are right are sound.
func TestDecideFollowsMajorities(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		voters := rapid.IntRange(1, 7).Draw(t, "voters")
		reported := rapid.IntRange(0, voters).Draw(t, "heard")
		var all []scrubReport
		right := 0
		for i := range reported {
			memory := rapid.SampledFrom([]byte{7, 7, 7, 0, 8}).Draw(t, "memory")
			disk := rapid.SampledFrom([]nodemsg.DiskState{nodemsg.DiskSame, nodemsg.DiskSame, nodemsg.DiskDiffers, nodemsg.DiskDamaged}).Draw(t, "disk")
			if memory == 7 {
				right++
			}
			all = append(all, reportOf(fmt.Sprint(i), memory, disk))
		}
		v := decide(voters, all)
		if reported*2 <= voters && len(v.differ) > 0 {
			t.Fatalf("%d of %d voters decided: %+v", reported, voters, v)
		}
		if right*2 <= voters || voters == 1 {
			return
		}
		for _, w := range all {
			f := w.parts[aPart]
			is := f.memory == world.Digest{7} && f.disk == nodemsg.DiskSame
			if _, differs := v.differ[w.peer]; is == differs || is != slices.Contains(v.sound(all), w.peer) {
				t.Fatalf("%s: right %v, differs %v, sound %v", w.peer, is, differs, v.sound(all))
			}
		}
	})
}
