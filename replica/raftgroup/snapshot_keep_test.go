package raftgroup

import "testing"

func TestKeptEntries(t *testing.T) {
	s := sending{3: 50, 4: 70}
	for _, c := range [][3]uint64{{40, 0, 40}, {60, 0, 50}, {90, 55, 55}} {
		if got := s.keep(c[0], c[1]); got != c[2] {
			t.Errorf("may be cut up to %d: %v", got, c)
		}
	}
}
