package chunk

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "append new blocks to testdata/blocks.txt, and write the browser client's table")

// Ids are stored on disks and in clients: they must never change.
func TestBlockIDs(t *testing.T) {
	want, err := os.ReadFile("testdata/blocks.txt")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for b := Air; b.Known(); b++ {
		got = append(got, b.Name())
	}
	names := strings.Join(got, "\n") + "\n"
	if *update && strings.HasPrefix(names, string(want)) { // appends
		if err := os.WriteFile("testdata/blocks.txt", []byte(names), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if names != string(want) {
		t.Errorf("blocks are %s,\nwant       %s", names, want)
	}
}

func TestBlockTraits(t *testing.T) {
	for b := Air; b.Known(); b++ {
		plant := b >= TallGrass && b <= Reeds
		if b.Plant() != plant {
			t.Errorf("%s plant: %v", b.Name(), b.Plant())
		}
		name := b.Name()
		open := strings.Contains(name, "_open")
		if solid := b != Air && b != Water && !plant && !strings.HasPrefix(name, "torch") && !strings.HasPrefix(name, "ladder") && !b.IsSign() && !open; b.Solid() != solid {
			t.Errorf("%s solid: %v", name, b.Solid())
		}
		leaves := strings.HasSuffix(name, "leaves")
		if clear := b == Air || b == Water || leaves || strings.HasSuffix(name, "glass") || b == Ice || plant || b.Shaped(); b.Opaque() == clear {
			t.Errorf("%s opaque: %v", name, b.Opaque())
		}
		if free := b != Air && b != Bedrock; b.Placeable() != free || b.Breakable() != free {
			t.Errorf("%s placeable: %v, breakable: %v", name, b.Placeable(), b.Breakable())
		}
		original := b.Original()
		if original > Dirt || original.Solid() != b.Solid() || b <= Dirt && original != b {
			t.Errorf("%s is %s to original clients", name, original.Name())
		}
		if base := b.Base(); base > b || base.Base() != base || !strings.HasPrefix(name, base.Name()) || !b.Shaped() && base != b {
			t.Errorf("%s is a state of %s", name, base.Name())
		}
		if whole := len(b.Boxes()) == 1 && b.Boxes()[0] == (Box{High: [3]uint8{16, 16, 16}}); b.Opaque() && !whole || b.Solid() && len(b.Boxes()) == 0 {
			t.Errorf("%s fills %v", name, b.Boxes())
		}
	}
	for b, name := range map[Block]string{
		Wool: "white_wool", Concrete: "white_concrete", ColouredGlass + Colours - 1: "pink_glass", StoneBricks: "stone_bricks",
		DiamondBlock: "diamond_block", StoneSlab: "stone_slab", StoneStairs: "stone_stairs", CobbleSlab: "cobble_slab",
		SmoothStoneSlab: "smooth_stone_slab", PlankFence: "plank_fence", GlassPane: "glass_pane", Torch: "torch", Ladder: "ladder", Door: "door",
		PineDoor: "pine_door", Sign: "sign", lastSign: "sign_on_the_north", PlankFenceGate: "plank_fence_gate", Trapdoor: "trapdoor",
		PineTrapdoor: "pine_trapdoor", PineTrapdoor + 15: "pine_trapdoor_open_upper_north",
	} {
		if b.Name() != name {
			t.Errorf("%d is %s, want %s", b, b.Name(), name)
		}
	}
}

// The boxes of a shape with a direction are those of the first direction, turned.
func TestTurnedShapes(t *testing.T) {
	named := make(map[string]Block)
	for b := StoneSlab; b.Known(); b++ {
		named[b.Name()] = b
	}
	whole := [3]uint8{16, 16, 16}
	for name, want := range map[string][]Box{
		"plank_slab":         {{High: [3]uint8{16, 8, 16}}},
		"plank_slab_upper":   {{Low: [3]uint8{0, 8, 0}, High: whole}},
		"plank_stairs":       {{High: [3]uint8{16, 8, 16}}, {Low: [3]uint8{8, 8, 0}, High: whole}},
		"plank_stairs_west":  {{High: [3]uint8{16, 8, 16}}, {Low: [3]uint8{0, 8, 0}, High: [3]uint8{8, 16, 16}}},
		"plank_stairs_south": {{High: [3]uint8{16, 8, 16}}, {Low: [3]uint8{0, 8, 8}, High: whole}},
		"plank_stairs_north": {{High: [3]uint8{16, 8, 16}}, {Low: [3]uint8{0, 8, 0}, High: [3]uint8{16, 16, 8}}},
		"sign":               {{Low: [3]uint8{7, 0, 7}, High: [3]uint8{9, 7, 9}}, {Low: [3]uint8{7, 7, 0}, High: [3]uint8{9, 15, 16}}},
		"sign_on_the_south":  {{Low: [3]uint8{0, 4, 14}, High: [3]uint8{16, 12, 16}}},
		"ladder_north":       {{High: [3]uint8{16, 16, 1}}},
		"door_south":         {{High: [3]uint8{16, 16, 3}}},
		"door_open_south":    {{Low: [3]uint8{13, 0, 0}, High: whole}},
		"trapdoor_south":     {{High: [3]uint8{16, 3, 16}}},

		"pine_trapdoor_upper_west":      {{Low: [3]uint8{0, 13, 0}, High: whole}},
		"pine_trapdoor_open_upper_west": {{High: [3]uint8{3, 16, 16}}},
		"birch_plank_fence_gate_north": {
			{Low: [3]uint8{0, 5, 7}, High: [3]uint8{2, 16, 9}},
			{Low: [3]uint8{2, 6, 7}, High: [3]uint8{14, 9, 9}},
			{Low: [3]uint8{6, 9, 7}, High: [3]uint8{10, 12, 9}},
			{Low: [3]uint8{2, 12, 7}, High: [3]uint8{14, 15, 9}},
			{Low: [3]uint8{14, 5, 7}, High: [3]uint8{16, 16, 9}},
		},
	} {
		if b, ok := named[name]; !ok || !slices.Equal(b.Boxes(), want) {
			t.Errorf("%s (%v) fills %v, want %v", name, ok, b.Boxes(), want)
		}
	}
}

func TestUnknownBlock(t *testing.T) {
	b := Block(len(blocks))
	if b.Known() || !b.Solid() || !b.Opaque() || b.Placeable() || b.Breakable() || b.Plant() || b.Original() != Stone || b.Name() != fmt.Sprint("block ", len(blocks)) {
		t.Errorf("%d: known %v, solid %v, opaque %v, placeable %v, breakable %v, original %d, name %q",
			b, b.Known(), b.Solid(), b.Opaque(), b.Placeable(), b.Breakable(), b.Original(), b.Name())
	}
}

// The browser client has the same table: its file is written from this one.
func TestBlockTable(t *testing.T) {
	const file = "../web/src/world/block-table.ts"
	got := clientTable()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is out of date: go test ./chunk -run TestBlockTable -update", file)
	}
}

// clientTable returns the browser client's table of blocks.
func clientTable() string {
	tiles := clientTiles()
	layer := func(b *traits, name string) int {
		if b.group >= wool && b.group <= glass {
			return len(tiles) + int(b.base-Wool)
		}
		return slices.Index(tiles, name)
	}
	var runs, names strings.Builder
	var run []int // the current one: count, then its first block's properties
	end := func() {
		if run != nil {
			runs.WriteString(strings.Trim(strings.ReplaceAll(fmt.Sprint(run), " ", ","), "[]") + " ")
		}
	}
	for id := range blocks {
		b := &blocks[id]
		of := Block(id).Tiles()
		top, side, bottom := layer(b, of[0]), layer(b, of[1]), layer(b, of[2])
		flags := bit(b.passable) | bit(b.clear)<<1 | bit(b.fixed)<<2 | bit(b.leafy)<<3 | int(b.pass)<<4 | bit(b.cold)<<6
		state := id - int(b.base)
		row := []int{int(b.shape), flags, int(b.glow | b.dims<<4), int(b.group) | int(b.sound)<<4, top, side, bottom, state}
		if next := after(run); slices.Equal(next, row) {
			run[0]++
		} else {
			end()
			run = append([]int{1}, row...)
		}
		switch words := strings.ReplaceAll(b.name, "_", " "); {
		case state != 0:
		case b.group < wool || b.group > glass:
			names.WriteString(strings.ToUpper(words[:1]) + words[1:] + ",")
		case (b.base-Wool)%Colours == 0:
			names.WriteString(strings.TrimPrefix(words, "white") + ",")
		}
	}
	end()
	var boxes strings.Builder
	for _, of := range shapeBoxes {
		var corners []string
		for _, box := range of {
			corners = append(corners, fmt.Sprintf("[%d,%d,%d,%d,%d,%d]", box.Low[0], box.Low[1], box.Low[2], box.High[0], box.High[1], box.High[2]))
		}
		fmt.Fprintf(&boxes, "  [%s],\n", strings.Join(corners, ","))
	}
	quoted := func(all []string) string { return "'" + strings.Join(all, "','") + "'" }
	return `// The server's table of blocks (package chunk). It is written by
//   go test ./chunk -run TestBlockTable -update
// and not by hand.

/** The names of the block textures, by layer. Those of wool, concrete and glass follow, 16 colours each. */
// prettier-ignore
export const TILES = [` + quoted(tiles) + `] as const

/** The groups of the inventory. */
// prettier-ignore
export const GROUPS = [` + quoted(groups[:]) + `] as const

/** What blocks sound like. */
// prettier-ignore
export const SOUNDS = [` + quoted(sounds[:]) + `] as const

/** The colours of wool, concrete and glass. */
// prettier-ignore
export const COLOURS = [` + quoted(capitalized(colours[:])) + `] as const

/** The names of blocks, without states. One that begins with a space is that of 16, after their colours. */
// prettier-ignore
export const NAMES = '` + strings.TrimSuffix(names.String(), ",") + `'

/** The numbers of shapes. Those with a direction are followed by the same for the others: +x −x +z −z. Posts, by their arms. */
` + fmt.Sprintf(`export const NONE = %d
export const CUBE = %d
export const LIQUID = %d
export const PLANT = %d
export const SLAB = %d
export const UPPER_SLAB = %d
export const STAIRS = %d
export const FENCE = %d
export const PANE = %d
export const TORCH = %d
export const SIGN = %d
export const WALL_SIGN = %d
export const LADDER = %d
export const DOOR = %d
export const OPEN_DOOR = %d
export const GATE = %d
export const OPEN_GATE = %d
export const TRAPDOOR = %d
export const OPEN_TRAPDOOR = %d
export const FENCE_POST = %d
export const PANE_POST = %d
`, none, cube, liquid, plant, slab, upperSlab, stairs, fence, pane, torch, sign, wallSign, ladder, door, openDoor, gate, openGate, trapdoor, openTrapdoor, fencePost, panePost) + `
/** The boxes of each shape, in sixteenths of a block: low and high corner. */
// prettier-ignore
export const SHAPE_BOXES: readonly (readonly (readonly number[])[])[] = [
` + boxes.String() + `]

/**
 * The properties of blocks, in order of their ids, in runs of similar ones: their number, then of the first its shape, flags (1 passable,
 * 2 clear, 4 fixed, 8 leafy, 16 cutout, 32 water, 64 cold), light (glow + 16·dims), group + 16·sound, the layers of its top, side and
 * bottom, and the number of the state. In a run, the layers grow by one; of slabs and all shapes after them, the shape and the number of
 * the state do.
 */
// prettier-ignore
export const RUNS =
  '` + strings.TrimSpace(runs.String()) + "'\n"
}

// after returns the properties of the block with which a run goes on; nil if there is no run.
func after(run []int) []int {
	if run == nil {
		return nil
	}
	row := slices.Clone(run[1:])
	if shape(row[0]) >= slab {
		row[0] += run[0]
		row[7] += run[0]
		return row
	}
	for i := 4; i < 7; i++ {
		row[i] += run[0]
	}
	return row
}

// clientTiles returns the names of textures in the order in which blocks have them, but those of wool, concrete and
// glass.
func clientTiles() []string {
	tiles := []string{"unknown"}
	for id, b := range blocks {
		for _, name := range Block(id).Tiles() {
			if !slices.Contains(tiles, name) && (b.group < wool || b.group > glass) {
				tiles = append(tiles, name)
			}
		}
	}
	return tiles
}

func capitalized(names []string) []string {
	all := slices.Clone(names)
	for i, name := range all {
		all[i] = strings.ToUpper(name[:1]) + strings.ReplaceAll(name[1:], "_", " ")
	}
	return all
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Fences are joined to fences and gates, panes to panes, and both to cubes and doors.
func TestJoins(t *testing.T) {
	for _, c := range []struct {
		fence, beside Block
		want          bool
	}{
		{PlankFence, PinePlankFence, true},
		{PlankFence, GlassPane, false},
		{GlassPane, GlassPane, true},
		{GlassPane, Glass, true},
		{PlankFence, Door + 4, true},
		{PlankFence, PlankFenceGate + 8, true},
		{PlankFence, Trapdoor, false},
		{GlassPane, PlankFenceGate, false},
		{PlankFence, TallGrass, false},
		{PlankFence, StoneSlab, false},
		{PlankFence, Torch, false},
	} {
		if got := c.fence.Joins(c.beside); got != c.want || !c.fence.Joinable() {
			t.Errorf("%s is joined to %s: %v", c.fence.Name(), c.beside.Name(), got)
		}
	}
}

// Doors, gates and trapdoors are opened and closed in each direction, and nothing else is.
func TestDoors(t *testing.T) {
	for b := Air; b.Known(); b++ {
		name := b.Name()
		trapdoor := strings.Contains(name, "trapdoor")
		door := strings.Contains(name, "door") && !trapdoor
		switch used := strings.Replace(name+"_east", "_open", "", 1); {
		case b.Door() != door || b.Opens() != (door || trapdoor || strings.Contains(name, "gate")):
			t.Errorf("%s is a door: %v, and opens: %v", b.Name(), b.Door(), b.Opens())
		case b.Climbable() != (strings.HasPrefix(name, "ladder") || trapdoor && !b.Solid()):
			t.Errorf("%s is climbable: %v", name, b.Climbable())
		case b.Opens() && !strings.HasPrefix(used, strings.Replace(b.Used().Name(), "_open", "", 1)):
			t.Errorf("%s becomes %s", name, b.Used().Name())
		case b.Opens() && (b.Used().Base() != b.Base() || b.Used().Solid() == b.Solid() || b.Used().Used() != b):
			t.Errorf("%s becomes %s", b.Name(), b.Used().Name())
		}
	}
}
