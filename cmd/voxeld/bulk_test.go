package main

import (
	"crypto/ed25519"
	"encoding/hex"
	"slices"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// bulkWindow is how many bulk edits of an operation are under way at once, as in the page.
const bulkWindow = 8

// bulkJob is what a player does with many blocks at once, as the page does it.
type bulkJob struct {
	by      *tester
	wants   func(at grid.Pos, there chunk.Block) (chunk.Block, bool)
	left    map[grid.ChunkPos][]grid.Pos // not sent yet
	sent    map[uint64]sessionmsg.Bulk   // by sequence number, without an answer
	changed map[grid.Pos][2]chunk.Block  // before and after
	again   int                          // bulk edits that were refused because something had changed
}

// bulk changes the blocks in a box.
func bulk(by *tester, box grid.Box, wants func(at grid.Pos, there chunk.Block) (chunk.Block, bool)) *bulkJob {
	o := &bulkJob{by: by, wants: wants, left: make(map[grid.ChunkPos][]grid.Pos), sent: make(map[uint64]sessionmsg.Bulk), changed: make(map[grid.Pos][2]chunk.Block)}
	for y := box.Min.Y; y <= box.Max.Y; y++ {
		for z := box.Min.Z; z <= box.Max.Z; z++ {
			for x := box.Min.X; x <= box.Max.X; x++ {
				pos := grid.Pos{X: x, Y: y, Z: z}
				o.left[pos.Chunk()] = append(o.left[pos.Chunk()], pos)
			}
		}
	}
	return o
}

// step sends what can be sent, and handles the answers. It reports whether everything is done.
func (o *bulkJob) step() bool {
	o.by.drain()
	for seq, m := range o.sent {
		ack, answered := o.by.Acks[seq]
		if !answered {
			continue
		}
		delete(o.sent, seq)
		at := grid.ChunkPos{X: m.X, Z: m.Z}
		runs, _ := hex.DecodeString(m.Runs)
		for to, from := range nodemsg.Bulk(runs).All() {
			pos := to.At.Pos(at)
			switch ack.Error {
			case "":
				o.changed[pos] = [2]chunk.Block{from, to.Block}
			case wire.RefusedChanged, wire.RefusedUnavailable, wire.RefusedInsidePlayer, wire.RefusedRate:
				o.left[at] = append(o.left[at], pos)
			default:
				o.by.t.Fatalf("a bulk edit was refused: %s", ack.Error)
			}
		}
		if ack.Error != "" {
			o.again++
		}
	}
	for at, all := range o.left {
		if len(all) == 0 {
			delete(o.left, at)
		} else if len(o.sent) < bulkWindow {
			o.left[at] = o.send(at, all)
		}
	}
	return len(o.left)+len(o.sent) == 0
}

// send sends a bulk edit for blocks of a chunk, and returns those that are left.
func (o *bulkJob) send(at grid.ChunkPos, all []grid.Pos) []grid.Pos {
	slices.SortFunc(all, func(a, b grid.Pos) int { return int(chunk.At(a)) - int(chunk.At(b)) })
	var runs []byte
	var run nodemsg.BulkRun
	end, blocks := chunk.Index(0), 0
	flush := func() {
		if run.Count > 0 {
			runs, end = nodemsg.AppendRun(runs, end, run), run.At+chunk.Index(run.Count)
		}
	}
	for len(all) > 0 && blocks < nodemsg.MaxBulkBlocks {
		pos := all[0]
		all = all[1:]
		there, seen := o.by.at(pos)
		if !seen {
			o.by.t.Fatalf("%v is not in sight", pos)
		}
		to, wanted := o.wants(pos, there)
		if !wanted {
			continue
		}
		if i := chunk.At(pos); run.Count == 0 || i != run.At+chunk.Index(run.Count) || there != run.From || to != run.To {
			flush()
			run = nodemsg.BulkRun{At: i, From: there, To: to}
		}
		run.Count++
		blocks++
	}
	flush()
	if blocks == 0 {
		return all
	}
	p := o.by
	p.seq++
	m := sessionmsg.Bulk{Seq: p.seq, X: at.X, Z: at.Z, Runs: hex.EncodeToString(runs)}
	m.Signature = hex.EncodeToString(ed25519.Sign(p.key, player.BulkText(p.Welcome.World, m.Seq, at, string(runs))))
	p.send(m)
	o.sent[m.Seq] = m
	return all
}

// run runs the operation, and calls meanwhile again and again.
func (o *bulkJob) run(meanwhile func(done int)) time.Duration {
	start := time.Now()
	for tick := time.NewTicker(5 * time.Millisecond); !o.step(); <-tick.C {
		if time.Since(start) > patience {
			o.by.t.Fatalf("not done within %v: %d blocks changed", patience, len(o.changed))
		}
		meanwhile(len(o.changed))
	}
	return time.Since(start)
}

// undo takes an operation back: where its blocks still are.
func (o *bulkJob) undo(box grid.Box) *bulkJob {
	return bulk(o.by, box, func(at grid.Pos, there chunk.Block) (chunk.Block, bool) {
		change, changed := o.changed[at]
		return change[0], changed && there == change[1]
	})
}

// A builder whose role may do so fills 30,000 blocks in four regions on three nodes, while others build there, and takes
// that back. Each time the leader of one of the regions is killed in it. No block is lost, or taken from others.
func TestBulkEdits(t *testing.T) {
	t.Parallel()
	all := cluster(t, 3)
	all[0].operate("role", "create", "chief", "builder", "bulk=65536,262144")
	corners := []grid.ChunkPos{{X: -1, Z: -1}, {X: -1}, {Z: -1}, {}}
	all[0].operate("setspawn", "0", "121", "0")
	come := func(d *daemon, name string) *tester {
		p := joinWithKey(t, d.Game, name, name+"'s key")
		p.send(sessionmsg.View{View: 2})
		p.walkTo(0, 0)
		p.until("the land of four regions", func() bool {
			return !slices.ContainsFunc(corners, func(at grid.ChunkPos) bool { _, seen := p.at(at.Origin()); return !seen })
		})
		return p
	}
	ann, bob := come(all[0], "ann"), come(all[1], "bob")
	ann.command("register")
	all[0].operate("role", "ann", "chief")
	agree(t, all...) // leaders, too, refuse bulk edits of whose role may make none
	victim, others := leaderOf(t, all, corners[0])
	for _, p := range []**tester{&ann, &bob} { // nobody plays at the node that is to die
		if name := (*p).Welcome.Name; (*p).RemoteAddr().String() == victim.Game {
			(*p).leave()
			*p = come(all[2], name)
		}
	}
	ann.until("what she may do", func() bool { return ann.Permissions.Bulk == 65536 })

	box := grid.Box{Min: grid.Pos{X: -25, Y: 110, Z: -25}, Max: grid.Pos{X: 24, Y: 121, Z: 24}}
	built := make(map[grid.Pos]bool) // by bob, acknowledged
	asked := make(map[uint64]grid.Pos)
	next := int32(0)
	build := func() { // bob builds near himself, in the same box
		bob.drain()
		for seq, pos := range asked {
			if ack, answered := bob.Acks[seq]; answered && ack.Error != wire.RefusedUnavailable {
				built[pos] = ack.Error == ""
				delete(asked, seq)
			} else if answered {
				delete(asked, seq)
				asked[bob.edit(pos, chunk.Glass)] = pos
			}
		}
		if len(asked) < 2 && next < 50 {
			pos := grid.Pos{X: next%5 - 2, Y: box.Max.Y - next/25, Z: next/5%5 - 2}
			next++
			asked[bob.edit(pos, chunk.Glass)] = pos
		}
	}
	late := func() (n float64) {
		for _, d := range others {
			n += d.metric("voxeld_region_late_ticks_total")
		}
		return n
	}
	// holds waits until bob sees a block everywhere in the box, and their own where they built.
	holds := func(what string, block chunk.Block) {
		t.Helper()
		bob.until(what, func() bool {
			build()
			for y := box.Min.Y; y <= box.Max.Y; y++ {
				for z := box.Min.Z; z <= box.Max.Z; z++ {
					for x := box.Min.X; x <= box.Max.X; x++ {
						pos, want := grid.Pos{X: x, Y: y, Z: z}, block
						if built[pos] {
							want = chunk.Glass
						}
						if there, _ := bob.at(pos); there != want {
							return false
						}
					}
				}
			}
			return len(asked) == 0 && next == 50
		})
	}
	for len(built) < 5 {
		build()
	}
	before, killed := late(), false
	fill := bulk(ann, box, func(_ grid.Pos, there chunk.Block) (chunk.Block, bool) { return chunk.Stone, there == chunk.Air })
	took := fill.run(func(done int) {
		if build(); done > 5000 && !killed {
			killed = true
			victim.kill()
		}
	})
	t.Logf("%d blocks in %v, a leader was killed; %d bulk edits were sent again; %v late ticks; bob has built %d blocks meanwhile",
		len(fill.changed), took.Round(time.Millisecond), fill.again, late()-before, len(built))
	if took > 10*time.Second || !killed {
		t.Errorf("the fill took %v; a leader was killed: %v", took, killed)
	}
	holds("the fill", chunk.Stone)
	undo := fill.undo(box)
	t.Logf("undone in %v", undo.run(func(int) { build() }).Round(time.Millisecond))
	holds("the air", chunk.Air)
}
