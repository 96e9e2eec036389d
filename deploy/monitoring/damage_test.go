package monitoring

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	kit "github.com/voxelpopuli/voxeld/test/testkit/daemon"
	"github.com/voxelpopuli/voxeld/test/testkit/sessionclient"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// This file damages data: bits flip, an old copy is put back, terrain changes.

// The only replica of a region is damaged, and the region is put back from a backup.
func TestDamagedReplica(t *testing.T) {
	rare(t)
	t.Parallel()
	n := newWorld(t, 1)[0]
	p := newPrometheus(t, fast, n)
	bots := n.play("--players", "4", "--edits", "2")
	cell, id := n.edited(1)
	bots.Stop()
	file := filepath.Join(t.TempDir(), "world.voxback")
	n.voxeld("backup", file)
	n.drain()
	n.flipEdit(id)
	n.start("")
	p.fires(n, "VoxeldReplicaDamaged")
	n.voxeld("region", "recover", cell, "--from", file, "--yes")
	p.clears(n, "VoxeldReplicaDamaged")
	p.onlyFired("VoxeldReplicaDamaged", "VoxeldNodeDown")
}

// A new player removes blocks as fast as they can.
func TestVandal(t *testing.T) {
	rare(t)
	t.Parallel()
	n := newWorld(t, 1)[0]
	p := newPrometheus(t, fast, n)
	vandal := n.play("--players", "1", "--edits", "20")
	p.fires(n, "VoxeldVandalism")
	vandal.Stop()
	p.clears(n, "VoxeldVandalism")
	p.onlyFired("VoxeldVandalism")
}

// A bit of one replica of three flips, and the others replace it. Then an old copy of that node's data is put back.
func TestRepairedReplica(t *testing.T) {
	rare(t)
	t.Parallel()
	all := newWorld(t, 3)
	a, c := all[0], all[2]
	p := newPrometheus(t, fast, all...)
	bots := a.play("--players", "4", "--edits", "2")
	_, id := a.edited(3)
	bots.Stop()
	a.healthy()
	c.drain()
	old := filepath.Join(t.TempDir(), "old")
	if err := os.CopyFS(old, os.DirFS(c.o.Dir)); err != nil {
		t.Fatal(err)
	}
	c.flipEdit(id)
	c.start("")
	p.fires(c, "VoxeldReplicaRepaired")
	a.healthy()

	c.drain()
	if err := os.RemoveAll(c.o.Dir); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(c.o.Dir, os.DirFS(old)); err != nil {
		t.Fatal(err)
	}
	c.start("")
	p.fires(c, "VoxeldReplicaRolledBack")
	a.healthy()
	c.drain()
	c.start("")
	p.clears(c, "VoxeldReplicaRolledBack", "VoxeldNodeDown")
}

// A node is started in a version that generates other terrain than the one under its edits, and nobody has the right
// one.
func TestOtherTerrain(t *testing.T) {
	rare(t)
	t.Parallel()
	other, err := otherTerrainBinary()
	if err != nil {
		t.Fatal(err)
	}
	n := newWorld(t, 1)[0]
	right := n.o.Binary
	p := newPrometheus(t, fast, n)
	bots := n.play("--players", "9", "--edits", "2", "--mode", "many-chunks", "--chunks", "9")
	n.edited(1)
	n.drain()
	bots.Stop()
	n.restartAs(func(o *kit.Options) { o.Binary = other })
	n.look()
	p.fires(n, "VoxeldTerrainDiffers", "VoxeldTerrainMissing")
	n.restartAs(func(o *kit.Options) { o.Binary = right })
	p.clears(n, "VoxeldTerrainDiffers", "VoxeldTerrainMissing")
	p.onlyFired("VoxeldTerrainDiffers", "VoxeldTerrainMissing", "VoxeldNodeDown")
}

// look lets a player stand at the spawn and look around until the test or the node ends. Unlike bots they do not leave
// if land is missing.
func (n *node) look() {
	n.t.Helper()
	c, err := sessionclient.Dial(n.t.Context(), n.Game, sessionmsg.Join{Name: "ann", View: 6, Encoding: sessionmsg.EncodingJSON})
	if err != nil {
		n.t.Fatal(err)
	}
	ann := sessionclient.NewPlayer(c)
	var looking sync.WaitGroup
	looking.Go(func() {
		for m := range ann.Inbox {
			if m.Err != nil {
				return
			}
			if _, err := ann.Apply(m.FromServer); err != nil {
				return
			}
		}
	})
	n.t.Cleanup(func() { ann.Leave(); looking.Wait() })
}

// edited waits for a region with edits and this many voters.
func (n *node) edited(voters int) (cell string, id uint64) {
	n.t.Helper()
	eventually(n.t, "a region with edits", func() bool {
		var all []struct {
			Cell, ID      string
			Edits, Voters int
		}
		if err := n.Ask(n.t.Context(), "/regions", &all); err != nil {
			n.t.Fatal(err)
		}
		for _, r := range all {
			if r.Edits < 10 || r.Voters < voters {
				continue
			}
			var err error
			if id, err = strconv.ParseUint(r.ID, 16, 64); err != nil {
				n.t.Fatal(err)
			}
			cell = r.Cell
			return true
		}
		return false
	})
	return cell, id
}

// splitAndMerge splits a region with edits, and merges it again.
func (n *node) splitAndMerge() {
	n.t.Helper()
	cell, _ := n.edited(1)
	n.voxeld("region", "split", cell)
	n.voxeld("region", "merge", cell)
}

// drain stops the node as an operator does.
func (n *node) drain() {
	n.t.Helper()
	n.voxeld("drain")
	<-n.Ended()
}

// flipEdit flips a bit of an edit of the region, wherever its row lies in the database of the stopped node.
func (n *node) flipEdit(region uint64) {
	n.t.Helper()
	path := filepath.Join(n.o.Dir, "voxeld.db")
	image, err := os.ReadFile(path)
	if err != nil {
		n.t.Fatal(err)
	}
	const size = 21 // of a key: region, 'e', chunk, position
	prefix := append(binary.BigEndian.AppendUint64(nil, region), 'e')
	var last []byte // the last key: it is not in a branch page
	for i := bytes.Index(image, prefix); i >= 0; {
		if key := image[i : i+size]; bytes.Compare(key, last) > 0 {
			last = bytes.Clone(key)
		}
		next := bytes.Index(image[i+size:], prefix)
		if next < 0 {
			break
		}
		i += size + next
	}
	if last == nil {
		n.t.Fatal("the database has no edit of the region")
	}
	for i := 0; ; {
		found := bytes.Index(image[i:], last)
		if found < 0 {
			break
		}
		i += found + size
		image[i+1] ^= 4 // of the block
	}
	if err := os.WriteFile(path, image, 0o600); err != nil {
		n.t.Fatal(err)
	}
}
