package backup

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestName(t *testing.T) {
	for text, want := range map[string]Name{
		"Commons-0123456789ab-20260102T030405Z.voxback":                       {World: "Commons-0123456789ab", Begun: "20260102T030405Z"},
		"Commons-0123456789ab-20260102T030405Z-012.voxback":                   {World: "Commons-0123456789ab", Begun: "20260102T030405Z", Number: 12},
		"Commons-0123456789ab-20260102T030405Z-unsigned.voxback":              {World: "Commons-0123456789ab", Begun: "20260102T030405Z", Kind: Unsigned},
		"Commons-0123456789ab-20260102T030405Z-003-incomplete.voxback":        {World: "Commons-0123456789ab", Begun: "20260102T030405Z", Number: 3, Kind: Incomplete},
		"a-20200102T030405Z-0123456789ab-20260102T030405Z-001.voxback":        {World: "a-20200102T030405Z-0123456789ab", Begun: "20260102T030405Z", Number: 1},
		"20200102T030405Z-001-0123456789ab-20260102T030405Z-unsigned.voxback": {World: "20200102T030405Z-001-0123456789ab", Begun: "20260102T030405Z", Kind: Unsigned},
	} {
		got, ok := ParseName("some/where/" + text)
		if diff := cmp.Diff(want, got); diff != "" || !ok || got.String() != text {
			t.Errorf("%s: %v, %v\n%s", text, got, ok, diff)
		}
	}
	for _, text := range []string{
		"", "world.voxback", "Commons-0123456789ab-20260102T030405Z", "Commons-0123456789ab-20260102T030405Z.voxback.123",
		"Commons-0123456789ab-20261302T030405Z.voxback", "Commons-0123456789ab-20260102T030405Z-000.voxback",
		"Commons-0123456789ab-20260102T030405Z-1.voxback", "Commons-0123456789ab-20260102T030405Z-1000.voxback",
	} {
		if n, ok := ParseName(text); ok && n.World != "Commons-0123456789ab-20260102T030405Z" {
			t.Errorf("%q passes for %+v", text, n)
		}
	}
}

// A chain ends before a gap, and files in other directories are no part of it.
func TestFileChains(t *testing.T) {
	at := func(dir, day string, number int) string {
		return dir + "/" + Name{World: "W-0", Begun: "202601" + day + "T000000Z", Number: number}.String()
	}
	files := []string{
		at("b", "01", 0), at("a", "02", 1), at("a", "02", 0), at("a", "02", 3), at("a", "01", 1), at("b", "03", 0), "a/other", at("b", "01", 1),
		"b/" + Name{World: "W-0", Begun: "20260103T000000Z", Number: 1, Kind: Unsigned}.String(),
	}
	want := []FileChain{
		{Name: Name{World: "W-0", Begun: "20260101T000000Z"}, Loose: []string{at("a", "01", 1)}},
		{Name: Name{World: "W-0", Begun: "20260101T000000Z"}, Files: []string{at("b", "01", 0), at("b", "01", 1)}},
		{Name: Name{World: "W-0", Begun: "20260102T000000Z"}, Files: []string{at("a", "02", 0), at("a", "02", 1)}, Loose: []string{at("a", "02", 3)}},
		{Name: Name{World: "W-0", Begun: "20260103T000000Z"}, Files: []string{at("b", "03", 0)}},
	}
	if diff := cmp.Diff(want, FileChains(files)); diff != "" {
		t.Error(diff)
	}
}

// Whatever times the clock gives chains, the one that was just made stays, with its files in order; at most as many as
// should be kept are left of those before it; and whatever is deleted, each chain that is left has all files up to one
// of its own.
func TestSurplus(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keep := rapid.IntRange(1, 4).Draw(t, "keep")
		var files []string
		for range rapid.IntRange(1, 20).Draw(t, "chains") {
			begun := fmt.Sprintf("2026%02d01T000000Z", rapid.IntRange(1, 12).Draw(t, "month")) // the clock is set to any time
			newest := Name{World: "W-0", Begun: begun}
			files = slices.DeleteFunc(files, func(file string) bool { // a chain begun at the same second replaces the other
				n, _ := ParseName(file)
				return n.Begun == begun
			})
			for number := range rapid.IntRange(1, 3).Draw(t, "length") {
				newest.Number = number
				files = append(files, newest.String())
				surplus := Surplus(append(files, "W-1-20250101T000000Z.voxback"), newest, keep)
				interrupted := surplus[:rapid.IntRange(0, len(surplus)).Draw(t, "deleted")]
				for _, gone := range [][]string{interrupted, surplus} {
					left := slices.DeleteFunc(slices.Clone(files), func(file string) bool { return slices.Contains(gone, file) })
					counted := 0
					for _, c := range FileChains(left) {
						if len(c.Loose) > 0 {
							t.Fatalf("%v lack their full backup, after %v were deleted", c.Loose, gone)
						}
						if c.Begun <= begun {
							counted++
						}
					}
					if !slices.Contains(left, newest.String()) || len(gone) == len(surplus) && counted > keep {
						t.Fatalf("%v is left of %v", left, files)
					}
				}
				files = slices.DeleteFunc(files, func(file string) bool { return slices.Contains(surplus, file) })
			}
		}
	})
}

// Chains without a full backup are not counted, and go with the older ones.
func TestSurplusCountsCompleteChains(t *testing.T) {
	files := []string{
		"W-0-20260101T000000Z.voxback", "W-0-20260102T000000Z-001.voxback", "W-0-20260103T000000Z.voxback", "W-0-20260104T000000Z-001.voxback",
		"W-0-20260105T000000Z.voxback", "W-0-20270101T000000Z.voxback",
	}
	newest, _ := ParseName(files[4])
	want := []string{files[1], files[0]}
	if got := Surplus(files, newest, 2); !slices.Equal(got, want) {
		t.Errorf("%v are deleted, want %v", got, want)
	}
}
