package chunk

import (
	"slices"
	"testing"
)

// Stairs fill a slab and their quarters.
func TestQuartersOfStairs(t *testing.T) {
	for state := range 2 * stairStates {
		boxes := shapeBoxes[int(stairs)+state]
		fills := func(x, y, z uint8) bool {
			return slices.ContainsFunc(boxes, func(b Box) bool {
				return b.Low[0] <= x && x < b.High[0] && b.Low[1] <= y && y < b.High[1] && b.Low[2] <= z && z < b.High[2]
			})
		}
		slab, other := uint8(4), uint8(12)
		if state >= stairStates {
			slab, other = other, slab
		}
		for quarter := range uint8(4) {
			x, z := 4+quarter%2*8, 4+quarter/2*8
			if !fills(x, slab, z) || fills(x, other, z) != (quarters[state%stairStates]>>quarter&1 == 1) {
				t.Errorf("state %d of stairs fills %v", state, boxes)
			}
		}
	}
}

// Straight stairs become the corners that they become in Minecraft, whatever is around them.
func TestCornersOfStairs(t *testing.T) {
	const left, right = 0, 1
	turn := [2][4]int{{3, 2, 0, 1}, {2, 3, 1, 0}} // to the left, and to the right
	// corners are named by the first of their directions, clockwise
	corner := func(direction, to int) int {
		if to == left {
			return turn[left][direction]
		}
		return direction
	}
	for around := range 5 * 5 * 5 * 5 * 4 {
		direction := around % 4
		var beside [4]Block
		facing := [4]int{}
		for side, rest := 0, around/4; side < 4; side, rest = side+1, rest/5 {
			facing[side] = rest%5 - 1
			if facing[side] >= 0 {
				beside[side] = CobbleSlab + 2 + Block(facing[side]) //nolint:gosec // few
			}
		}
		canBe := func(side int) bool { return facing[side] != direction }
		want := stairs + shape(direction) //nolint:gosec // few
		front, back := facing[direction], facing[direction^1]
		switch {
		case front >= 0 && front/2 != direction/2 && canBe(front^1):
			to := right
			if front == turn[left][direction] {
				to = left
			}
			want = stairs + 4 + shape(corner(direction, to)) //nolint:gosec // few
		case back >= 0 && back/2 != direction/2 && canBe(back):
			to := right
			if back == turn[left][direction] {
				to = left
			}
			want = stairs + 8 + shape(corner(direction, to)) //nolint:gosec // few
		}
		b := StoneStairs + Block(direction) //nolint:gosec // few
		if got := b.Cornered(beside); got.Base() != StoneStairs || got.traits().shape != want {
			t.Fatalf("%s among stairs that go %v becomes %s, want shape %d", b.Name(), facing, got.Name(), want)
		}
		for side := range beside {
			beside[side] = beside[side].with(beside[side].traits().shape + shape(stairStates)) //nolint:gosec // few
		}
		if got := b.Cornered(beside); got != b {
			t.Fatalf("%s below upper stairs becomes %s", b.Name(), got.Name())
		}
	}
}
