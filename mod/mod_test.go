package mod

import (
	"archive/zip"
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/sys/unix"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
)

const manifest = `name = "lamps"
version = "1.0"
api = 1
title = "Lamps that go out"
[permissions]
events = ["timer", "use"]
blocks = ["lamp", "glass"]
[settings]
seconds = "5"
`

func folder(files map[string]string) fstest.MapFS {
	f := fstest.MapFS{ManifestFile: {Data: []byte(manifest)}, ScriptFile: {Data: []byte("// nothing")}}
	for name, data := range files {
		f[name] = &fstest.MapFile{Data: []byte(data)}
	}
	return f
}

// A folder's archive has its files, and the same bytes each time.
func TestPack(t *testing.T) {
	f := folder(map[string]string{"texts/de.toml": "x", ".git/config": "secret", "texts/.draft": "no", "empty": ""})
	packed, err := Pack(f)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Pack(f)
	if err != nil || !bytes.Equal(packed, again) {
		t.Errorf("the same folder has made other bytes, %v", err)
	}
	c, err := Unpack(packed)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Files) != 4 || string(c.Files["texts/de.toml"]) != "x" || c.Name != "lamps" || c.Settings["seconds"] != "5" {
		t.Errorf("unpacked %v", c)
	}
	g := c.Grant(HashOf(packed))
	want := Grant{Name: "lamps", Content: HashOf(packed), Events: []Kind{Timer, Use}, Blocks: Blocks{Bases: []chunk.Block{chunk.Glass, chunk.Lamp}}, Rate: DefaultRate}
	if !reflect.DeepEqual(g, want) {
		t.Errorf("the manifest asks for %v, want %v", g, want)
	}
}

// What links point at is not for all nodes, and what is no file is not waited for.
func TestPackFollowsNoLinks(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "identity.key")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, add := range map[string]func(path string) error{
		"link":   func(path string) error { return os.Symlink(outside, path) },
		"folder": func(path string) error { return os.Symlink(filepath.Dir(outside), path) },
		"fifo":   func(path string) error { return unix.Mkfifo(path, 0o600) },
	} {
		dir := t.TempDir()
		if err := os.CopyFS(dir, folder(nil)); err != nil {
			t.Fatal(err)
		}
		if err := add(filepath.Join(dir, ".hidden")); err != nil {
			t.Fatal(err)
		}
		if _, err := Pack(os.DirFS(dir)); err != nil {
			t.Errorf("%s whose name begins with a dot: %v", name, err)
		}
		if err := add(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if _, err := Pack(os.DirFS(dir)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// endless is a folder with a file that has no end.
type endless struct {
	fstest.MapFS
	read int
}

func (e *endless) Open(name string) (fs.File, error) {
	file, err := e.MapFS.Open(name)
	if err == nil && name == "large" {
		return &endlessFile{file, e}, nil
	}
	return file, err
}

type endlessFile struct {
	fs.File
	of *endless
}

func (f *endlessFile) Read(b []byte) (int, error) {
	if f.of.read += len(b); f.of.read > 2*MaxUnpacked {
		return 0, errors.New("read on and on")
	}
	return len(b), nil
}

func TestPackStopsAtBound(t *testing.T) {
	if _, err := Pack(&endless{MapFS: folder(map[string]string{"large": ""})}); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Error(err)
	}
}

func archive(t *testing.T, names ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range names {
		data := []byte("x")
		switch name {
		case ManifestFile:
			data = []byte(manifest)
		case "large":
			data = make([]byte, MaxUnpacked)
		}
		file, err := w.Create(name)
		if err == nil {
			_, err = file.Write(data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestUnpackRefuses(t *testing.T) {
	many := []string{ManifestFile, ScriptFile}
	for len(many) <= MaxFiles {
		many = append(many, strings.Repeat("a", len(many)))
	}
	for name, packed := range map[string][]byte{
		"nothing":            nil,
		"no archive":         []byte("hello"),
		"no manifest":        archive(t, ScriptFile),
		"no script":          archive(t, ManifestFile),
		"a file outside":     archive(t, ManifestFile, ScriptFile, "../x"),
		"an absolute path":   archive(t, ManifestFile, ScriptFile, "/x"),
		"a backslash":        archive(t, ManifestFile, ScriptFile, `a\..\..\x`),
		"a file twice":       archive(t, ManifestFile, ScriptFile, "x", "x"),
		"many files":         archive(t, many...),
		"what expands":       archive(t, ManifestFile, ScriptFile, "large"),
		"a too long archive": make([]byte, MaxPacked+1),
	} {
		if _, err := Unpack(packed); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	if _, err := Unpack(archive(t, ManifestFile, ScriptFile)); err != nil {
		t.Errorf("a small mod is refused: %v", err)
	}
}

func TestManifestRefuses(t *testing.T) {
	for _, change := range [][2]string{
		{`"lamps"`, `"Lamps"`},
		{`"lamps"`, `""`},
		{`"lamps"`, `"1a"`},
		{`"lamps"`, `"` + strings.Repeat("a", MaxName+1) + `"`},
		{`api = 1`, `api = 2`},
		{`version = "1.0"`, ``},
		{`version = "1.0"`, `version = "1\u001b[2J"`},
		{`that go`, `that\ngo`},
		{`title`, `titel`},
		{`"use"`, `"used"`},
		{`"lamp"`, `"lamb"`},
		{`"lamp"`, `"pine_door_open_south"`},
		{`[settings]`, "rate = 60001\n[settings]"},
		{`seconds = "5"`, `seconds = "` + strings.Repeat("5", 201) + `"`},
	} {
		text := strings.Replace(manifest, change[0], change[1], 1)
		if text == manifest {
			t.Fatalf("nothing changed by %q", change)
		}
		if _, err := ParseManifest([]byte(text)); err == nil {
			t.Errorf("%s is taken for %s", change[1], change[0])
		}
	}
}

// A grant's text says all of it.
func TestGrantText(t *testing.T) {
	hash := HashOf(nil).String()
	for _, text := range []string{
		"lamps " + hash + " rate=600",
		"lamps " + hash + " events=place,timer,use blocks=glass,lamp area=-5,1,0:9,20,30 rate=60000 off",
		"lamps " + hash + " blocks=all rate=1",
	} {
		g, err := ParseGrant(strings.Fields(text))
		if err != nil || g.String() != text {
			t.Errorf("%q becomes %q, %v", text, g.String(), err)
		}
	}
	g, err := ParseGrant(strings.Fields("lamps " + hash + " events=use,use blocks=lamp,air,lamp area=9,9:0,0 off"))
	if err != nil {
		t.Fatal(err)
	}
	if g, err = g.With([]string{"on", "area=all", "events=", "rate=5"}); err != nil || g.String() != "lamps "+hash+" blocks=lamp rate=5" {
		t.Errorf("changed to %v, %v", g, err)
	}
	for _, bad := range []string{
		"", "lamps", "lamps abc", "Lamps " + hash, "lamps " + hash + " rate=0", "lamps " + hash + " rate=60001", "lamps " + hash + " events=fall",
		"lamps " + hash + " area=1,2", "lamps " + hash + " blocks=lamb", "lamps " + hash + " off=1", "lamps " + hash + " all", "lamps " + hash + "A",
	} {
		if g, err := ParseGrant(strings.Fields(bad)); err == nil {
			t.Errorf("%q becomes %v", bad, g)
		}
	}
}

func TestReadCommand(t *testing.T) {
	hash := HashOf(nil).String()
	g, removed, ok := ReadCommand("grant lamps " + hash + " blocks=lamp")
	if !ok || removed || g.String() != "lamps "+hash+" blocks=lamp rate=600" {
		t.Errorf("a grant: %v, %t, %t", g, removed, ok)
	}
	if g, removed, ok = ReadCommand("Grant lamps " + hash); !ok || removed || g.Name != "lamps" || g.Off {
		t.Errorf("a grant in upper case: %v, %t, %t", g, removed, ok)
	}
	if g, removed, ok = ReadCommand("REVOKE lamps"); !ok || !removed || g.Name != "lamps" {
		t.Errorf("a removal in upper case: %v, %t, %t", g, removed, ok)
	}
	g, removed, ok = ReadCommand("revoke lamps")
	if !ok || !removed || g.Name != "lamps" {
		t.Errorf("a removal: %v, %t, %t", g, removed, ok)
	}
	g, removed, ok = ReadCommand("grant lamps " + hash + " events=sunrise")
	if !ok || removed || g.Name != "lamps" || !g.Off {
		t.Errorf("a grant of a later version: %v, %t, %t", g, removed, ok)
	}
	for _, text := range []string{"grant", "grant Lamps " + hash, "revoke lamps now", "revoke Lamps", "revoke", "say hello", ""} {
		if g, _, ok := ReadCommand(text); ok {
			t.Errorf("%q says %v", text, g)
		}
	}
}

func TestConcerns(t *testing.T) {
	box := grid.Box{Max: grid.Pos{X: 9, Y: 9, Z: 9}}
	g := Grant{Name: "lamps", Events: []Kind{Timer, Use}, Blocks: Blocks{Bases: []chunk.Block{chunk.Lamp}}, Area: &box}
	in, out := grid.Pos{X: 9, Y: 0, Z: 3}, grid.Pos{X: 10}
	for _, c := range []struct {
		kind  Kind
		at    grid.Pos
		block chunk.Block
		want  bool
	}{
		{Use, in, chunk.Lamp, true},
		{Use, out, chunk.Lamp, false},
		{Use, in, chunk.Glass, false},
		{Use, in, chunk.Air, false},
		{Place, in, chunk.Lamp, false},
		{Timer, in, chunk.Air, false}, // it is not asked of timers
	} {
		if got := g.Concerns(c.kind, c.at, c.block); got != c.want {
			t.Errorf("%s of %s at %v: %t", c.kind, c.block.Name(), c.at, got)
		}
	}
	g.Events = []Kind{Break}
	if g.Concerns(Break, in, chunk.Air) {
		t.Error("a mod gets that an unknown block is taken away")
	}
	if g.Blocks.All = true; !g.Concerns(Break, in, chunk.Air) {
		t.Error("a mod of all blocks does not get that one is taken away")
	}
	if g.Off = true; g.Concerns(Break, in, chunk.Lamp) {
		t.Error("a suspended mod gets an event")
	}
}

func TestCheck(t *testing.T) {
	box := grid.Box{Max: grid.Pos{X: 9, Y: 9, Z: 9}}
	g := Grant{Blocks: Blocks{Bases: []chunk.Block{chunk.Lamp}}, Area: &box}
	at, out := grid.Pos{X: 1, Y: 2, Z: 3}, grid.Pos{X: 1, Y: 20, Z: 3}
	set := func(at grid.Pos, from, to chunk.Block) Effect { return Effect{Set: &Set{at, from, to}} }
	timer := func(at grid.Pos, after int64, data string) Effect { return Effect{Timer: &SetTimer{at, after, data}} }
	message := func(text string) Effect { return Effect{Message: &Message{player.ID{1}, text}} }
	for _, c := range []struct {
		name    string
		effects []Effect
		want    bool
	}{
		{"nothing", nil, true},
		{"put", []Effect{set(at, chunk.Air, chunk.Lamp)}, true},
		{"take away", []Effect{set(at, chunk.Lamp, chunk.Air)}, true},
		{"another block is put", []Effect{set(at, chunk.Air, chunk.Glass)}, false},
		{"another block is replaced", []Effect{set(at, chunk.Stone, chunk.Lamp)}, false},
		{"outside", []Effect{set(out, chunk.Air, chunk.Lamp)}, false},
		{"bedrock", []Effect{set(grid.Pos{X: 1}, chunk.Air, chunk.Lamp)}, false},
		{"the last of several", []Effect{set(at, chunk.Air, chunk.Lamp), timer(at, 1, ""), set(out, chunk.Air, chunk.Lamp)}, false},
		{"timer", []Effect{timer(at, MaxDelay, strings.Repeat("x", MaxData)), timer(at, 0, "")}, true},
		{"timer outside", []Effect{timer(out, 1, "")}, false},
		{"timer in the past", []Effect{timer(at, -1, "")}, false},
		{"timer too far ahead", []Effect{timer(at, MaxDelay+1, "")}, false},
		{"timer with much data", []Effect{timer(at, 1, strings.Repeat("x", MaxData+1))}, false},
		{"message", []Effect{message("hello")}, true},
		{"empty message", []Effect{message("")}, false},
		{"long message", []Effect{message(strings.Repeat("x", MaxMessage+1))}, false},
		{"many messages", slices.Repeat([]Effect{message("x")}, MaxMessages+1), false},
		{"most effects", slices.Repeat([]Effect{timer(at, 1, "")}, MaxEffects), true},
		{"too many effects", slices.Repeat([]Effect{timer(at, 1, "")}, MaxEffects+1), false},
		{"empty effect", []Effect{{}}, false},
		{"two effects in one", []Effect{{Set: &Set{at, chunk.Air, chunk.Lamp}, Timer: &SetTimer{Pos: at}}}, false},
	} {
		if err := g.Check(c.effects); (err == nil) != c.want {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if CountBlocks([]Effect{timer(at, 1, ""), set(at, 0, 0), set(at, 0, 0)}) != 2 {
		t.Error("blocks are counted wrong")
	}
	for _, bad := range []Effect{set(at, chunk.Air, chunk.Bedrock), set(at, chunk.Air, 60000), message(" "), message("a\nb")} {
		if CheckProposal([]Effect{timer(at, 1, ""), bad}) == nil {
			t.Errorf("%v is proposed", bad)
		}
	}
	if err := CheckProposal([]Effect{timer(at, 1, ""), set(at, chunk.Lamp, chunk.Air), message("hello")}); err != nil {
		t.Error(err)
	}
}

func TestScriptJSON(t *testing.T) {
	e := Event{Mod: "lamps", Kind: Use, Time: 5, Pos: grid.Pos{X: 1, Y: 2, Z: -3}, Block: chunk.Lamp, Player: player.ID{15: 1}}
	text, err := e.AppendJSON([]byte("x"))
	if want := `x{"kind":"use","time":5,"pos":[1,2,-3],"block":"lamp","player":"00000000000000000000000000000001"}`; err != nil || string(text) != want {
		t.Errorf("an event is\n%s, want\n%s, %v", text, want, err)
	}
	got, err := DecodeEffects([]byte(` [{"set":{"pos":[1,2,3],"from":"lamp","to":"air"}}, {"timer":{"pos":[1,2,3],"after":50,"data":"on"}},
		{"message":{"player":"00000000000000000000000000000001","text":"hello"}}] `))
	want := []Effect{
		{Set: &Set{grid.Pos{X: 1, Y: 2, Z: 3}, chunk.Lamp, chunk.Air}},
		{Timer: &SetTimer{grid.Pos{X: 1, Y: 2, Z: 3}, 50, "on"}},
		{Message: &Message{player.ID{15: 1}, "hello"}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("effects %v, %v", got, err)
	}
	if got, err := DecodeEffects([]byte("null")); err != nil || len(got) != 0 {
		t.Errorf("nothing is %v, %v", got, err)
	}
	for _, bad := range []string{
		"", "{}", "[", "[] []", "[{}]", "[null]", `[{"set":{}}]`, `[{"set":{"pos":[1,2],"from":"air","to":"air"}}]`, `[{"set":{"pos":[1,2,3],"from":"air","to":"lamb"}}]`,
		`[{"sett":{}}]`, `[{"timer":{"pos":[1,2,3]}}]`, `[{"timer":{"pos":[1,2,3],"after":1.5}}]`, `[{"message":{"text":"x"}}]`,
		`[{"timer":{"pos":[1,2,3],"after":1},"set":{"pos":[1,2,3],"from":"air","to":"air"}}]`, "[" + strings.Repeat(" ", MaxAnswer) + "]",
	} {
		if got, err := DecodeEffects([]byte(bad)); err == nil {
			t.Errorf("%.60q is read as %v", bad, got)
		}
	}
}

func FuzzDecodeEffects(f *testing.F) {
	f.Add([]byte(`[{"set":{"pos":[1,2,3],"from":"lamp","to":"air"}},{"timer":{"pos":[1,2,3],"after":50,"data":"on"}}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		effects, err := DecodeEffects(data)
		if err != nil {
			return
		}
		if len(effects) > MaxEffects {
			t.Errorf("%d effects", len(effects))
		}
		for _, e := range effects {
			if e.count() != 1 {
				t.Errorf("an effect with %d fields", e.count())
			}
		}
	})
}

func FuzzUnpack(f *testing.F) {
	packed, err := Pack(folder(nil))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(packed)
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Unpack(data)
		if err != nil {
			return
		}
		size := 0
		for _, file := range c.Files {
			size += len(file)
		}
		if size > MaxUnpacked || len(c.Files) > MaxFiles || CheckName(c.Name) != nil {
			t.Errorf("unpacked %d files of %d bytes, name %q", len(c.Files), size, c.Name)
		}
	})
}

func FuzzParseGrant(f *testing.F) {
	f.Add("lamps " + HashOf(nil).String() + " events=place,use blocks=glass,lamp area=-5,1,0:9,20,30 rate=60000 off")
	f.Fuzz(func(t *testing.T, text string) {
		g, err := ParseGrant(strings.Fields(text))
		if err != nil {
			return
		}
		again, err := ParseGrant(strings.Fields(g.String()))
		if err != nil || !reflect.DeepEqual(again, g) {
			t.Errorf("%q becomes %v, and that %v, %v", text, g, again, err)
		}
	})
}
