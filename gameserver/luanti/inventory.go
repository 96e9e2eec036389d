package luanti

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/voxelpopuli/voxeld/chunk"
)

const (
	// slotsAcross is how many slots are at hand: the first ones.
	slotsAcross = 8
	// formAcross is how many of the others are in a row.
	formAcross = 16
)

// atHand are the blocks at hand at first.
var atHand = [slotsAcross]chunk.Block{
	chunk.Stone, chunk.Cobble, chunk.Brick, chunk.Dirt, chunk.Planks, chunk.Log, chunk.Glass, chunk.Lamp,
}

// firstSlots are the slots of a player who joins: a block of each kind that can be placed, without its states. They are
// never used up.
func firstSlots() []chunk.Block {
	slots := slices.Clone(atHand[:])
	for b := chunk.Air + 1; b.Known(); b++ {
		if b.Placeable() && b.Base() == b && !slices.Contains(atHand[:], b) {
			slots = append(slots, b)
		}
	}
	for (len(slots)-slotsAcross)%formAcross != 0 {
		slots = append(slots, chunk.Air)
	}
	return slots
}

// inventory returns the packet with the slots.
func inventory(slots []chunk.Block) packet {
	var text strings.Builder
	fmt.Fprintf(&text, "List main %d\nWidth 0\n", len(slots))
	for _, b := range slots {
		if b == chunk.Air {
			text.WriteString("Empty\n")
		} else {
			fmt.Fprintf(&text, "Item %s\n", nodeName(b))
		}
	}
	text.WriteString("EndInventoryList\nEndInventory\n")
	return append(begin(toInventory), text.String()...)
}

// inventoryForm returns the packet with the form that the client shows for the inventory.
func inventoryForm(slots []chunk.Block) packet {
	rows := (len(slots) - slotsAcross) / formAcross
	form := fmt.Sprintf("size[%d,%d.5]list[current_player;main;0,0;%d,%d;%d]list[current_player;main;%d,%d.5;%d,1;]",
		formAcross, rows+1, formAcross, rows, slotsAcross, (formAcross-slotsAcross)/2, rows, slotsAcross)
	return begin(toInventoryForm).blob([]byte(form))
}

// move exchanges two slots, if a player's inventory action does that: "Move 1 current_player main 3 current_player main
// 0". Others, as dropping a block, have no effect.
func move(slots []chunk.Block, action string) {
	words := strings.Fields(action)
	if len(words) != 8 || words[0] != "Move" {
		return
	}
	from, err := strconv.Atoi(words[4])
	if err != nil || from < 0 || from >= len(slots) {
		return
	}
	to, err := strconv.Atoi(words[7])
	if err != nil || to < 0 || to >= len(slots) {
		return
	}
	slots[from], slots[to] = slots[to], slots[from]
}
