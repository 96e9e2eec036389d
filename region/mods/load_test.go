package mods

import (
	"io/fs"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/voxelpopuli/voxeld/blocktable"
	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/mod"
	shipped "github.com/voxelpopuli/voxeld/mods"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/script"
)

var engine = sync.OnceValues(script.NewEngine)

// content returns the mod that is in a folder.
func content(t testing.TB, folder fs.FS) mod.Content {
	t.Helper()
	packed, err := mod.Pack(folder)
	if err != nil {
		t.Fatal(err)
	}
	c, err := mod.Unpack(packed)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// load loads a mod.
func load(t testing.TB, c mod.Content) (*script.Program, error) {
	t.Helper()
	e, err := engine()
	if err != nil {
		t.Fatal(err)
	}
	return Load(e, c)
}

func written(events, text string) fs.FS {
	return fstest.MapFS{
		mod.ManifestFile: {Data: []byte("name = \"test\"\nversion = \"1\"\napi = 1\n[permissions]\nblocks = [\"all\"]\nevents = [" + events + "]\n")},
		mod.ScriptFile:   {Data: []byte(text)},
	}
}

func call(t testing.TB, c mod.Content, inputs ...mod.Input) []mod.Answer {
	t.Helper()
	program, err := load(t, c)
	if err != nil {
		t.Fatal(err)
	}
	i, err := program.Instance()
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	in, err := mod.EncodeCall(7, inputs)
	if err != nil {
		t.Fatal(err)
	}
	out, used, err := i.Call(in, EventSteps*int64(len(inputs)))
	if err != nil {
		t.Fatalf("call: %v", err)
	}
	t.Logf("%d events in %d steps", len(inputs), used)
	answers, err := mod.DecodeAnswers(out, len(inputs))
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return answers
}

func TestLoadComparesWithManifest(t *testing.T) {
	for _, test := range []struct{ events, text, want string }{
		{`"use"`, ``, `mod.toml lists the event "use", but main.js has no on("use", …)`},
		{``, `on("timer", () => {})`, `main.js has on("timer", …), but mod.toml does not list the event`},
		{``, `on("tick", () => {})`, `there is no event "tick"`},
		{`"use"`, `on("use", () => {}); on("use", () => {})`, `on("use"): it has a function already (main.js:1:`},
	} {
		if _, err := load(t, content(t, written(test.events, test.text))); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s with %s: %v, want %s", test.text, test.events, err, test.want)
		}
	}
}

// A script can set functions for all kinds of events.
func TestLibraryHasAllKinds(t *testing.T) {
	var events, text strings.Builder
	for _, kind := range mod.Kinds {
		events.WriteString(`"` + string(kind) + `",`)
		text.WriteString(`on("` + string(kind) + `", () => {});`)
	}
	if _, err := load(t, content(t, written(events.String(), text.String()))); err != nil {
		t.Error(err)
	}
}

var ann = player.ID{1, 2, 3}

func event(kind mod.Kind, at grid.Pos, block chunk.Block) mod.Input {
	in := mod.Input{Event: mod.Event{Mod: "test", Kind: kind, Time: 1000, Pos: at, Block: block, Player: ann}}
	for i := range in.View {
		in.View[i] = mod.Unseen
	}
	return in
}

// place is where a View has the block that is so far from the event.
func place(dx, dy, dz int) int {
	const r, side = mod.ViewRadius, mod.ViewSide
	return ((dy+r)*side+dz+r)*side + dx + r
}

func TestLamps(t *testing.T) {
	folder, err := fs.Sub(shipped.Files, "lamps")
	if err != nil {
		t.Fatal(err)
	}
	dark, _ := blocktable.Named("black_glass")
	at := grid.Pos{X: -5, Y: 40, Z: 9}
	use := event(mod.Use, at, chunk.Trapdoor)
	use.View[place(0, 0, 0)], use.View[place(3, -2, -1)], use.View[place(1, 0, 0)] = chunk.Trapdoor, dark, chunk.Lamp
	nothing, other := event(mod.Use, at, chunk.Trapdoor), event(mod.Use, at, chunk.Lamp)
	off := event(mod.Timer, at, chunk.Air)
	off.Event.Player, off.View[place(3, -2, -1)] = player.ID{}, chunk.Lamp
	lamp := grid.Pos{X: -2, Y: 38, Z: 8}
	timer := mod.Effect{Timer: &mod.SetTimer{Pos: at, After: 10_000}}
	want := [][]mod.Effect{
		{{Set: &mod.Set{Pos: lamp, From: dark, To: chunk.Lamp}}, timer},
		{{Message: &mod.Message{Player: ann, Text: "Put black glass near the trapdoor, then use it again."}}, timer},
		{},
		{{Set: &mod.Set{Pos: lamp, From: chunk.Lamp, To: dark}}},
	}
	for i, answer := range call(t, content(t, folder), use, nothing, other, off) {
		if diff := cmp.Diff(want[i], answer.Effects, cmp.AllowUnexported(grid.Pos{})); diff != "" || answer.Err != nil {
			t.Errorf("answer %d: %v\n%s", i, answer.Err, diff)
		}
	}
}

func TestHandlers(t *testing.T) {
	at := grid.Pos{X: 1, Y: 2, Z: 3}
	for text, want := range map[string]string{
		`(e, land) => { missing(); }`:                                        "ReferenceError: missing is not defined (main.js:1:",
		`(e, land) => { land.set([9, 9, 9], "stone"); }`:                     "set: [9,9,9] is out of sight: a mod sees 3 blocks around the event",
		`(e, land) => { land.set([1, 2, 4], "stone"); }`:                     "out of sight",
		`(e, land) => { land.set([1, 2], "stone"); }`:                        "[1,2] is not a position",
		`(e, land) => { land.set(e.pos, "stoen"); }`:                         `there is no block "stoen"`,
		`(e, land) => { land.set(e.pos, 7); }`:                               "the name of a block",
		`(e, land) => { land.timer(e.pos, -1); }`:                            "timer: want",
		`(e, land) => { land.tell("nobody", "hello"); }`:                     "player",
		`(e, land) => { throw null; }`:                                       "null",
		`(e, land) => { land.set(e.pos, "stone"); throw "no"; }`:             "no",
		`(e, land) => { for (let i = 0; i < 257; i++) land.cancel(e.pos); }`: "257 effects",
	} {
		in := event(mod.Use, at, chunk.Stone)
		in.View[place(0, 0, 0)] = chunk.Stone
		answers := call(t, content(t, written(`"use"`, `on("use", `+text+`)`)), in)
		if got := answers[0]; got.Err == nil || !strings.Contains(got.Err.Error(), want) || len(got.Effects) > 0 {
			t.Errorf("%s: %v, %v; want %s", text, got.Effects, got.Err, want)
		}
	}
}

// What a handler has set it sees, and setting a block twice is one effect.
func TestLandRemembers(t *testing.T) {
	at := grid.Pos{X: 1, Y: 2, Z: 3}
	in := event(mod.Use, at, chunk.Stone)
	in.View[place(0, 0, 0)] = chunk.Stone
	answers := call(t, content(t, written(`"use"`, `on("use", (e, land) => {
		land.set(e.pos, "stone");
		land.set(e.pos, "dirt");
		if (land.block(e.pos) !== "dirt" || land.block([99, 0, 0]) !== undefined) throw "wrong";
		land.set(e.pos, "sand");
		land.tell(e.player, Math.random());
	})`)), in, in)
	sand, _ := blocktable.Named("sand")
	for i, a := range answers {
		if a.Err != nil || len(a.Effects) != 2 || a.Effects[0].Set == nil || *a.Effects[0].Set != (mod.Set{Pos: at, From: chunk.Stone, To: sand}) {
			t.Errorf("answer %d: %v, %v", i, a.Effects, a.Err)
		}
	}
	if a, b := answers[0].Effects[1].Message.Text, answers[1].Effects[1].Message.Text; a == b || !strings.HasPrefix(a, "0.") {
		t.Errorf("random numbers %s and %s", a, b)
	}
}
