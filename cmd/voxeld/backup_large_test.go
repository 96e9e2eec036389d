package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/joining"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/backup"
	"github.com/voxelpopuli/voxeld/internal/config"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/terrain"
	kit "github.com/voxelpopuli/voxeld/test/testkit/daemon"
	"github.com/voxelpopuli/voxeld/test/testkit/metrics"
	"github.com/voxelpopuli/voxeld/trust"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

var (
	largeRegions = flag.Int("backup-regions", 60, "regions of the world of TestLargeBackup")
	largeEdits   = flag.Int("backup-edits", 500, "edits in each of them")
	largePlayers = flag.Int("backup-players", 4, "players, each in a region of their own, which thus runs and has three copies")
	largeRounds  = flag.Int("backup-rounds", 1, "backups, after each of which as much time passes without one")
)

// largeWorld writes a backup of a world that nobody has played: so many regions with so many edits each, far from the
// spawn, and so many guests, each in the middle of another region. In an open world nodes need no token, and their ids
// decide where they are members.
func largeWorld(t *testing.T, path string, open bool, regions, edits, players int) {
	t.Helper()
	seed := int64(33)
	g, err := newGenesis(config.World{Placement: string(grid.PlacementWalkad)}, "Large", &seed, defaultSections, defaultDay, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if !open {
		root, err := joining.CreateRootKey(filepath.Dir(path))
		if err != nil {
			t.Fatal(err)
		}
		g.Roots = []trust.Key{root.Key()}
	}
	land, err := terrain.New(terrain.Params{Seed: g.Seed, Sections: g.Sections, Version: g.Terrain})
	if err != nil {
		t.Fatal(err)
	}
	room := new(terrain.Room)
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
	_, err = backup.Create(path, path, func(out io.Writer) error {
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
				const chunks = 10
				key := func(kind byte, i int) []byte {
					k := append(bytes.Clone(id), kind)
					k = binary.BigEndian.AppendUint32(k, uint32(area.MinX))
					return binary.BigEndian.AppendUint32(k, uint32(area.MinZ+int32(i)))
				}
				for i := range chunks {
					base := land.ChunkIn(room, grid.ChunkPos{X: area.MinX, Z: area.MinZ + int32(i)}).Hash()
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
		table := backup.TableWriter{Name: backup.PlayersTable, Emit: w.Write}
		for i := range players {
			area, name := all[i*regions/players].Cell.Area(), guest(i)
			at := grid.ChunkPos{X: (area.MinX + area.MaxX) / 2, Z: (area.MinZ + area.MaxZ) / 2}
			p := nodemsg.PlayerRecord{Player: player.GuestID(name), Name: name, Guest: true, Seq: 1, Gateway: "a", SavedAt: time.Now().UnixMilli()}
			p.Pose = motion.Pose{X: float64(at.X)*grid.ChunkSize + 8.5, Y: 100, Z: float64(at.Z)*grid.ChunkSize + 8.5}
			row, err := nodemsg.EncodePlayerRecord(p)
			must(err)
			must(table.Add(p.Player[:], row))
		}
		w.AddRows(players)
		must(table.Flush())
		return w.Close()
	}, nil)
	must(err)
}

func guest(i int) string { return fmt.Sprintf("builder%d", i) }

// cycle are the blocks that a builder places, one after the other, at each of their spots.
var cycle = []chunk.Block{chunk.Brick, chunk.Glass, chunk.Planks, chunk.Stone, chunk.Sand, chunk.Dirt}

// builder is a player who changes the same spots over and over, in an order that shows which change a backup has.
type builder struct {
	*tester
	spots []grid.Pos
	sent  []uint64 // sequence numbers
	safe  int      // how many of them were acknowledged before the last backup, and kept how many were sent before it ended
	kept  int
}

func newBuilder(t *testing.T, address string, i int) *builder {
	b := &builder{tester: join(t, address, guest(i), 1)}
	for dx := int32(-2); dx <= 2; dx++ {
		for dz := int32(-2); dz <= 2; dz++ {
			b.spots = append(b.spots, under(b.tester, 2, dx, dz))
		}
	}
	for _, pos := range b.spots {
		b.until("the land", func() bool { _, ok := b.at(pos); return ok })
	}
	return b
}

func (b *builder) build() {
	i := len(b.sent)
	b.sent = append(b.sent, b.edit(b.spots[i%len(b.spots)], cycle[i/len(b.spots)%len(cycle)]))
	b.drain()
}

// settle waits until every edit is acknowledged.
func (b *builder) settle() {
	for _, seq := range b.sent {
		b.until("an answer", func() bool { _, ok := b.Acks[seq]; return ok })
		if a := b.Acks[seq]; a.Error != "" {
			b.t.Fatalf("edit refused: %s", a.Error)
		}
	}
}

// missing returns the spots where a player of the restored world does not see the last edit that was acknowledged
// before the backup, nor a later one.
func (b *builder) missing(seen *tester) (missing int) {
	for spot, pos := range b.spots {
		var block chunk.Block
		seen.until("the land", func() (ok bool) { block, ok = seen.at(pos); return ok })
		right := false
		for i := spot; i < b.kept; i += len(b.spots) {
			right = right || i+len(b.spots) >= b.safe && cycle[i/len(b.spots)%len(cycle)] == block
		}
		if !right {
			missing++
		}
	}
	return missing
}

// ticks are the ticks of all nodes: how long they took, and how late they began.
type ticks struct {
	took, lateness metrics.Histogram
	late           float64
}

func ticksOf(t *testing.T, nodes []*daemon) (n ticks) {
	t.Helper()
	for _, d := range nodes {
		m, err := d.Scrape(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		n.took = n.took.Plus(m.Histogram("voxeld_region_tick_seconds"))
		n.lateness = n.lateness.Plus(m.Histogram("voxeld_region_tick_lateness_seconds"))
		n.late += m.Value("voxeld_region_late_ticks_total")
	}
	return n
}

// add adds what was counted between two moments.
func (n *ticks) add(from, to ticks) {
	n.took = n.took.Plus(to.took.Since(from.took))
	n.lateness = n.lateness.Plus(to.lateness.Since(from.lateness))
	n.late += to.late - from.late
}

// over returns how many ticks exceeded the budget.
func (n ticks) over() float64 {
	return n.took.Count - n.took.Below[slices.Index(n.took.Upper, .05)]
}

func (n ticks) String() string {
	return fmt.Sprintf("%.0f ticks, %.0f of them late, %.0f over budget; 99 %% took at most %v s, and began at most %v s late",
		n.took.Count, n.late, n.over(), n.took.Quantile(.99), n.lateness.Quantile(.99))
}

// A world with many regions and edits is backed up through one of three nodes while players edit 200 times a second:
// all that was acknowledged before is there when it is restored. As much time passes without a backup, so that one can
// see whether ticks are late because of it. make backup-proof runs it with 2,000 regions and a million edits.
func TestLargeBackup(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "large.voxback")
	largeWorld(t, file, false, *largeRegions, *largeEdits, *largePlayers)
	begun := time.Now()
	first := newDaemon(t, kit.Options{Dir: filepath.Join(t.TempDir(), "data"), Args: []string{"--edits-per-second", "1000"}})
	if out, errs, code := voxeld(t, "restore", file, "--data-dir", first.dir, "--root-key", filepath.Join(filepath.Dir(file), joining.RootKeyFile)); code != 0 {
		t.Fatalf("voxeld restore: exit %d: %s%s", code, out, errs)
	}
	t.Logf("restored in %v", time.Since(begun).Round(time.Millisecond))
	first.start()
	token := first.invite()
	nodes := []*daemon{first, startDaemon(t, "--join", token, "--edits-per-second", "1000"), startDaemon(t, "--join", token, "--edits-per-second", "1000")}
	builders := make([]*builder, *largePlayers)
	for i := range builders {
		builders[i] = newBuilder(t, nodes[i%len(nodes)].Game, i)
	}
	begun = time.Now()
	eventually(t, "the regions of the players have three copies", patience, func() bool {
		copied := make(map[string]bool)
		for _, d := range nodes {
			for _, r := range d.regions() {
				if r.Bodies > 0 && r.Voters == len(nodes) {
					copied[r.Cell] = true
				}
			}
		}
		return len(copied) == len(builders)
	})
	t.Logf("%d regions have three copies after %v", len(builders), time.Since(begun).Round(time.Millisecond))

	// play edits 200 times a second for as long as during runs.
	play := func(count *ticks, during func()) (took time.Duration) {
		done := make(chan struct{})
		before, start := ticksOf(t, nodes), time.Now()
		go func() { defer close(done); during() }()
		pace := time.NewTicker(5 * time.Millisecond)
		defer pace.Stop()
		for i := 0; ; i++ {
			select {
			case <-done:
				took = time.Since(start)
				count.add(before, ticksOf(t, nodes))
				for _, b := range builders {
					b.settle()
				}
				return took
			case <-pace.C:
				builders[i%len(builders)].build()
			}
		}
	}
	var warm, with, without ticks
	play(&warm, func() { time.Sleep(2 * time.Second) })
	var made string
	for range *largeRounds {
		for _, b := range builders {
			b.safe = len(b.sent)
		}
		took := play(&with, func() { made = nodes[1].backUp() })
		for _, b := range builders {
			b.kept = len(b.sent)
		}
		play(&without, func() { time.Sleep(took) })
	}
	t.Logf("during backups:  %v", with)
	t.Logf("as much without: %v", without)
	if *largeRounds > 1 && with.over()/with.took.Count > 2*without.over()/without.took.Count+.001 {
		t.Error("ticks are over budget because of the backup")
	}
	begun = time.Now()
	incremental := nodes[1].backUp("--since", made)
	t.Logf("incremental: %v", time.Since(begun).Round(time.Millisecond))
	for _, d := range nodes {
		d.kill()
	}
	begun = time.Now()
	again := restoreDaemon(t, filepath.Join(filepath.Dir(file), joining.RootKeyFile), made)
	t.Logf("verified, restored and running in %v", time.Since(begun).Round(time.Millisecond))
	edits, missing := 0, 0
	for i, b := range builders {
		edits += b.safe
		missing += b.missing(join(t, again.Game, guest(i), 1))
	}
	if missing > 0 {
		t.Errorf("%d spots lack an edit that was acknowledged before the backup", missing)
	}
	t.Logf("restored with all of %d acknowledged edits", edits)
	if out, errs, code := voxeld(t, "verify", "--signed", made, incremental); code != 0 {
		t.Errorf("voxeld verify: exit %d: %s%s", code, out, errs)
	}
}
