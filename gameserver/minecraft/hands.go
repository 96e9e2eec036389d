package minecraft

import (
	"github.com/voxelpopuli/voxeld/blocktable"
	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/wire"
)

// Slots of the inventory.
const (
	firstBarSlot = 36
	offhandSlot  = 45
)

// hands are the items that the player can place.
type hands struct {
	bar      [9]int32 // 0: none
	offhand  int32
	selected int
}

// firstBar are the blocks at hand at first.
var firstBar = [...]chunk.Block{
	chunk.Stone, chunk.Cobble, chunk.Brick, chunk.Dirt, chunk.Planks, chunk.Log, chunk.Leaves, chunk.Glass, chunk.Lamp,
}

// fill puts the first blocks into the player's hands.
func (h *hands) fill(put func(packet)) {
	for i, b := range firstBar {
		item := blocktable.MinecraftItem(b)
		h.bar[i] = int32(item)
		put(begin(packetSlot).u8(0).varint(0).i16(int16(firstBarSlot+i)).u8(1).varint(int(item)).u8(1, 0)) //nolint:gosec // few
	}
}

// readSelected notes which item is in the player's hand.
func (h *hands) readSelected(f *fields) error {
	slot := int(f.i16())
	if slot < 0 || slot >= len(h.bar) {
		return wire.Refuse(wire.FailBadValue, "There is no slot %d.", slot)
	}
	if !f.bad {
		h.selected = slot
	}
	return nil
}

// readSlot notes an item that the player has chosen. What belongs to the item is ignored.
func (h *hands) readSlot(f *fields) {
	slot, item := int(f.i16()), int32(0)
	if present := f.u8() != 0; present {
		item = f.varint()
	}
	switch {
	case f.bad:
	case slot == offhandSlot:
		h.offhand = item
	case slot >= firstBarSlot && slot < firstBarSlot+len(h.bar):
		h.bar[slot-firstBarSlot] = item
	}
}
