package grid

import (
	"math/bits"
	"testing"

	"pgregory.net/rapid"
)

func TestHammingCellsDifferInOneBit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCell(t)
		all := c.Hamming()
		seen := make(map[Cell]bool)
		for _, other := range all {
			seen[other] = true
			if differ := bits.OnesCount16(c.Label.Gray() ^ other.Label.Gray()); differ != 1 || other.Label.Len() != c.Label.Len() {
				t.Fatalf("%v and %v differ in %d bits", c, other, differ)
			}
		}
		if len(seen) != c.Label.Len() {
			t.Fatalf("%v has %d such cells", c, len(seen))
		}
	})
}
