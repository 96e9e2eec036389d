package chunk

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/blocks.json anew")

// Ids are stored on disks and in clients: they must never change.
func TestBlockIDs(t *testing.T) {
	want := "air stone grass dirt sand water log leaves snow coal_ore iron_ore gold_ore diamond_ore gravel clay " +
		"bedrock planks cobble glass brick lamp ice snowy_grass cactus birch_log birch_leaves " +
		"pine_log pine_leaves dry_leaves tall_grass dry_grass fern poppy dandelion cornflower daisy dead_bush reeds"
	var got []string
	for b := Air; b.Known(); b++ {
		got = append(got, b.Name())
	}
	if names := strings.Join(got, " "); names != want {
		t.Errorf("blocks are %s,\nwant       %s", names, want)
	}
}

func TestBlockTraits(t *testing.T) {
	for b := Air; b.Known(); b++ {
		plant := b >= TallGrass
		if b.Plant() != plant {
			t.Errorf("%s plant: %v", b.Name(), b.Plant())
		}
		if solid := b != Air && b != Water && !plant; b.Solid() != solid {
			t.Errorf("%s solid: %v", b.Name(), b.Solid())
		}
		leaves := strings.HasSuffix(b.Name(), "leaves")
		if clear := b == Air || b == Water || leaves || b == Glass || b == Ice || plant; b.Opaque() == clear {
			t.Errorf("%s opaque: %v", b.Name(), b.Opaque())
		}
		if free := b != Air && b != Bedrock; b.Placeable() != free || b.Breakable() != free {
			t.Errorf("%s placeable: %v, breakable: %v", b.Name(), b.Placeable(), b.Breakable())
		}
		original := b.Original()
		if original > Dirt || original.Solid() != b.Solid() || b <= Dirt && original != b {
			t.Errorf("%s is %s to original clients", b.Name(), original.Name())
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

// web/test/blocks.test.ts compares testdata/blocks.json with the browser client's table of blocks
// (web/src/world/blocks.ts). Its n-th entry is the block n.
func TestBlockTable(t *testing.T) {
	type row struct {
		Name      string `json:"name"`
		Solid     bool   `json:"solid"`
		Opaque    bool   `json:"opaque"`
		Placeable bool   `json:"placeable"`
		Breakable bool   `json:"breakable"`
		Plant     bool   `json:"plant"`
	}
	lines := make([]string, 0, len(blocks))
	for b := Air; b.Known(); b++ {
		line, err := json.Marshal(row{b.Name(), b.Solid(), b.Opaque(), b.Placeable(), b.Breakable(), b.Plant()})
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(line))
	}
	got := "[\n" + strings.Join(lines, ",\n") + "\n]\n"
	const file = "testdata/blocks.json"
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is out of date: go test ./chunk -run TestBlockTable -update\n got %s\nwant %s", file, got, want)
	}
}
