package clocks

import "github.com/voxelpopuli/voxeld/vclock"

// event is one event with its stamps in all clocks.
type event struct {
	stamp  vclock.Stamp
	author int
	number uint32   // among its author's events
	whole  []uint32 // the author's whole vector clock, by player
	vision []int    // the players whom the author had in vision
}

// follows reports whether the event truly comes after another, by whole vector clocks.
func (e *event) follows(other *event) bool {
	return e != other && e.whole[other.author] >= other.number
}
