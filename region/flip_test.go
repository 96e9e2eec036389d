package region

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/region/integrity"
	"github.com/voxelpopuli/voxeld/store"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// This file flips bits in real databases: one of three copies, at rest and while its node runs.

// dbNode is a node on a real database.
type dbNode struct {
	*node
	path  string
	db    *store.DB
	ended chan error
}

// startDB opens a database and starts a node on it, as the daemon does. The error is the one that the daemon would exit
// with.
func (n *network) startDB(peer, path string) (*dbNode, error) {
	n.t.Helper()
	db, err := store.Open(store.Options{Path: path})
	if err != nil {
		return nil, err
	}
	h := &dbNode{path: path, db: db, ended: make(chan error, 1)}
	go func() { h.ended <- db.Run(context.Background()) }()
	n.adjust = func(_ string, o *Options) {
		o.DamagedRegions = make(map[uint64]string)
		for _, d := range db.CorruptRows() {
			groups, ok := Concerned(d.Table, d.Keys)
			for _, id := range groups {
				o.DamagedRegions[id] = d.String()
			}
			if !ok && d.Table != directory.Table || slices.Contains(groups, world.CatalogID) {
				err = errors.Join(kv.ErrDamaged, errors.New(d.String()))
			}
		}
	}
	var it *node
	if err == nil {
		it, err = n.startOn(peer, db)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close(), <-h.ended)
	}
	h.node = it
	return h, nil
}

// leave stops the node and closes its database. The error is the one that the daemon would exit with.
func (h *dbNode) leave() error {
	h.stop()
	return errors.Join(h.db.Close(), <-h.ended)
}

// landIn returns a region's rows in memory.
func (n *node) landIn(id uint64) map[string][]byte {
	rows := make(map[string][]byte)
	n.inside(id, func(tx actor.Tx) {
		for _, p := range tx.Contents().Parts() {
			tx.Contents().Rows(p, func(key, value []byte) { rows[string(key)] = bytes.Clone(value) })
		}
	})
	return rows
}

// open returns the region's loop if the node has it open and keeps it open for a moment, else nil.
func (n *node) open(id uint64) *actor.Land {
	l := n.regions.Loaded(id)
	if l == nil {
		return nil
	}
	if _, err := l.Info(context.Background()); err != nil {
		return nil
	}
	return l
}

// scrubWorld is a world of three stopped nodes: their databases, and the region in it.
type scrubWorld struct {
	images  map[string][]byte
	info    nodemsg.Region
	catalog nodemsg.Region
	land    map[string][]byte
}

// settled starts a world of three nodes, places some blocks and stops it.
func settled(t *testing.T) (d scrubWorld) {
	d.images = make(map[string][]byte)
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.copies = 3
		n.near("A", "B", "C")
		var all []*dbNode
		for _, peer := range []string{"A", "B", "C"} {
			h, err := n.startDB(peer, filepath.Join(t.TempDir(), peer))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, h)
		}
		g := all[2].follow(here)
		for i := range 30 {
			var edits []nodemsg.Intent
			for j := range 8 {
				seq := uint64(8*i + j + 1)
				pos := grid.ChunkPos{X: int32(i % 4), Z: 1}.Origin()
				to := grid.Pos{X: pos.X + int32(j), Y: 1 + int32(i), Z: pos.Z + int32(i%7)}
				edits = append(edits, guest(fmt.Sprint("guest", i%5), seq, to, chunk.Block(1+j%3)))
			}
			for seq, r := range g.edit(edits...) {
				if r.Refused != "" {
					t.Fatalf("edit %d: %+v", seq, r)
				}
			}
		}
		<-time.After(5 * time.Second)
		d.info = all[0].Regions(t.Context())[0].Region
		d.land = all[0].landIn(d.info.ID)
		var err error
		if d.catalog, err = n.Catalog(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, h := range all {
			if err := h.leave(); err != nil {
				t.Fatal(err)
			}
			image, err := os.ReadFile(h.path)
			if err != nil {
				t.Fatal(err)
			}
			d.images[h.peer] = image
		}
	})
	return d
}

// flip flips bits in the used parts of the image and returns their places.
func flip(image []byte, random *rand.Rand, bits int) (places []int) {
	page := os.Getpagesize()
	for len(places) < bits {
		at := random.IntN(len(image))
		if bytes.Count(image[at/page*page:][:page], []byte{0}) == page || image[at] == 0 && random.IntN(4) > 0 {
			continue
		}
		image[at] ^= 1 << random.IntN(8)
		places = append(places, at)
	}
	return places
}

// awake starts the three nodes on copies of the images, and C on the given image.
func (d scrubWorld) awake(t *testing.T, image []byte) (n *network, a, b, c *dbNode, refused error) {
	n = newNetwork(t)
	n.copies = 3
	n.near("A", "B", "C")
	n.mu.catalog = d.catalog
	n.mu.catalog.Leader = "A" // which is started first
	write := func(peer string, image []byte) string {
		path := filepath.Join(t.TempDir(), peer)
		if err := os.WriteFile(path, image, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var err error
	if a, err = n.startDB("A", write("A", d.images["A"])); err != nil {
		t.Fatal(err)
	}
	if b, err = n.startDB("B", write("B", d.images["B"])); err != nil {
		t.Fatal(err)
	}
	c, refused = n.startDB("C", write("C", image))
	return n, a, b, c, refused
}

// Bits flip in the file of one of three nodes while it is down. When the node is up again, its memory is never wrong:
// it refuses to start, or replaces its copy, or repairs it when it is scrubbed, or the bits were not in use.
func TestFlippedBitsAtRest(t *testing.T) {
	d := settled(t)
	random := rand.New(rand.NewPCG(5, 6))
	rounds := 60
	if testing.Short() {
		rounds = 10
	}
	outcomes := make(map[string]int)
	for round := range rounds {
		image := bytes.Clone(d.images["C"])
		places := flip(image, random, 1+round%2)
		outcome := ""
		synctest.Test(t, func(t *testing.T) {
			_, a, b, c, refused := d.awake(t, image)
			defer func() {
				for _, h := range []*dbNode{a, b} {
					if err := h.leave(); err != nil {
						t.Error(err)
					}
				}
			}()
			if refused != nil {
				if !errors.Is(refused, kv.ErrDamaged) && !errors.Is(refused, store.ErrFormat) && !integrity.IsDamage(refused) {
					t.Errorf("refused with %v", refused)
				}
				outcome = "refused at the start"
				return
			}
			outcome = d.check(t, a, b, c)
		})
		outcomes[outcome]++
		if t.Failed() {
			t.Fatalf("round %d, flips at %d: %s", round, places, outcome)
		}
	}
	t.Logf("%d rounds: %v", rounds, outcomes)
}

// scrub has the region scrubbed by its leader.
func (d scrubWorld) scrub(t *testing.T, all ...*dbNode) (out Scrubbed) {
	for range 5 {
		for _, h := range all {
			if out = h.Scrub(t.Context(), d.info.Cell); out.Err == nil {
				return out
			}
		}
		<-time.After(time.Second)
	}
	return out
}

// inspected opens a copy of a database. The error says what is wrong with it: it was refused, or it has damaged rows.
func inspected(path string) (refused bool, err error) {
	image, err := os.ReadFile(path)
	if err != nil {
		return false, err
	}
	path += ".copy"
	if err := os.WriteFile(path, image, 0o600); err != nil {
		return false, err
	}
	db, err := store.Open(store.Options{Path: path})
	if err != nil {
		return true, err
	}
	if all := db.CorruptRows(); len(all) > 0 {
		err = fmt.Errorf("%w: %v", kv.ErrDamaged, all)
	}
	return false, errors.Join(err, db.Close())
}

// stay keeps the region open.
func (n *node) stay() {
	g := n.refollow()
	go func() {
		for {
			if _, err := g.Receive(context.Background()); err != nil {
				return
			}
		}
	}()
}

// check follows the damaged node until it is sound or has ended.
func (d scrubWorld) check(t *testing.T, a, b, c *dbNode) (outcome string) {
	a.stay()
	defer func() {
		err := c.leave()
		if err != nil && !errors.Is(err, kv.ErrDamaged) {
			t.Errorf("the node ended with %v", err)
		}
		if err != nil {
			outcome = "the node ended with a clear error"
		}
	}()
	<-time.After(3 * time.Second)
	corrupt := len(c.Damaged()) > 0
	// (A replica that has just joined has no state yet, and reports nothing.)
	if l := c.open(d.info.ID); l != nil && l.Raft().Status().Applied > 0 && !maps.EqualFunc(c.landIn(d.info.ID), d.land, bytes.Equal) {
		t.Errorf("C has something wrong in its memory, and does not know it: %d of %d rows, replica %d, applied %d; its file: %v",
			len(c.landIn(d.info.ID)), len(d.land), c.replicaID(d.info.ID), l.Raft().Status().Applied, c.db.Check())
	}
	for began := time.Now(); corrupt && time.Since(began) < 2*time.Minute; <-time.After(time.Second) {
		if id := c.replicaID(d.info.ID); id > 3 {
			t.Logf("replaced after %v", time.Since(began))
			break
		}
	}
	select {
	case err := <-c.ended:
		c.ended <- err
		return "the node ended with a clear error"
	default:
	}
	replaced := c.replicaID(d.info.ID) > 3
	out := d.scrub(t, a, b, c)
	if broken := c.db.Check(); out.Err != nil || (len(out.Open) > 0 || out.Repaired != out.Damaged) && broken == nil {
		t.Errorf("scrub: %+v", out)
	} else if len(out.Open) > 0 {
		// The order of the keys in the file is broken: the damage can be reported, but the rows cannot be deleted.
		outcome = "reported; the file is refused at the next start"
		if _, err := inspected(c.path); err == nil {
			t.Errorf("the scrub leaves %v open, and the file would be opened without a word", out.Open)
		}
	}
	if g := a.refollow().state(here); len(g.Edits) == 0 {
		t.Error("the land is gone")
	}
	if l := c.open(d.info.ID); l == nil {
		broken := c.db.Check()
		if t.Logf("C has not opened the region: %v, %v", c.Damaged(), broken); broken == nil || len(c.Damaged()) == 0 {
			t.Errorf("its file is not broken, or the damage was not reported")
		}
		return "reported; the copy cannot be replaced in this file"
	} else if !maps.EqualFunc(c.landIn(d.info.ID), d.land, bytes.Equal) {
		t.Error("C still has something wrong")
	}
	switch {
	case outcome != "":
		return outcome
	case replaced:
		return "the copy was replaced"
	case out.Repaired > 0:
		return "mended by a scrub"
	case corrupt && c.db.Check() != nil:
		return "reported; the copy cannot be replaced in this file"
	case corrupt:
		t.Errorf("C's copy was condemned and nothing came of it: %+v", c.Damaged())
	}
	return "nothing that counts was hit"
}

// The same while the node runs. The scrub finds the damage on disk and repairs it.
func TestFlippedBitsWhileRunning(t *testing.T) {
	d := settled(t)
	random := rand.New(rand.NewPCG(7, 8))
	rounds := 40
	if testing.Short() {
		rounds = 8
	}
	outcomes := make(map[string]int)
	for round := range rounds {
		outcome := ""
		var places []int
		synctest.Test(t, func(t *testing.T) {
			_, a, b, c, refused := d.awake(t, d.images["C"])
			if refused != nil {
				t.Fatal(refused)
			}
			defer func() {
				for _, h := range []*dbNode{a, b} {
					if err := h.leave(); err != nil {
						t.Error(err)
					}
				}
			}()
			a.stay()
			<-time.After(3 * time.Second)
			if c.regions.Loaded(d.info.ID) == nil {
				t.Fatal("C has not opened the region")
			}
			image, err := os.ReadFile(c.path)
			if err != nil {
				t.Fatal(err)
			}
			before := bytes.Clone(image)
			places = flip(image, random, 1+round%2)
			file, err := os.OpenFile(c.path, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, at := range places {
				if image[at] != before[at] {
					if _, err := file.WriteAt(image[at:at+1], int64(at)); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := file.Close(); err != nil {
				t.Fatal(err)
			}
			out := d.scrub(t, a, b, c)
			if out.Err != nil {
				t.Errorf("scrub: %+v", out)
			}
			outcome = d.check(t, a, b, c)
			if outcome == "nothing that counts was hit" && out.Repaired > 0 {
				outcome = "mended by a scrub"
			}
			if outcome == "the node ended with a clear error" {
				return
			}
			// C's disk now has the right rows, or is refused.
			db, err := store.Open(store.Options{Path: c.path})
			if err != nil {
				if !errors.Is(err, kv.ErrDamaged) {
					t.Error(err)
				}
				outcome += ", refused at the next start"
				return
			}
			defer db.Close()
			rows := make(map[string][]byte)
			err = db.Scan(world.LandTable, directory.Key(d.info.ID), func(key, value []byte) error {
				rows[string(key)] = bytes.Clone(value)
				return nil
			})
			if err == nil && !maps.EqualFunc(rows, d.land, bytes.Equal) {
				t.Error("C has something else on its disk")
			}
		})
		outcomes[outcome]++
		if t.Failed() {
			t.Fatalf("round %d, flips at %d: %s", round, places, outcome)
		}
	}
	t.Logf("%d rounds: %v", rounds, outcomes)
}
