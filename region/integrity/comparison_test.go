package integrity

import (
	"fmt"
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
		voters  int
		all     []scrubReport
		damaged []string
		sources []string
		open    []string
	}{
		"all equal":              {3, []scrubReport{reportOf("A", 1, same), reportOf("B", 1, same), reportOf("C", 1, same)}, nil, nil, nil},
		"one is wrong":           {3, []scrubReport{reportOf("A", 1, same), reportOf("B", 2, same), reportOf("C", 1, same)}, []string{"B"}, []string{"A", "C"}, nil},
		"one has nothing":        {3, []scrubReport{reportOf("A", 1, same), reportOf("B", 0, same), reportOf("C", 1, same)}, []string{"B"}, []string{"A", "C"}, nil},
		"one has too much":       {3, []scrubReport{reportOf("A", 0, same), reportOf("B", 1, same), reportOf("C", 0, same)}, []string{"B"}, []string{"A", "C"}, nil},
		"one's disk differs":     {3, []scrubReport{reportOf("A", 1, same), reportOf("B", 1, differs), reportOf("C", 1, same)}, []string{"B"}, []string{"A", "B", "C"}, nil},
		"one's disk is damaged":  {3, []scrubReport{reportOf("A", 1, same), reportOf("B", 1, damaged), reportOf("C", 1, same)}, []string{"B"}, []string{"A", "B", "C"}, nil},
		"one is silent":          {3, []scrubReport{reportOf("A", 1, same), reportOf("B", 1, same)}, nil, nil, nil},
		"one of two differs":     {3, []scrubReport{reportOf("A", 1, same), reportOf("B", 2, same)}, nil, nil, []string{"A", "B"}},
		"silent, a disk differs": {3, []scrubReport{reportOf("A", 1, same), reportOf("B", 1, differs)}, []string{"B"}, []string{"A", "B"}, nil},
		"only one is heard":      {3, []scrubReport{reportOf("A", 1, same)}, nil, nil, nil},
		"it alone, disk differs": {3, []scrubReport{reportOf("A", 1, differs)}, nil, nil, []string{"A"}},
		"all differ":             {3, []scrubReport{reportOf("A", 1, same), reportOf("B", 2, same), reportOf("C", 3, same)}, nil, nil, []string{"A", "B", "C"}},
		"two of two":             {2, []scrubReport{reportOf("A", 1, same), reportOf("B", 2, same)}, nil, nil, []string{"A", "B"}},
		"two of two, a disk":     {2, []scrubReport{reportOf("A", 1, same), reportOf("B", 1, damaged)}, []string{"B"}, []string{"A", "B"}, nil},
		"alone":                  {1, []scrubReport{reportOf("A", 1, same)}, nil, nil, nil},
		"alone, disk differs":    {1, []scrubReport{reportOf("A", 1, differs)}, nil, nil, []string{"A"}},
		"alone, checksums":       {1, []scrubReport{reportOf("A", 1, damaged)}, []string{"A"}, []string{"A"}, nil},
		"a learner is wrong":     {1, []scrubReport{reportOf("A", 1, same), learner(reportOf("B", 2, same))}, []string{"B"}, []string{"A"}, nil},
		"learners do not vote":   {3, []scrubReport{reportOf("A", 1, same), reportOf("B", 1, same), learner(reportOf("C", 2, same)), learner(reportOf("D", 2, same))}, []string{"C", "D"}, []string{"A", "B"}, nil},
	} {
		v := compareReports(c.voters, c.all)
		var got world.Repair
		if len(v.repairs) > 0 {
			got = v.repairs[0]
		}
		var open []string
		if len(v.open) > 0 {
			open = v.open[0].peers
		}
		if !slices.Equal(got.Damaged, c.damaged) || !slices.Equal(got.Sources, c.sources) || !slices.Equal(open, c.open) {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// Copies that differ from the majority are repaired from the others. A copy that is right in memory and on disk is
// never changed. Reports of less than a majority never change anything.
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
		v := compareReports(voters, all)
		if reported*2 <= voters && len(v.repairs) > 0 {
			t.Fatalf("%d of %d voters decided: %+v", reported, voters, v)
		}
		for _, m := range v.repairs {
			for _, s := range m.Sources {
				for _, w := range all {
					if w.peer == s && right*2 > voters && w.parts[aPart].memory != (world.Digest{7}) {
						t.Fatalf("%s is a source of what is wrong", s)
					}
				}
			}
			if len(m.Sources)*2 <= voters {
				t.Fatalf("%d sources of %d voters", len(m.Sources), voters)
			}
		}
		if right*2 > voters && voters > 1 {
			for _, w := range all {
				f := w.parts[aPart]
				sound := f.memory == world.Digest{7} && f.disk == nodemsg.DiskSame
				mended := len(v.repairs) > 0 && slices.Contains(v.repairs[0].Damaged, w.peer)
				if sound == mended {
					t.Fatalf("%s: sound %v, mended %v", w.peer, sound, mended)
				}
			}
		}
	})
}

func TestChoose(t *testing.T) {
	a, b := partCopy{digest: world.Digest{1}}, partCopy{digest: world.Digest{2}}
	for _, c := range []struct {
		need   int
		offers []partCopy
		ok     bool
	}{
		{1, nil, false}, {1, []partCopy{a}, true}, {2, []partCopy{a}, false}, {2, []partCopy{a, b}, false}, {2, []partCopy{a, b, a}, true},
	} {
		if got, ok := chooseCopy(c.need, c.offers); ok != c.ok || ok && got.digest != a.digest {
			t.Errorf("%d of %+v: %+v %v", c.need, c.offers, got, ok)
		}
	}
}
