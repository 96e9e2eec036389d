package luanti

import (
	"github.com/voxelpopuli/voxeld/blocktable"
	"github.com/voxelpopuli/voxeld/chunk"
)

// upperHalves is added to the number of a door's node where it is the upper half, which has a texture of its own. There
// are fewer blocks.
const upperHalves = 1024

// nodeOf returns the number of a block's node, by the block below.
func nodeOf(b, below chunk.Block) uint16 {
	if b.Door() && below == b {
		return blocktable.ToLuanti(b) + upperHalves
	}
	return blocktable.ToLuanti(b)
}

// hasStates reports whether a block has states, of which one is chosen when it is placed.
func hasStates(b chunk.Block) bool { return (b + 1).Known() && (b+1).Base() == b }

// joined appends the nodes to which a block's node is joined.
func (p packet) joined(b chunk.Block) packet {
	if !b.Joinable() {
		return p.u16(0)
	}
	var all packet
	count := uint16(0)
	for other := chunk.Air + 1; other.Known(); other++ {
		if b.Joins(other) {
			all = all.u16(blocktable.ToLuanti(other))
			count++
			if other.Door() {
				all = all.u16(nodeOf(other, other))
				count++
			}
		}
	}
	return append(p.u16(count), all...)
}

// Types of boxes.
const (
	boxVersion = 6
	boxWhole   = 0
	boxFixed   = 1
	boxJoined  = 4
)

// boxes appends what a block fills: when it is drawn, pointed at, and run into.
func (p packet) boxes(b chunk.Block) packet {
	switch {
	case b.Joinable():
		middle, arms := b.Arms()
		east, west, south, north := arms[0], arms[1], arms[2], arms[3]
		p = p.u8(boxVersion, boxJoined).list(middle).list(nil).list(nil) // above and below
		p = p.list(south).list(west).list(north).list(east)              // front, left, back and right there
		for range 7 {                                                    // where nothing is joined: to each side, and to none
			p = p.list(nil)
		}
		if b == chunk.GlassPane { // alone
			p = p.list(append(append(append(append([]chunk.Box(nil), east...), west...), south...), north...))
		} else {
			p = p.list(nil)
		}
		return p.u8(boxVersion, boxWhole).u8(boxVersion, boxFixed).list(b.Boxes())
	case b.Shaped():
		for range 3 {
			p = p.u8(boxVersion, boxFixed).list(b.Boxes())
		}
		return p
	}
	return p.u8(boxVersion, boxWhole, boxVersion, boxWhole, boxVersion, boxWhole)
}

// list appends boxes, in the client's space.
func (p packet) list(boxes []chunk.Box) packet {
	p = p.u16(uint16(len(boxes))) //nolint:gosec // a few
	place := func(sixteenths uint8) float64 { return (float64(sixteenths)/16 - middle) * unit }
	for _, b := range boxes {
		p = p.f32(place(b.Low[0]), place(b.Low[1]), place(16-b.High[2]))
		p = p.f32(place(b.High[0]), place(b.High[1]), place(16-b.Low[2]))
	}
	return p
}
