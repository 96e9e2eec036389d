package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/voxelpopuli/voxeld/blocktable"
	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
)

// towers has each lamp that is put grow a tower: one brick at once, and one after a second.
const towers = `
function grow([x, y, z], land) {
  for (let h = 1; h <= 3; h++) {
    if (land.block([x, y + h, z]) === "air") return land.set([x, y + h, z], "brick");
  }
}
on("place", (event, land) => {
  if (event.block !== "lamp") return;
  grow(event.pos, land);
  land.timer(event.pos, 1);
});
on("timer", (event, land) => grow(event.pos, land));
`

// A mod that was added on one node acts in a region that another leads. The leader is killed while events wait: each
// of them has its effects once.
func TestModsRun(t *testing.T) {
	t.Parallel()
	all := cluster(t, 3)
	all[0].operate("mod", "add", writeMod(t, `"place", "timer"`, towers), "blocks=lamp,brick", "rate=1000")
	probe := join(t, all[0].Game, "ann", 1)
	spawn := under(probe, 1, 0, 0)
	probe.until("the ground", func() bool { _, ok := probe.at(spawn); return ok })
	probe.leave()
	leader, others := leaderOf(t, all, spawn.Chunk())
	ann := join(t, others[0].Game, "ann", 1)
	ann.until("the ground", func() bool { _, ok := ann.at(spawn); return ok })
	for _, d := range all {
		eventually(t, "the mod is on the node on "+d.ip, patience, func() bool { m := d.mod(); return m.Name != "" && m.Missing == "" })
	}
	var lamps []grid.Pos
	put := func() {
		i := int32(len(lamps))             //nolint:gosec // few
		at := under(ann, -3, i%5-2, 2+i/5) // in the air
		ann.putPatiently(at, chunk.Lamp)
		lamps = append(lamps, at)
	}
	grown := func(who *tester, at grid.Pos) {
		t.Helper()
		who.sees(above(at, 1), chunk.Brick)
		who.sees(above(at, 2), chunk.Brick)
	}
	put()
	grown(ann, lamps[0])
	for range 5 {
		put()
	}
	leader.kill()
	for range 4 {
		put()
	}
	for _, at := range lamps {
		grown(ann, at)
	}
	put()
	grown(ann, lamps[len(lamps)-1]) // what should not have been done twice would have been by now
	leader.start()
	for _, who := range []*tester{ann, join(t, leader.Game, "bob", 1)} {
		for _, at := range lamps {
			grown(who, at)
			who.sees(above(at, 3), chunk.Air)
		}
	}
}

// A restored world has its mods, what they may do, and the timers that they have set.
func TestModsAreRestored(t *testing.T) {
	t.Parallel()
	first := startDaemon(t)
	script := strings.Replace(towers, "land.timer(event.pos, 1)", "land.timer(event.pos, 10)", 1)
	first.operate("mod", "add", writeMod(t, `"place", "timer"`, script), "blocks=lamp,brick")
	ann := join(t, first.Game, "ann", 1)
	lamp := under(ann, -3, 0, 2)
	ann.until("the land", func() bool { _, ok := ann.at(lamp); return ok })
	ann.putPatiently(lamp, chunk.Lamp)
	ann.sees(above(lamp, 1), chunk.Brick)
	first.operate("mod", "suspend", "lamps") // so that the timer is in the backup
	ann.leave()
	file, rootKey := first.backUp(), first.rootKey()
	first.kill()

	second := restoreDaemon(t, rootKey, file)
	eventually(t, "the mod is there", patience, func() bool { m := second.mod(); return m.Suspended && m.Missing == "" && m.Version == "1.0" })
	second.operate("mod", "resume", "lamps")
	bob := join(t, second.Game, "bob", 1)
	bob.sees(above(lamp, 1), chunk.Brick)
	bob.sees(above(lamp, 2), chunk.Brick)
	other := grid.Pos{X: lamp.X + 1, Y: lamp.Y, Z: lamp.Z}
	bob.putPatiently(other, chunk.Lamp)
	bob.sees(above(other, 1), chunk.Brick)
}

// The first mod of docs/mods.md does what is written there.
func TestLamps(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, "--mod-dir", filepath.Join("..", "..", "mods", "lamps"))
	ann := join(t, d.Game, "ann", 1)
	ground := under(ann, 1, 0, 0)
	ann.until("the ground", func() bool { _, ok := ann.at(ground); return ok })
	eventually(t, "the mod is added", patience, func() bool { m := d.mod(); return m.Name == "lamps" && m.Missing == "" })
	trapdoor, glass := under(ann, -3, 0, 2), under(ann, -4, 1, 2)
	dark, _ := blocktable.Named("black_glass")
	ann.putPatiently(trapdoor, chunk.Trapdoor)
	ann.putPatiently(trapdoor, chunk.Trapdoor.Used())
	ann.until("what the mod says", func() bool {
		return slices.Contains(ann.Notices, "from lamps: Put black glass near the trapdoor, then use it again.")
	})
	ann.putPatiently(glass, dark)
	ann.putPatiently(trapdoor, chunk.Trapdoor)
	ann.sees(glass, chunk.Lamp)
	ann.sees(glass, dark)
}
