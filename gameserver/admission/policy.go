package admission

import (
	"cmp"

	"golang.org/x/time/rate"
)

// Policy is who may play at a gateway, and what a player may take.
type Policy struct {
	MaxView int // the largest view distance granted, in chunks; at most wire.MaxView
	// MotionBudget is the number of bytes a second that the motion of avatars may take in one session; see Budget. In a larger
	// crowd, avatars farther away are sent less exactly.
	MotionBudget   int
	Guests         bool // whether players without a key may join
	Map            bool // whether players are shown a map, and who is near
	PerAddress     int  // players that one IP address (of IPv6, one /64) may have here; loopback is not counted
	EditsPerSecond int  // of one player; see Edits
}

const (
	// defaultBudget is what a crowd of 1,500 in one chunk takes in each session at a precision of a quarter block.
	defaultBudget = 19_200
	defaultEdits  = 20
)

// Budget returns MotionBudget, or the default if it is 0.
func (p Policy) Budget() int { return cmp.Or(p.MotionBudget, defaultBudget) }

// Edits returns EditsPerSecond, or the default if it is 0.
func (p Policy) Edits() rate.Limit { return rate.Limit(cmp.Or(p.EditsPerSecond, defaultEdits)) }
