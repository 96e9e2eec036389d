package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
)

// writeMod writes a mod into a folder. It asks for events, quoted and with commas.
func writeMod(t *testing.T, events, script string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"mod.toml": "name = \"lamps\"\nversion = \"1.0\"\napi = 1\n[permissions]\nevents = [" + events + "]\nblocks = [\"lamp\"]\n", "main.js": script,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// mod returns what a node lists of the only mod; nothing if it lists none.
func (d *daemon) mod() (m admin.Mod) {
	var all []admin.Mod
	if err := json.Unmarshal([]byte(d.operate("mod", "list", "--json")), &all); err != nil {
		d.t.Fatal(err)
	}
	if len(all) > 1 {
		d.t.Errorf("mods %+v", all)
	}
	for _, m = range all {
	}
	return m
}

// A mod that is added on one node is on all, with its content: on those that were down, and on those that join later.
func TestMods(t *testing.T) {
	first := startDaemon(t)
	second := startDaemon(t, "--join", first.invite())
	third := startDaemon(t, "--join", first.invite())
	granted := first.operate("mod", "add", writeMod(t, `"use"`, `on("use", () => {}); // one`), "area=-64,-64:64,64")
	if !strings.Contains(granted, "events=use blocks=lamp area=-64,0,-64:64,1024,64 rate=600") {
		t.Error(granted)
	}
	there := func(d *daemon, version func(admin.Mod) bool) {
		t.Helper()
		eventually(t, "the node on "+d.ip+" has the mod", patience, func() bool { m := d.mod(); return m.Missing == "" && version(m) })
	}
	one := first.mod().Content
	for _, d := range []*daemon{second, third} {
		there(d, func(m admin.Mod) bool {
			return m.Version == "1.0" && m.Content == one && strings.Contains(granted, m.Grant)
		})
	}

	third.kill()
	first.operate("mod", "add", writeMod(t, `"use"`, `on("use", () => {}); // two`))
	first.operate("mod", "suspend", "lamps")
	third.start()
	fourth := startDaemon(t, "--join", first.invite())
	for _, d := range []*daemon{second, third, fourth} {
		there(d, func(m admin.Mod) bool { return m.Content != one && m.Suspended })
	}
	second.operate("mod", "resume", "lamps")
	second.operate("mod", "set", "lamps", "rate=5", "area=all")
	there(fourth, func(m admin.Mod) bool { return !m.Suspended && strings.HasSuffix(m.Grant, "blocks=lamp rate=5") })
	third.operate("mod", "remove", "lamps")
	eventually(t, "the mod is removed", patience, func() bool { return fourth.mod().Name == "" })
}

// A mod in the author's folder is added, and again when it is saved, once it is in order.
func TestModFolder(t *testing.T) {
	dir := writeMod(t, `"use"`, `on("use", () => {});`)
	d := startDaemon(t, "--mod-dir", dir)
	eventually(t, "the mod is added", patience, func() bool { return d.mod().Missing == "" && d.mod().Name == "lamps" })
	first := d.mod().Content
	save := func(script string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "main.js"), []byte(script), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	save(`on("use", () => {`)
	eventually(t, "the log says what is wrong", patience, func() bool { return strings.Contains(d.Log(), "SyntaxError") })
	if d.mod().Content != first {
		t.Error("a mod is added that is not in order")
	}
	save(`on("use", (event, land) => land.tell(event.player, "hello"));`)
	eventually(t, "the mod is added again", patience, func() bool { return d.mod().Content != first && d.mod().Missing == "" })
}
