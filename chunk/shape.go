package chunk

// Box is a part of a block's space, in sixteenths of its edge: from Low to High, along x, y and z.
type Box struct{ Low, High [3]uint8 }

// shape is the form of a block. The browser client has the same numbers (web/src/world/block-table.ts). Those with a
// direction are followed by the same shape for the others, in the order of directions.
type shape uint8

const (
	none shape = iota
	cube
	liquid
	plant
	slab // the lower half
	upperSlab
	stairs                                 // see quarters: the high side is there; of corners that and what is to the right of it
	fence  = stairs + 2*shape(stairStates) // joined to what is beside it; bodies stop at the whole block
	pane   = fence + 1                     // as a fence
	torch  = pane + 1
	// The wall is there.
	wallTorch = torch + 1
	// Whoever looks there reads it.
	sign = wallTorch + 4
	// The wall is there.
	wallSign = sign + 4
	ladder   = wallSign + 4
	// Whoever looks there is in front of it.
	door     = ladder + 4
	openDoor = door + 4
	// Whoever looks there passes through it; its wings open to there.
	gate     = openDoor + 4
	openGate = gate + 4
	// The hinge is there: four at the bottom of the block, and four at its top.
	trapdoor     = openGate + 4
	openTrapdoor = trapdoor + 8
	// The parts of fences and panes that are seen: those to the sides are there if something is joined.
	fencePost = openTrapdoor + 8
	fenceArm  = fencePost + 1
	panePost  = fenceArm + 4
	paneArm   = panePost + 1
	shapes    = paneArm + 4
)

// directions are the names of +x, −x, +z and −z.
var directions = [4]string{"east", "west", "south", "north"}

// shapeBoxes has the boxes of each shape.
var shapeBoxes = boxesOfShapes()

func boxesOfShapes() (all [shapes][]Box) {
	whole := []Box{{High: [3]uint8{16, 16, 16}}}
	all[cube], all[fence], all[pane] = whole, whole, whole
	lower := Box{High: [3]uint8{16, 8, 16}}
	all[slab] = []Box{lower}
	upper := Box{Low: [3]uint8{0, 8, 0}, High: [3]uint8{16, 16, 16}}
	all[upperSlab] = []Box{upper}
	all[torch] = []Box{{Low: [3]uint8{7, 0, 7}, High: [3]uint8{9, 10, 9}}}
	all[fencePost] = []Box{{Low: [3]uint8{6, 0, 6}, High: [3]uint8{10, 16, 10}}}
	all[panePost] = []Box{{Low: [3]uint8{7, 0, 7}, High: [3]uint8{9, 16, 9}}}
	for d := range shape(4) {
		turned := func(x0, y0, z0, x1, y1, z1 uint8) Box {
			return Box{[3]uint8{x0, y0, z0}, [3]uint8{x1, y1, z1}}.turned(int(d))
		}
		for half, base := range [...]Box{lower, upper} {
			first, y := stairs+shape(half*stairStates)+d, uint8(8*(1-half)) //nolint:gosec // 0 or 1
			all[first] = []Box{base, turned(8, y, 0, 16, y+8, 16)}
			all[first+4] = []Box{base, turned(8, y, 8, 16, y+8, 16)}
			all[first+8] = []Box{base, turned(8, y, 0, 16, y+8, 16), turned(0, y, 8, 8, y+8, 16)}
		}
		all[wallTorch+d] = []Box{turned(14, 4, 7, 16, 14, 9)}
		all[sign+d] = []Box{turned(7, 0, 7, 9, 7, 9), turned(7, 7, 0, 9, 15, 16)}
		all[wallSign+d] = []Box{turned(14, 4, 0, 16, 12, 16)}
		all[ladder+d] = []Box{turned(15, 0, 0, 16, 16, 16)}
		all[fenceArm+d] = []Box{turned(10, 12, 7, 16, 15, 9), turned(10, 6, 7, 16, 9, 9)}
		all[paneArm+d] = []Box{turned(9, 0, 7, 16, 16, 9)}
		all[door+d] = []Box{turned(0, 0, 0, 3, 16, 16)}
		all[openDoor+d] = []Box{turned(0, 0, 0, 16, 16, 3)}
		all[gate+d] = []Box{
			turned(7, 5, 0, 9, 16, 2), turned(7, 6, 2, 9, 9, 14), turned(7, 9, 6, 9, 12, 10), turned(7, 12, 2, 9, 15, 14), turned(7, 5, 14, 9, 16, 16),
		}
		for _, z := range [...]uint8{0, 14} {
			all[openGate+d] = append(all[openGate+d],
				turned(7, 5, z, 9, 16, z+2), turned(9, 6, z, 13, 9, z+2), turned(9, 12, z, 13, 15, z+2), turned(13, 6, z, 15, 15, z+2))
		}
		all[trapdoor+d] = []Box{{High: [3]uint8{16, 3, 16}}}
		all[trapdoor+4+d] = []Box{{Low: [3]uint8{0, 13, 0}, High: [3]uint8{16, 16, 16}}}
		open := []Box{turned(13, 0, 0, 16, 16, 16)}
		all[openTrapdoor+d], all[openTrapdoor+4+d] = open, open
	}
	return all
}

// turned returns a box that was made for +x as it is for a direction.
func (b Box) turned(direction int) Box {
	x0, z0, x1, z1 := b.Low[0], b.Low[2], b.High[0], b.High[2]
	switch direction {
	case 1:
		x0, z0, x1, z1 = 16-x1, 16-z1, 16-x0, 16-z0
	case 2:
		x0, z0, x1, z1 = 16-z1, x0, 16-z0, x1
	case 3:
		x0, z0, x1, z1 = z0, 16-x1, z1, 16-x0
	}
	b.Low[0], b.Low[2], b.High[0], b.High[2] = x0, z0, x1, z1
	return b
}
