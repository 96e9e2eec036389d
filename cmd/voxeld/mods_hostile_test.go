package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/voxelpopuli/voxeld/chunk"
)

// hostileMods are what the scripts of mods do about each block that is put.
var hostileMods = map[string]string{
	"loop":      `for (;;);`,
	"memory":    `const a = []; for (;;) a.push(new Uint8Array(1e6))`,
	"recursion": `const f = () => { try { f() } catch { f() } }; f()`,
	"strings":   `let x = "x"; for (;;) x += x`,
	"regexp":    `/^(a+)+$/.test("a".repeat(64) + "b")`,
	"native":    `Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1)`,
	"throws":    `throw new Error("x".repeat(100000))`,
	"data":      `for (;;) land.timer(e.pos, 1, "x".repeat(1e6))`,
	"storm":     `for (let i = 0; i < 1e6; i++) land.cancel(e.pos)`,
}

// Each hostile mod is suspended, and doctor and a metric say so; another mod goes on, and tells the player so; the
// world's ticks are not late for it.
func TestHostileMods(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	add := func(name, script string) {
		t.Helper()
		dir := t.TempDir()
		for file, text := range map[string]string{
			"mod.toml": fmt.Sprintf("name = %q\nversion = \"1.0\"\napi = 1\n[permissions]\nevents = [\"place\"]\nblocks = [\"lamp\", \"brick\"]\n", name),
			"main.js":  `on("place", (e, land) => { ` + script + ` });`,
		} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		d.operate("mod", "add", dir)
	}
	for name, script := range hostileMods {
		add(name, script)
	}
	add("honest", `const above = [e.pos[0], e.pos[1] + 1, e.pos[2]]; if (e.block === "lamp") { land.set(above, "brick"); land.tell(e.player, "up") }`)
	ann := join(t, d.Game, "ann", 1)
	ground := under(ann, 1, 0, 0)
	ann.until("the ground", func() bool { _, ok := ann.at(ground); return ok })
	put := func(i int32) {
		t.Helper()
		at := under(ann, -3, i, 2)
		ann.putPatiently(at, chunk.Lamp)
		ann.sees(above(at, 1), chunk.Brick)
	}
	for i := range int32(4) { // a script that throws is suspended the third time
		put(i - 2)
	}
	var said string
	eventually(t, "doctor names all hostile mods", patience, func() bool {
		said, _, _ = voxeld(t, "doctor", "--data-dir", d.dir)
		for name := range hostileMods {
			if !strings.Contains(said, "the mod "+name+" is suspended there") {
				return false
			}
		}
		return true
	})
	if strings.Contains(said, "honest") {
		t.Errorf("doctor says: %s", said)
	}
	put(2)
	ann.until("what the mod tells", func() bool { return slices.Contains(ann.Notices, "from honest: up") })
	if n := d.metric("voxeld_mod_events_total", `result="exceeded"`); n < 1 {
		t.Errorf("%v events have exceeded their budget", n)
	}
	d.operate("mod", "resume", "throws")
	eventually(t, "the mod that was resumed is not named", patience, func() bool {
		said, _, _ = voxeld(t, "doctor", "--data-dir", d.dir)
		return !strings.Contains(said, "the mod throws")
	})
}
