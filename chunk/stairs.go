package chunk

import (
	"math/bits"
	"slices"
)

// This file makes corners of stairs. The browser's client does the same (web/src/world/stairs.ts).

// quarters are the quarters of a block that stairs fill besides their slab: of those that are straight, of outer and of
// inner corners, in each direction. Bit 0 is at the low x and z, bit 1 at the high x, bits 2 and 3 at the high z. The
// first four are also the quarters at each side of a block.
var quarters = [12]uint8{0b1010, 0b0101, 0b1100, 0b0011, 0b1000, 0b0001, 0b0100, 0b0010, 0b1110, 0b0111, 0b1101, 0b1011}

// stairStates is how many states there are of stairs at the bottom of their block, and how many of those at its top.
const stairStates = len(quarters)

// Stairs reports whether the block is stairs, straight or a corner.
func (b Block) Stairs() bool {
	shape := b.traits().shape
	return shape >= stairs && shape < fence
}

// Cornered returns straight stairs as they are between other blocks, in the order of directions: they become an outer
// corner if stairs that begin at their high side go another way, and an inner corner if such stairs end at their low
// side, unless stairs beside them go on as they do. Other blocks stay what they are.
func (b Block) Cornered(beside [4]Block) Block {
	state := int(b.traits().shape) - int(stairs)
	direction, half := state%stairStates, state/stairStates
	if !b.Stairs() || direction >= 4 {
		return b
	}
	// met returns the quarters at a side that touch a quarter of the stairs there.
	met := func(side int) uint8 {
		state := int(beside[side].traits().shape) - int(stairs)
		if !beside[side].Stairs() || state/stairStates != half {
			return 0
		}
		q := quarters[state%stairStates]
		if side < 2 {
			q = q&0b0101<<1 | q&0b1010>>1
		} else {
			q = q<<2 | q>>2
		}
		return q & quarters[side]
	}
	high := quarters[direction]
	// goesOn reports whether the stairs beside a quarter are as straight as these.
	goesOn := func(quarter uint8) bool {
		for side := range 4 {
			if side/2 != direction/2 && quarters[side]&quarter != 0 {
				return met(side) == high&quarters[side]
			}
		}
		return false
	}
	become := high
	if q := met(direction ^ 1); bits.OnesCount8(q) == 1 && !goesOn(q) {
		become = high | q
	}
	if q := met(direction); bits.OnesCount8(q) == 1 && !goesOn(high^q) {
		become = q
	}
	return b.with(stairs + shape(half*stairStates+slices.Index(quarters[:], become))) //nolint:gosec // few
}

// with returns the state of a block that has a shape.
func (b Block) with(s shape) Block {
	for state := range blocks {
		if blocks[state].base == b.Base() && blocks[state].shape == s {
			return Block(state) //nolint:gosec // short
		}
	}
	return b
}
