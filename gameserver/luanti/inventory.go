package luanti

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/voxelpopuli/voxeld/chunk"
)

// slotsAcross is how many slots are in a row. The first row is at hand.
const slotsAcross = 8

// atHand are the blocks at hand at first.
var atHand = [slotsAcross]chunk.Block{
	chunk.Stone, chunk.Cobble, chunk.Brick, chunk.Dirt, chunk.Planks, chunk.Log, chunk.Glass, chunk.Lamp,
}

// firstSlots are the slots of a player who joins: a block of each kind that can be placed. They are never used up.
func firstSlots() []chunk.Block {
	slots := append([]chunk.Block(nil), atHand[:]...)
	for b := chunk.Air + 1; b.Known(); b++ {
		if b.Placeable() && !isAtHand(b) {
			slots = append(slots, b)
		}
	}
	for len(slots)%slotsAcross != 0 {
		slots = append(slots, chunk.Air)
	}
	return slots
}

func isAtHand(b chunk.Block) bool {
	for _, h := range atHand {
		if h == b {
			return true
		}
	}
	return false
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
	rows := len(slots) / slotsAcross
	form := fmt.Sprintf("size[%d,%d]list[current_player;main;0,%g;%d,%d;%d]list[current_player;main;0,%g;%d,1;]",
		slotsAcross, rows+1, 0.0, slotsAcross, rows-1, slotsAcross, float64(rows-1)+.5, slotsAcross)
	return begin(toInventoryForm).blob([]byte(form))
}

// move exchanges two slots, if a player's inventory action does that: "Move 1 current_player main 3 current_player main 0". Others, as
// dropping a block, have no effect.
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
