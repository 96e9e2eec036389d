package main

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	kit "github.com/voxelpopuli/voxeld/test/testkit/daemon"
)

var compatRecord = flag.String("compat.record", "", "record what the tests of compatibility expect, from this voxeld binary")

// compatDir has what earlier versions left: data directories that later ones must open.
const compatDir = "testdata/compat"

// builtBlock is a block that was acknowledged by an earlier version.
type builtBlock struct {
	Pos   grid.Pos    `json:"pos"`
	Block chunk.Block `json:"block"`
}

// A data directory that an earlier version left when it was killed opens with every block, and is built on.
func TestOldDataDirectoryOpens(t *testing.T) {
	archive, list := filepath.Join(compatDir, "world-1.tgz"), filepath.Join(compatDir, "world-1.json")
	if *compatRecord != "" {
		recordWorld(t, archive, list)
	}
	var built []builtBlock
	text, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &built); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if out, err := exec.Command("tar", "-xzf", archive, "-C", dir).CombinedOutput(); err != nil {
		t.Fatalf("unpack: %v\n%s", err, out)
	}
	d := newDaemon(t, kit.Options{Dir: dir})
	d.start()
	ann := join(t, d.Game, "ann", 3)
	for _, b := range built {
		ann.sees(b.Pos, b.Block)
	}
	ann.put(built[0].Pos, chunk.Air)
	ann.leave()
	if code := d.terminate(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	d.start()
	join(t, d.Game, "ann", 3).sees(built[0].Pos, chunk.Air)
}

// recordWorld has another version make a world, and kills it.
func recordWorld(t *testing.T, archive, list string) {
	d := newDaemon(t, kit.Options{Binary: *compatRecord})
	d.init()
	d.start()
	ann := join(t, d.Game, "ann", 3)
	var built []builtBlock
	put := func(pos grid.Pos, b chunk.Block) {
		ann.put(pos, b)
		built = append(built, builtBlock{pos, b})
	}
	for i := range int32(4) {
		for j := range int32(3) {
			put(under(ann, -3-j, 1+i%2*2, 1+i/2*2), []chunk.Block{chunk.Stone, chunk.Brick, chunk.Log}[j])
		}
	}
	d.terminate()
	d.start() // what was built before is in tables, and the rest in the journal
	ann = join(t, d.Game, "ann", 3)
	put(under(ann, -3, -2, -2), chunk.Brick)
	d.kill()
	if out, err := exec.Command("tar", "-czf", archive, "-C", d.dir, ".").CombinedOutput(); err != nil {
		t.Fatalf("pack: %v\n%s", err, out)
	}
	text, err := json.Marshal(built)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(list, text, 0o644); err != nil {
		t.Fatal(err)
	}
}
