package areacast

import (
	"github.com/voxelpopuli/voxeld/overlay"
)

// contact is an entry of the update id list: a known player.
type contact struct {
	last       overlay.Update // the newest
	receivedAt uint32         // the machine's round in which last arrived, or in which the player was introduced
	hops       uint8          // that last travelled; 0: the player was only introduced, and any update from them counts as new
	age        uint8          // hops and rounds of last, as counted by the buffer
	view       view
	slot       int // index in Machine.order
	kept       int // index in buffer.of; -1: not in the buffer

	lastSent uint32 // the machine's round of the last gossip to the player
	everSent bool   // a gossip was sent to the player at least once
}

// positionAge returns the paper's PositionAge (§3.2): rounds since the update arrived, plus its hops.
func (c *contact) positionAge(now uint32) int { return int(int32(now-c.receivedAt)) + int(c.hops) }

// view is one of the paper's three views, by distance.
type view uint8

const (
	viewIR   view = iota // in interaction range
	viewVR               // in vision range, outside the interaction range
	viewInf              // outside the vision range
	viewNone             // purged: the newest update is too old
)
