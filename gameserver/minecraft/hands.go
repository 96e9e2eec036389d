package minecraft

import (
	"github.com/voxelpopuli/voxeld/blocktable"
	"github.com/voxelpopuli/voxeld/gameserver/games"
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

// item returns the item in a hand: 0 is the right one.
func (h *hands) item(hand int32) int32 {
	if hand != 0 {
		return h.offhand
	}
	return h.bar[h.selected]
}

// fill puts the first blocks into the player's hands.
func (h *hands) fill(put func(packet)) {
	for i, b := range games.AtHand {
		h.bar[i] = int32(blocktable.MinecraftItem(b))
		putSlot(int16(firstBarSlot+i), h.bar[i], 1, put) //nolint:gosec // few
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

// readSlot notes an item that the player has chosen, and confirms it. What belongs to the item is ignored.
func (h *hands) readSlot(f *fields, put func(packet)) {
	slot, item, count := f.i16(), int32(0), byte(0)
	if present := f.u8() != 0; present {
		item, count = f.varint(), f.u8()
	}
	n := int(slot) - firstBarSlot
	switch {
	case f.bad, item < 0, slot < 0, slot > offhandSlot: // an item that is dropped has no slot
		return
	case slot == offhandSlot:
		h.offhand = item
	case n >= 0 && n < len(h.bar):
		h.bar[n] = item
	}
	putSlot(slot, item, count, put)
}

// putSlot shows what is in a slot.
func putSlot(slot int16, item int32, count byte, put func(packet)) {
	put(begin(packetSlot).u8(0).varint(0).i16(slot).item(item, count))
}

// item appends some of an item; 0 is none.
func (p packet) item(item int32, count byte) packet {
	if item == 0 {
		return p.u8(0)
	}
	return p.u8(1).varint(int(item)).u8(count, 0)
}
