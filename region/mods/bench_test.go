package mods

import (
	"context"
	"io/fs"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/mod"
)

// BenchmarkTick reports how late the ticks of a loop are which, like a region's, wakes every 50 ms and makes some
// garbage: alone, beside a mod that is always busy, and beside ten hostile ones. Regions suspend those: here they go on.
func BenchmarkTick(b *testing.B) {
	busy := []string{`for (let i = 0; i < 2000; i++) land.block(e.pos)`}
	hostile := []string{
		`for (;;);`,
		`const a = []; for (;;) a.push([1, 2, 3, 4])`,
		`const f = (n) => 1 + f(n + 1); f(0)`,
		`let x = "x"; for (;;) x += x`,
		`/^(a+)+$/.test("a".repeat(64) + "b")`,
		`"a".repeat(1 << 20).indexOf("a".repeat(1 << 19) + "b")`,
		`Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1)`,
		`new Uint8Array(1e9)`,
		`for (let i = 0; i < 1e6; i++) land.timer(e.pos, 1)`,
		`throw new Error("x".repeat(100000))`,
	}
	for _, test := range []struct {
		name    string
		scripts []string
	}{{"alone", nil}, {"busy", busy}, {"hostile", hostile}} {
		b.Run(test.name, func(b *testing.B) { tick(b, test.scripts) })
	}
}

func tick(b *testing.B, scripts []string) {
	contents := make(map[mod.Hash][]byte)
	r := NewRunner(Options{
		Content:    func(hash mod.Hash) ([]byte, error) { return contents[hash], nil },
		Ground:     func(context.Context, grid.ChunkPos, *[32]byte) (*chunk.Chunk, error) { return nil, fs.ErrNotExist },
		Logger:     slog.New(slog.DiscardHandler),
		Registerer: prometheus.NewRegistry(),
	})
	var tasks []Task
	for i, script := range scripts {
		packed, err := mod.Pack(written(`"use"`, `on("use", (e, land) => { `+script+` })`))
		if err != nil {
			b.Fatal(err)
		}
		contents[mod.HashOf(packed)] = packed
		tasks = append(tasks, Task{Region: uint64(i), Name: "test", Content: mod.HashOf(packed), Inputs: []mod.Input{event(mod.Use, grid.Pos{}, chunk.Stone)}})
	}
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan struct{})
	go func() {
		r.Run(ctx)
		close(ended)
	}()
	started := make(chan struct{}, len(tasks))
	for i := range tasks {
		first := true
		tasks[i].Done = func(result Result) {
			if first {
				first = false
				started <- struct{}{}
			}
			time.AfterFunc(result.Pause, func() { r.Submit(tasks[i]) })
		}
		r.Submit(tasks[i])
	}
	for range tasks {
		<-started
	}
	var late []time.Duration
	due := time.NewTicker(50 * time.Millisecond)
	for b.Loop() {
		at := <-due.C
		kept := make([][]byte, 200)
		for i := range kept {
			kept[i] = make([]byte, 10<<10)
		}
		late = append(late, time.Since(at))
	}
	cancel()
	<-ended
	slices.Sort(late)
	b.ReportMetric(late[len(late)/2].Seconds()*1e3, "p50-ms")
	b.ReportMetric(late[len(late)*99/100].Seconds()*1e3, "p99-ms")
}
