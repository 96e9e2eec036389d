package main

import (
	"context"
	"errors"
	"testing"
)

// leads is a daemon that leads so many players; a negative number is an error.
type leads int

var errSilent = errors.New("silent")

func (l leads) PlayersLed(context.Context) (int, error) {
	if l < 0 {
		return 0, errSilent
	}
	return int(l), nil
}

// If the leader does not answer, no other daemon is taken for it.
func TestLeaderIsFoundOrMissed(t *testing.T) {
	if leader, err := leaderOf(t.Context(), []leads{0, 900, 100}); err != nil || leader != 1 {
		t.Errorf("%d leads: %v", leader, err)
	}
	if leader, err := leaderOf(t.Context(), []leads{0, -1, 100}); !errors.Is(err, errSilent) {
		t.Errorf("one does not answer, and %d leads: %v", leader, err)
	}
}
