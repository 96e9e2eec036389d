package blocktable

import (
	"bytes"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/voxelpopuli/voxeld/chunk"
)

// passableNames are the blocks whose images do not stop a body in Minecraft.
var passableNames = []string{
	"air", "water", "tall_grass", "dry_grass", "fern", "poppy", "dandelion", "cornflower", "daisy", "dead_bush", "reeds",
}

func rowsByName() map[string]minecraftRow {
	rows := make(map[string]minecraftRow)
	for _, row := range minecraftRows {
		rows[row.name] = row
	}
	return rows
}

// Every block has an image that Minecraft has, as solid as the block, and a player can place it with an item.
func TestEveryBlockHasAnImageInMinecraft(t *testing.T) {
	rows, passable := rowsByName(), make(map[uint16]bool)
	for name, row := range rows {
		// Ladders and open doors stop bodies there: the client keeps players out of what they may pass.
		passable[row.image.state] = slices.Contains(passableNames, name) || strings.HasPrefix(name, "torch") || strings.HasPrefix(name, "sign") ||
			strings.HasPrefix(name, "ladder") || strings.Contains(name, "_open")
	}
	for b := chunk.Air; b.Known(); b++ {
		state := ToMinecraft(b)
		if state >= minecraftStates || b != chunk.Air && state == 0 {
			t.Errorf("%s is shown as state %d", b.Name(), state)
		}
		if _, exact := rows[b.Name()]; !exact {
			t.Logf("%s has no image of its own: it is shown as %s", b.Name(), minecraftFallback(b).Name())
			continue
		}
		if b.Solid() == passable[state] {
			t.Errorf("%s: solid is %v, but not of state %d", b.Name(), b.Solid(), state)
		}
		if MinecraftItem(b) == 0 { // air, and states of blocks that are placed otherwise
			continue
		}
		if back, known := FromMinecraft(int32(MinecraftItem(b))); !known || back != b {
			t.Errorf("the item of %s places %s", b.Name(), back.Name())
		}
	}
	if got := ToMinecraft(60000); got != rows["stone"].image.state {
		t.Errorf("an unknown block is shown as state %d", got)
	}
	if minecraftStates > 1<<MinecraftStateBits || minecraftStates <= 1<<(MinecraftStateBits-1) {
		t.Errorf("%d states do not take %d bits", minecraftStates, MinecraftStateBits)
	}
}

// A new block that Minecraft lacks is shown as one that is as solid.
func TestFallbackInMinecraft(t *testing.T) {
	rows := rowsByName()
	for b := chunk.Air; b.Known(); b++ {
		if like := minecraftFallback(b); like.Solid() != b.Solid() || rows[like.Name()].image.state == 0 {
			t.Errorf("%s is shown as %s", b.Name(), like.Name())
		}
	}
}

// Each item becomes one of the blocks that it is listed for, which this world has.
func TestWayBackFromMinecraft(t *testing.T) {
	rows := rowsByName()
	for name, row := range rows {
		for _, item := range row.items {
			b, known := FromMinecraft(int32(item))
			_, here := byName[name]
			if here && !known || known && !slices.Contains(rows[b.Name()].items, item) {
				t.Errorf("item %d becomes %s, not %s", item, b.Name(), name)
			}
		}
		if row.image.item != 0 && !slices.Contains(row.items, row.image.item) {
			t.Errorf("the item of %s does not become it", name)
		}
	}
	if b, known := FromMinecraft(-1); known {
		t.Errorf("item -1 becomes %s", b.Name())
	}
}

func TestPlacing(t *testing.T) {
	for _, c := range []struct {
		block string
		how   Placing
		want  string
	}{
		{"stone", Placing{Looks: "west", Wall: "north", Upper: true}, "stone"},
		{"brick_stairs", Placing{Looks: "east", Wall: "north"}, "brick_stairs"},
		{"brick_stairs", Placing{Looks: "south"}, "brick_stairs_south"},
		{"brick_stairs", Placing{Looks: "east", Wall: "north", Upper: true}, "brick_stairs_upper_east"},
		{"stone_slab", Placing{Looks: "west"}, "stone_slab"},
		{"stone_slab", Placing{Looks: "west", Upper: true}, "stone_slab_upper"},
		{"torch", Placing{Looks: "west"}, "torch"},
		{"torch", Placing{Looks: "west", Wall: "east"}, "torch_on_the_east"},
		{"sign", Placing{Looks: "south"}, "sign_south"},
		{"sign", Placing{Looks: "south", Wall: "west"}, "sign_on_the_west"},
		{"ladder", Placing{Looks: "west", Wall: "east"}, "ladder"},
		{"ladder", Placing{Looks: "west"}, "ladder_west"},
		{"plank_fence_gate", Placing{Looks: "south", Wall: "east"}, "plank_fence_gate_south"},
		{"trapdoor", Placing{Looks: "south", Wall: "east"}, "trapdoor"},
		{"trapdoor", Placing{Looks: "south", Wall: "east", Upper: true}, "trapdoor_upper_east"},
		{"pine_trapdoor", Placing{Looks: "south", Upper: true}, "pine_trapdoor_upper_south"},
		{"pine_door", Placing{Looks: "north", Wall: "east"}, "pine_door_north"},
	} {
		if got := c.how.state(c.block); got != c.want {
			t.Errorf("%s placed as %+v is %s, want %s", c.block, c.how, got, c.want)
		}
	}
	// States that this world has not are those of the block.
	if stone := (Placing{Looks: "west", Wall: "west", Upper: true}).Block(chunk.Stone); stone != chunk.Stone {
		t.Errorf("stone is placed as %s", stone.Name())
	}
}

// Where a block's front is depends on the player, and on what they have clicked.
func TestPlacedBy(t *testing.T) {
	for _, c := range []struct {
		degrees, height float64
		normal          [3]int32
		want            Placing
	}{
		{0, 1, [3]int32{0, 1, 0}, Placing{Looks: "south"}},
		{80, 0, [3]int32{0, -1, 0}, Placing{Looks: "west", Upper: true}},
		{-100, .7, [3]int32{-1, 0, 0}, Placing{Looks: "east", Wall: "east", Upper: true}},
		{179, .2, [3]int32{0, 0, 1}, Placing{Looks: "north", Wall: "north"}},
		{-179, .2, [3]int32{0, 0, -1}, Placing{Looks: "north", Wall: "south"}},
		{0, .2, [3]int32{5, 0, 7}, Placing{Looks: "south"}},
	} {
		if got := PlacedBy(c.degrees*math.Pi/180, c.normal, c.height); got != c.want {
			t.Errorf("%+v is placed as %+v", c, got)
		}
	}
}

// The table is what its generator writes. make test installs what that needs, where it can.
func TestMinecraftTableIsGenerated(t *testing.T) {
	const generator = "../test/e2e/minecraft/"
	if _, err := os.Stat(generator + "node_modules/minecraft-data"); err != nil {
		t.Skip("minecraft-data is missing: run npm --prefix test/e2e/minecraft ci")
	}
	path := filepath.Join(t.TempDir(), "table.go")
	if out, err := exec.CommandContext(t.Context(), "node", generator+"blocktable.mjs", path).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("minecraft_table.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("minecraft_table.go is out of date: run go generate ./blocktable")
	}
}
