package main

import (
	"errors"
	"testing"
)

var errSilent = errors.New("silent")

// led returns a negative number of players as an error.
func led(players int) (int, error) {
	if players < 0 {
		return 0, errSilent
	}
	return players, nil
}

// If the leader does not answer, no other daemon is taken for it.
func TestLeaderIsFoundOrMissed(t *testing.T) {
	if leader, err := leaderOf([]int{0, 900, 100}, led); err != nil || leader != 1 {
		t.Errorf("%d leads: %v", leader, err)
	}
	if leader, err := leaderOf([]int{0, -1, 100}, led); !errors.Is(err, errSilent) {
		t.Errorf("one does not answer, and %d leads: %v", leader, err)
	}
}
