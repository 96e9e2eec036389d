package mods

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/mod"
)

// world is what the runner of a test gets contents and land from.
type world struct {
	*Runner
	contents map[mod.Hash][]byte
	results  chan Result
	log      bytes.Buffer // of the goroutine of Run, up to the last result
}

// startRunner returns a runner that runs until the test ends, which must be in a bubble of synctest.
func startRunner(t *testing.T) *world {
	t.Helper()
	w := &world{contents: make(map[mod.Hash][]byte), results: make(chan Result, 100)}
	w.Runner = NewRunner(Options{
		Content: func(hash mod.Hash) ([]byte, error) {
			if packed := w.contents[hash]; packed != nil {
				return packed, nil
			}
			return nil, errors.New("not here yet")
		},
		Ground: func(_ context.Context, pos grid.ChunkPos, hash *[32]byte) (*chunk.Chunk, error) {
			c, err := chunk.FromBlocks(make([]chunk.Block, 32*32*32))
			if err != nil {
				return nil, err
			}
			if hash != nil {
				c.Set(chunk.IndexOf(1, 1, 1), chunk.Lamp)
			}
			return c, nil
		},
		Logger: slog.New(slog.NewTextHandler(&w.log, nil)), Registerer: prometheus.NewRegistry(),
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		w.Run(ctx)
		close(ended)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return w
}

// add adds a mod, and returns its hash.
func (w *world) add(t *testing.T, folder fs.FS) mod.Hash {
	t.Helper()
	packed, err := mod.Pack(folder)
	if err != nil {
		t.Fatal(err)
	}
	w.contents[mod.HashOf(packed)] = packed
	return mod.HashOf(packed)
}

// submit submits events of a mod that place a block, and returns the result.
func (w *world) submit(region uint64, content mod.Hash, blocks ...chunk.Block) Result {
	task := Task{Region: region, Name: "test", Content: content, Done: func(r Result) { w.results <- r }}
	for _, block := range blocks {
		task.Inputs = append(task.Inputs, event(mod.Place, grid.Pos{X: 1, Y: 1, Z: 1}, block))
	}
	w.Submit(task)
	return <-w.results
}

// tells is a script that tells the player the value of an expression.
func tells(value string) fs.FS {
	return written(`"place"`, `on("place", (e, land) => land.tell(e.player, `+value+`))`)
}

func told(a mod.Answer) string {
	if a.Err != nil || len(a.Effects) != 1 || a.Effects[0].Message == nil {
		return "nothing"
	}
	return a.Effects[0].Message.Text
}

func TestRunnerFillsView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := startRunner(t)
		hash := w.add(t, tells(`[land.block(e.pos), land.block([e.pos[0], e.pos[1] + 1, e.pos[2]]), land.block([0, 2, 1])].join()`))
		pos := grid.Pos{X: 1, Y: 1, Z: 1}
		in := event(mod.Place, pos, chunk.Stone)
		in.View[place(0, 0, 0)], in.View[place(0, 1, 0)] = Untouched, chunk.Stone
		for _, test := range []struct {
			pinned map[grid.ChunkPos][32]byte
			want   string
		}{{nil, "air,stone,"}, {map[grid.ChunkPos][32]byte{pos.Chunk(): {1}}, "lamp,stone,"}} {
			w.Submit(Task{Content: hash, Inputs: []mod.Input{in}, Pinned: test.pinned, Done: func(r Result) { w.results <- r }})
			if r := <-w.results; len(r.Answers) != 1 || told(r.Answers[0]) != test.want {
				t.Errorf("sees %+v, want %s", r, test.want)
			}
		}
	})
}

// One bad event of many fails, and only the mod that exceeds its budget is suspended, only in that region.
func TestBudgetSuspends(t *testing.T) {
	for name, does := range map[string]string{
		"steps":  `for (;;);`,
		"memory": `new Uint8Array(1e9)`,
		"output": `for (let i = 0; i < 50; i++) land.tell(e.player, "x".repeat(2000))`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := startRunner(t)
				hash := w.add(t, written(`"place"`, `on("place", (e, land) => { if (e.block === "lamp") { `+does+` } land.tell(e.player, e.block); })`))
				r := w.submit(1, hash, chunk.Stone, chunk.Lamp, chunk.Dirt)
				if len(r.Answers) != 3 || told(r.Answers[0]) != "stone" || r.Answers[1].Err == nil || told(r.Answers[2]) != "dirt" {
					t.Errorf("answers: %+v", r.Answers)
				}
				if r.Suspend == "" || r.Suspend != r.Answers[1].Err.Error() {
					t.Errorf("suspended for %q", r.Suspend)
				}
				if r := w.submit(2, hash, chunk.Stone); r.Suspend != "" || told(r.Answers[0]) != "stone" {
					t.Errorf("in another region: %+v", r)
				}
			})
		})
	}
}

func TestThreeFailuresInAMinuteSuspend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := startRunner(t)
		hash := w.add(t, tells(`e.missing.value`))
		for i := range 6 { // one each 31 s
			if r := w.submit(1, hash, chunk.Stone); r.Suspend != "" || r.Answers[0].Err == nil {
				t.Fatalf("failure %d: %+v", i, r)
			}
			if lines := strings.Count(w.log.String(), "TypeError"); lines != i+1 { // which its author reads
				t.Errorf("after failure %d, the log has %d lines of it", i, lines)
			}
			time.Sleep(failuresWithin/2 + time.Second)
		}
		w.submit(2, hash, chunk.Stone)
		if r := w.submit(1, hash, chunk.Stone, chunk.Dirt); !strings.Contains(r.Suspend, "3 times in a minute: TypeError") {
			t.Errorf("suspended for %q", r.Suspend)
		}
		if r := w.submit(2, hash, chunk.Stone); r.Suspend != "" {
			t.Errorf("another region, after two failures: suspended for %q", r.Suspend)
		}
	})
}

func TestBrokenAndMissingMods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := startRunner(t)
		if r := w.submit(1, mod.Hash{1}, chunk.Stone); r.Err == nil || r.Suspend != "" || r.Answers != nil {
			t.Errorf("a mod whose content is not here: %+v", r)
		}
		broken := w.add(t, written(`"place"`, `missing()`))
		if r := w.submit(1, broken, chunk.Stone); r.Err != nil || !strings.Contains(r.Suspend, "ReferenceError") || r.Answers[0].Err == nil {
			t.Errorf("a script that cannot be loaded: %+v", r)
		}
	})
}

// More mods than are kept loaded are run.
func TestManyMods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := startRunner(t)
		for i := range maxPrograms + 2 {
			if r := w.submit(1, w.add(t, tells(strconv.Itoa(i))), chunk.Stone); told(r.Answers[0]) != strconv.Itoa(i) || r.Pause <= 0 {
				t.Fatalf("mod %d: %+v", i, r)
			}
		}
	})
}
