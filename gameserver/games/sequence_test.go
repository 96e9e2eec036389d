package games

import (
	"testing"
	"time"
)

// Edits are numbered one after the other, and near the time also when a client has played for days.
func TestSequence(t *testing.T) {
	begun := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	s := NewSequence(uint64(begun.UnixMicro()), begun)
	last := s.Next(begun)
	if last != uint64(begun.UnixMicro()) {
		t.Errorf("the first number is %d", last)
	}
	for played := time.Duration(0); played < 50*time.Hour; played += 7 * time.Minute {
		now := begun.Add(played)
		for range 3 {
			number := s.Next(now)
			if away := now.Sub(time.UnixMicro(int64(number))); number <= last || away.Abs() > 2*sequenceEvery {
				t.Fatalf("after %v the number is %d after %d, %v away", played, number, last, away)
			}
			last = number
		}
	}
}
