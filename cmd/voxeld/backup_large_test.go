package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"flag"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/backup"
	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	kit "github.com/voxelpopuli/voxeld/testkit/daemon"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

var (
	largeRegions = flag.Int("backup-regions", 60, "regions of the world of TestLargeBackup")
	largeEdits   = flag.Int("backup-edits", 500, "edits in each of them")
)

// largeWorld writes a backup of a world that nobody has played: so many regions with so many edits each, far from the spawn.
func largeWorld(t *testing.T, path string, regions, edits int) {
	t.Helper()
	seed := int64(33)
	g, err := newGenesis("Large", &seed, defaultSections, grid.PlacementWalkad, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	random := rand.New(rand.NewPCG(33, 0))
	all := make([]nodemsg.Region, regions)
	for i := range all {
		sum := sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(i)))
		cell := grid.CellAt(grid.ChunkPos{X: 2000 + 16*int32(i%50), Z: 2000 + 16*int32(i/50)}, grid.FoundingLabel)
		all[i] = nodemsg.Region{ID: binary.BigEndian.Uint64(sum[:]), Cell: cell, Epoch: 1, Members: []nodemsg.Member{{Peer: "a", Game: "h:1"}}}
	}
	_, err = backup.Create(path, func(out io.Writer) error {
		w, err := backup.NewWriter(out, backup.Header{Genesis: g.Encode(), Begun: time.Now().UnixMilli()})
		must(err)
		group := func(g backup.Group, add func(*backup.RowsWriter)) {
			g.Position = backup.Position{Index: 5000, Term: 2, Next: 2}
			must(w.Write(backup.Record{Group: &g}))
			rows := backup.NewRowsWriter(w.Write)
			add(rows)
			must(rows.Close())
		}
		group(backup.Group{ID: world.CatalogID}, func(rows *backup.RowsWriter) {
			for _, info := range all {
				row, err := nodemsg.EncodeRegion(info)
				must(err)
				must(rows.Add([]byte(info.Cell.String()), row))
			}
		})
		for _, info := range all {
			group(backup.Group{ID: info.ID, Cell: info.Cell}, func(rows *backup.RowsWriter) {
				area := info.Cell.Area()
				id := binary.BigEndian.AppendUint64(nil, info.ID)
				base := sha256.Sum256(id)
				const chunks = 10
				key := func(kind byte, i int) []byte {
					k := append(bytes.Clone(id), kind)
					k = binary.BigEndian.AppendUint32(k, uint32(area.MinX))
					return binary.BigEndian.AppendUint32(k, uint32(area.MinZ+int32(i)))
				}
				for i := range chunks {
					must(rows.Add(key('b', i), base[:]))
				}
				for i := range chunks {
					for j := range edits / chunks {
						at, block := uint32(j*37+random.IntN(37)), byte(1+random.IntN(40))
						must(rows.Add(binary.BigEndian.AppendUint32(key('e', i), at), []byte{0, block}))
					}
				}
			})
		}
		return w.Close()
	}, nil)
	must(err)
}

// A world with many regions and edits is backed up through one of three nodes while players edit: all that was acknowledged before is
// there when it is restored, and no tick is late because of it. make backup-proof runs it with 2,000 regions and a million edits.
func TestLargeBackup(t *testing.T) {
	file := filepath.Join(t.TempDir(), "large.voxback")
	largeWorld(t, file, *largeRegions, *largeEdits)
	begun := time.Now()
	first := newDaemon(t, kit.Options{Dir: filepath.Join(t.TempDir(), "data"), Args: []string{"--edits-per-second", "1000"}})
	if out, errs, code := voxeld(t, "restore", file, "--data-dir", first.dir); code != 0 {
		t.Fatalf("voxeld restore: exit %d: %s%s", code, out, errs)
	}
	t.Logf("restored in %v", time.Since(begun).Round(time.Millisecond))
	first.start()
	token := first.invite()
	nodes := []*daemon{first, startDaemon(t, "--join", token, "--edits-per-second", "1000"), startDaemon(t, "--join", token, "--edits-per-second", "1000")}

	ann := join(t, nodes[2].Game, "ann", 1)
	kept, busy := make(map[grid.Pos]chunk.Block), []grid.Pos(nil)
	for dx := int32(-2); dx <= 2; dx++ {
		for dz := int32(-2); dz <= 2; dz++ {
			busy = append(busy, under(ann, 2, dx, dz))
			kept[under(ann, 1, dx, dz)] = []chunk.Block{chunk.Brick, chunk.Glass, chunk.Planks}[(dx+dz+4)%3]
		}
	}
	for pos := range kept {
		ann.until("the ground", func() bool { _, ok := ann.at(pos); return ok })
	}
	for pos, b := range kept {
		ann.putPatiently(pos, b)
	}
	late := func() (n float64) {
		for _, d := range nodes {
			n += d.metric("voxeld_region_late_ticks_total")
		}
		return n
	}
	// play edits 200 times a second for as long as during runs, and returns how many edits were acknowledged.
	play := func(during func()) (acknowledged int, took time.Duration, lateTicks float64) {
		done := make(chan struct{})
		before, start := late(), time.Now()
		go func() { defer close(done); during() }()
		pace := time.NewTicker(5 * time.Millisecond)
		defer pace.Stop()
		var seqs []uint64
		for i := 0; ; i++ {
			select {
			case <-done:
				took = time.Since(start)
				ann.until("answers", func() bool { _, ok := ann.Acks[seqs[len(seqs)-1]]; return ok })
				for _, seq := range seqs {
					if a, ok := ann.Acks[seq]; ok && a.Error == "" {
						acknowledged++
					}
				}
				return acknowledged, took, late() - before
			case <-pace.C:
				seqs = append(seqs, ann.edit(busy[i%len(busy)], []chunk.Block{chunk.Brick, chunk.Glass}[i/len(busy)%2]))
				if i%20 == 0 {
					ann.drain()
				}
			}
		}
	}
	_, took, quiet := play(func() { time.Sleep(5 * time.Second) }) // the comparison: this much time without a backup
	t.Logf("without a backup: %.0f late ticks in %v", quiet, took.Round(time.Millisecond))
	var made string
	n, took, lateTicks := play(func() { made = nodes[1].backUp() })
	info, err := os.Stat(made)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("backup of %d regions with %d edits: %v, %d bytes (%.2f MB/s), %.0f edits/s acknowledged meanwhile, %.0f late ticks", *largeRegions, *largeRegions**largeEdits,
		took.Round(time.Millisecond), info.Size(), float64(info.Size())/1e6/took.Seconds(), float64(n)/took.Seconds(), lateTicks)
	begun = time.Now()
	incremental := nodes[1].backUp("--since", made)
	t.Logf("incremental: %v", time.Since(begun).Round(time.Millisecond))
	for _, d := range nodes {
		d.kill()
	}
	begun = time.Now()
	again := restoreDaemon(t, made, incremental)
	t.Logf("verified, restored and running in %v", time.Since(begun).Round(time.Millisecond))
	bob := join(t, again.Game, "bob", 1)
	for pos, b := range kept {
		bob.sees(pos, b)
	}
}
