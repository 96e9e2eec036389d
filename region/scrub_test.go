package region

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/copies"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// badRows are rows of a disk whose checksums are wrong: table/key.
type badRows map[string]bool

func (b badRows) check(table, key string) error {
	if b[table+"/"+key] {
		return fmt.Errorf("row %x: %w", key, kv.ErrDamaged)
	}
	return nil
}

// Keys reads no values, like that of the store.
func (d *disk) Keys(table string, prefix []byte, visit func(key []byte) error) error {
	d.mu.Lock()
	rows := d.rows(table, prefix)
	d.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		if err := visit([]byte(key)); err != nil {
			return err
		}
	}
	return nil
}

// harm changes a table without the node's knowledge.
func (d *disk) harm(table string, change func(rows map[string][]byte, bad badRows)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.bad == nil {
		d.bad = make(badRows)
	}
	change(d.own(table), d.bad)
}

// editRow returns the key of an edit's row.
func editRow(id uint64, e nodemsg.Intent) string {
	key := append(directory.Key(id), 'e')
	pos := e.Pos.Chunk()
	key = binary.BigEndian.AppendUint32(key, uint32(pos.X))
	key = binary.BigEndian.AppendUint32(key, uint32(pos.Z))
	return string(binary.BigEndian.AppendUint32(key, uint32(chunk.At(e.Pos))))
}

// land returns all rows of the region's land.
func (d *disk) land(id uint64) map[string][]byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rows(world.LandTable, directory.Key(id))
}

// inside runs f in the goroutine of the region's loop.
func (n *node) inside(id uint64, f func(l *actor.Land)) {
	n.net.t.Helper()
	l := n.regions.Loaded(id)
	if l == nil {
		n.net.t.Fatalf("%s has not opened the region", n.peer)
		return
	}
	done := make(chan struct{})
	if !l.Enqueue(func() { f(l); close(done) }) {
		n.net.t.Fatalf("%s is closing the region", n.peer)
	}
	select {
	case <-done:
	case <-l.Done():
		n.net.t.Fatalf("%s has closed the region", n.peer)
	}
}

// harmMemory changes the rows of a region's land in memory.
func (n *node) harmMemory(id uint64, change func(rows map[string][]byte)) {
	n.inside(id, func(l *actor.Land) {
		rows := make(map[string][]byte)
		for _, p := range l.Contents().Parts() {
			l.Contents().Rows(p, func(key, value []byte) { rows[string(key)] = bytes.Clone(value) })
		}
		change(rows)
		wrong := world.NewLand(id, l.Cell(), n.Height)
		for _, key := range slices.Sorted(maps.Keys(rows)) {
			if err := wrong.Load([]byte(key), rows[key]); err != nil {
				panic(err)
			}
		}
		wrong.Proofs = l.Contents().Proofs
		*l.Contents() = *wrong
	})
}

// loseChunk removes the rows of a chunk's edits.
func loseChunk(rows map[string][]byte) {
	maps.DeleteFunc(rows, func(key string, _ []byte) bool { return key[8] == editRow(0, stone(1))[8] })
}

// tryEdit sends an edit over a link that may break, and returns its result.
func (g gateway) tryEdit(ctx context.Context, e nodemsg.Intent) (nodemsg.EditResult, error) {
	if err := g.Send(nodemsg.ToRegion{Edits: []nodemsg.Intent{e}}); err != nil {
		return nodemsg.EditResult{}, err
	}
	for {
		frame, err := g.Receive(ctx)
		if err != nil {
			return nodemsg.EditResult{}, err
		}
		for _, r := range frame.Results {
			if r.Seq == e.Seq {
				return r, nil
			}
		}
	}
}

// stays follows the region for as long as the test runs.
func (n *node) stays() {
	go func() {
		for n.net.t.Context().Err() == nil {
			link, _, err := n.Follow(n.net.t.Context(), here)
			for err == nil {
				_, err = link.Receive(n.net.t.Context())
			}
			<-time.After(100 * time.Millisecond)
		}
	}()
}

// replaced waits until a node's copy is replaced, and nothing is wrong any more.
func (n *node) replaced(id, before uint64) {
	n.net.t.Helper()
	for range 180 {
		if n.replicaID(id) > before && len(n.Damaged()) == 0 {
			return
		}
		<-time.After(time.Second)
	}
	n.net.t.Errorf("%s is replica %d, and knows of %+v", n.peer, n.replicaID(id), n.Damaged())
}

// built starts a world of three with a region in which some blocks were placed, led by A.
func built(t *testing.T) (a, b, c *node, g gateway, info nodemsg.Region) {
	_, a, b, c = three(t)
	g = c.follow(here)
	for i := range 5 {
		e := stone(uint64(i + 1))
		e.Pos.Y += int32(i)
		if r := g.edit(e)[e.Seq]; r.Refused != "" {
			t.Fatalf("edit: %+v", r)
		}
	}
	<-time.After(2 * time.Second)
	return a, b, c, g, a.Regions(t.Context())[0].Region
}

// same compares the copies of all nodes, on disk and in memory.
func same(t *testing.T, id uint64, nodes ...*node) {
	t.Helper()
	<-time.After(time.Second)
	want := nodes[0].disk.land(id)
	for _, n := range nodes {
		if got := n.disk.land(id); !maps.EqualFunc(got, want, bytes.Equal) {
			t.Errorf("on the disk of %s are %d rows, on that of %s %d", n.peer, len(got), nodes[0].peer, len(want))
		}
		memory := make(map[string][]byte)
		n.inside(id, func(l *actor.Land) {
			for _, p := range l.Contents().Parts() {
				l.Contents().Rows(p, func(key, value []byte) { memory[string(key)] = bytes.Clone(value) })
			}
		})
		if !maps.EqualFunc(memory, want, bytes.Equal) {
			t.Errorf("in the memory of %s is something else than on the disk of %s", n.peer, nodes[0].peer)
		}
		n.disk.harm(world.LandTable, func(_ map[string][]byte, bad badRows) {
			if len(bad) > 0 {
				t.Errorf("%s still has rows with wrong checksums", n.peer)
			}
		})
	}
}

func TestScrubFindsNothingInSoundCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c, _, info := built(t)
		out := a.Scrub(t.Context(), info.Cell)
		if out.Err != nil || out.Reported != 3 || out.Members != 3 || out.Parts != 2 || len(out.Differ) != 0 || len(out.Open) != 0 {
			t.Errorf("%+v", out)
		}
		if out := b.Scrub(t.Context(), info.Cell); out.Err == nil || !strings.Contains(out.Err.Error(), "led by A") {
			t.Errorf("asked at a follower: %+v", out)
		}
		same(t, info.ID, a, b, c)
	})
}

// One copy of three may be damaged in any way, in memory or on disk, on the leader or on a follower: it is replaced by one that is that of the
// majority.
func TestDifferentCopyIsReplaced(t *testing.T) {
	harms := map[string]func(it *node, id uint64){
		"a bit in a value": func(it *node, id uint64) {
			it.disk.harm(world.LandTable, func(_ map[string][]byte, bad badRows) {
				bad[world.LandTable+"/"+editRow(id, stone(1))] = true
			})
		},
		"another block on disk": func(it *node, id uint64) {
			it.disk.harm(world.LandTable, func(rows map[string][]byte, _ badRows) {
				rows[editRow(id, stone(1))] = []byte{0, byte(chunk.Dirt)}
			})
		},
		"a row is lost": func(it *node, id uint64) {
			it.disk.harm(world.LandTable, func(rows map[string][]byte, _ badRows) { delete(rows, editRow(id, stone(1))) })
		},
		"a row of no edit": func(it *node, id uint64) {
			other := stone(1)
			other.Pos.Y += 20
			it.disk.harm(world.LandTable, func(rows map[string][]byte, bad badRows) {
				rows[editRow(id, other)] = []byte{0, 1}
				bad[world.LandTable+"/"+editRow(id, other)] = true
			})
		},
		"another block in memory": func(it *node, id uint64) {
			it.harmMemory(id, func(rows map[string][]byte) { rows[editRow(id, stone(1))] = []byte{0, byte(chunk.Dirt)} })
		},
		"the chunk is lost in memory": func(it *node, id uint64) { it.harmMemory(id, loseChunk) },
	}
	for name, harm := range harms {
		for _, who := range []string{"A", "C"} {
			t.Run(name+" on "+who, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					a, b, c, g, info := built(t)
					damaged := map[string]*node{"A": a, "C": c}[who]
					harm(damaged, info.ID)
					g.Close()
					b.stays()
					out := a.Scrub(t.Context(), info.Cell)
					if out.Err != nil || !slices.Equal(out.Differ, []string{who}) || len(out.Open) != 0 {
						t.Errorf("%+v", out)
					}
					<-time.After(time.Second)
					if d := damaged.facts.Decide(info.ID); d != (copies.Decision{Action: copies.Replace, Reason: copies.Different}) {
						t.Errorf("%s decides %v because %v", who, d.Action, d.Reason)
					}
					damaged.replaced(info.ID, 3)
					same(t, info.ID, a, b, c)
					g = b.refollow()
					if s := g.state(here); len(s.Edits) != 5 || s.Edits[0].Block != chunk.Stone {
						t.Errorf("the land has the edits %+v", s.Edits)
					}
					if r := g.edit(stone(9))[9]; r.Refused != "" {
						t.Errorf("afterwards: %+v", r)
					}
					same(t, info.ID, a, b, c)
					if out := leaderAmong(a, b, c).Scrub(t.Context(), info.Cell); out.Err != nil || out.Reported != 3 || len(out.Differ) != 0 {
						t.Errorf("compared again: %+v", out)
					}
				})
			})
		}
	}
}

// Two members are damaged in different parts: neither becomes the source of the other's new copy, and the one that leads hands over to the
// member whose copy is sound.
func TestTwoDifferentCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c, g, info := built(t)
		other := stone(50)
		other.Pos = at(grid.ChunkPos{X: here.X + 1, Z: here.Z}, 10)
		if r := g.edit(other)[50]; r.Refused != "" {
			t.Fatalf("%+v", r)
		}
		<-time.After(2 * time.Second)
		g.Close()
		b.stays()
		a.harmMemory(info.ID, func(rows map[string][]byte) { delete(rows, editRow(info.ID, stone(1))) })
		c.disk.harm(world.LandTable, func(rows map[string][]byte, _ badRows) { delete(rows, editRow(info.ID, other)) })
		if out := a.Scrub(t.Context(), info.Cell); out.Err != nil || !slices.Equal(out.Differ, []string{"A", "C"}) {
			t.Errorf("%+v", out)
		}
		a.replaced(info.ID, 3)
		c.replaced(info.ID, 3)
		same(t, info.ID, b, a, c)
		if s := b.refollow().state(here); len(s.Edits) != 5 {
			t.Errorf("the land has the edits %+v", s.Edits)
		}
	})
}

// A member compares by itself: one node that says that copies differ changes nothing.
func TestComparisonIsNotBelieved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, c, _, info := built(t)
		if out := a.Scrub(t.Context(), info.Cell); out.Err != nil {
			t.Fatal(out.Err)
		}
		at := nodemsg.LogPosition{Group: info.ID, Index: a.regions.Loaded(info.ID).Raft().Status().Last}
		if answer := c.ask("A", nodemsg.Question{Compare: &at}); answer.Error != "" {
			t.Errorf("the leader: %v", answer.Error)
		}
		if answer := c.ask("B", nodemsg.Question{Compare: &at}); answer.Error == "" {
			t.Error("a member that does not lead may have a copy compared")
		}
		<-time.After(30 * time.Second)
		if p, err := c.Replicas.Position(info.ID); c.facts.Err(info.ID) != nil || err != nil || p.Replica != 3 {
			t.Errorf("C is replica %d: %v, %v", p.Replica, c.facts.Err(info.ID), err)
		}
	})
}

// Edits made while a copy is replaced are neither lost nor undone.
func TestReplacingKeepsEdits(t *testing.T) {
	for _, who := range []string{"A", "B"} {
		t.Run(who, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b, c, g, info := built(t)
				damaged := map[string]*node{"A": a, "B": b}[who]
				damaged.harmMemory(info.ID, loseChunk)
				if out := a.Scrub(t.Context(), info.Cell); out.Err != nil || !slices.Equal(out.Differ, []string{who}) {
					t.Errorf("%+v", out)
				}
				placed := make(map[uint32]chunk.Block)
				for seq := uint64(100); damaged.replicaID(info.ID) <= 3 && seq < 3000; seq++ {
					<-time.After(50 * time.Millisecond) // an edit by itself takes no time in this network
					e := stone(seq)
					e.Pos.Y = 10 + int32(seq-100)%40
					e.Block = chunk.Block(1 + seq%3)
					for try := 0; ; try++ {
						ctx, cancel := context.WithTimeout(t.Context(), time.Second)
						r, err := g.tryEdit(ctx, e)
						cancel()
						if err == nil && r.Refused == "" {
							placed[uint32(chunk.At(e.Pos))] = e.Block
							break
						}
						if try == 30 {
							t.Fatalf("edit %d: %+v, %v", seq, r, err)
						}
						g.Close()
						g = c.refollow()
					}
				}
				damaged.replaced(info.ID, 3)
				if len(placed) == 0 {
					t.Error("nothing was built meanwhile")
				}
				same(t, info.ID, a, b, c)
				now := make(map[uint32]chunk.Block)
				for _, e := range c.refollow().state(here).Edits {
					now[uint32(e.At)] = e.Block
				}
				for at, block := range placed {
					if now[at] != block {
						t.Errorf("at %d is %v, want %v", at, now[at], block)
					}
				}
			})
		})
	}
}

// With two members that differ, or a single one whose disk differs from its memory, the right copy is unknown: the scrub reports
// it and changes nothing.
func TestScrubWithoutMajority(t *testing.T) {
	for members := 1; members <= 2; members++ {
		t.Run(fmt.Sprint(members), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(t)
				n.copies = members
				n.near([]string{"A", "B"}[:members]...)
				a := n.start("A", newDisk())
				if members == 2 {
					n.start("B", newDisk())
				}
				g := a.follow(here)
				g.edit(stone(1))
				<-time.After(2 * time.Second)
				info := a.Regions(t.Context())[0].Region
				if members == 2 {
					a.harmMemory(info.ID, loseChunk)
				} else {
					a.disk.harm(world.LandTable, func(rows map[string][]byte, _ badRows) { delete(rows, editRow(info.ID, stone(1))) })
				}
				before := a.disk.land(info.ID)
				out := a.Scrub(t.Context(), info.Cell)
				if out.Err != nil || len(out.Differ) != 0 || len(out.Open) != 1 {
					t.Errorf("%+v", out)
				}
				if d := a.Damaged(); len(d) != 1 || d[0].Region != info.ID || d[0].Peer != "" {
					t.Errorf("damaged: %+v", d)
				}
				if !maps.EqualFunc(a.disk.land(info.ID), before, bytes.Equal) {
					t.Error("the disk was touched")
				}
			})
		})
	}
}

// A single member whose disk has wrong checksums has nothing to repair it from: it says so.
func TestScrubAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		a := n.start("A", newDisk())
		g := a.follow(here)
		g.edit(stone(1))
		<-time.After(time.Second)
		info := a.Regions(t.Context())[0].Region
		a.disk.harm(world.LandTable, func(_ map[string][]byte, bad badRows) {
			bad[world.LandTable+"/"+editRow(info.ID, stone(1))] = true
		})
		if out := a.Scrub(t.Context(), info.Cell); out.Err != nil || len(out.Differ) != 0 || len(out.Open) != 1 {
			t.Errorf("%+v", out)
		}
		if d := a.Damaged(); len(d) != 1 || !strings.Contains(d[0].Do, "backup") {
			t.Errorf("damaged: %+v", d)
		}
		if r := g.edit(stone(2))[2]; r.Refused != "" {
			t.Errorf("it goes on with its memory: %+v", r)
		}
	})
}

// While a member is away, the copy of another one that differs is not replaced: the edits would be on one disk only. It is when the member is
// back.
func TestReplacedOnceOthersAreBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c, g, info := built(t)
		g.Close()
		left := a.net.kill(b)
		a.stays()
		<-time.After(2 * time.Second)
		c.disk.harm(world.LandTable, func(rows map[string][]byte, _ badRows) { rows[editRow(info.ID, stone(2))] = []byte{0, 1} })
		c.disk.harm(world.LandTable, func(_ map[string][]byte, bad badRows) { bad[world.LandTable+"/"+editRow(info.ID, stone(2))] = true })
		out := a.Scrub(t.Context(), info.Cell)
		if out.Err != nil || out.Reported != 2 || !slices.Equal(out.Differ, []string{"C"}) {
			t.Errorf("%+v", out)
		}
		<-time.After(15 * time.Second)
		if id := c.replicaID(info.ID); id != 3 {
			t.Errorf("C is replica %d while B is away", id)
		}
		b = a.net.start("B", left)
		c.replaced(info.ID, 3)
		same(t, info.ID, a, b, c)
	})
}

// A member that says for as long as it likes that it is not ready does not hold up the scrub once most members have reported.
func TestScrubDoesNotWaitForOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, c, _, info := built(t)
		release := c.disk.block()
		defer release()
		start := time.Now()
		if out := a.Scrub(t.Context(), info.Cell); out.Err != nil || out.Reported != 2 || len(out.Open) != 0 {
			t.Errorf("%+v", out)
		}
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// The leader's own report is waited for, and so are those of members that take longer because they have gateways.
func TestScrubWaitsForBusyMembers(t *testing.T) {
	const parts = 257 // each is read on its own
	for name, slow := range map[string][3]time.Duration{
		"leader": {20 * time.Second, 0, 0}, "another": {5 * time.Second, 5 * time.Second, 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b, c, _, info := built(t)
				a.follow(here) // it does not hibernate
				for i, it := range []*node{a, b, c} {
					it.disk.setSlow(slow[i] / parts)
					defer it.disk.setSlow(0)
				}
				if out := a.Scrub(t.Context(), info.Cell); out.Err != nil || out.Reported != 3 || len(out.Open) != 0 {
					t.Errorf("%+v", out)
				}
			})
		})
	}
}

// A member that was opened again after a barrier has no report of it, and does not say that there will be one.
func TestReportIsLostWhenOpenedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, c, g, info := built(t)
		if out := a.Scrub(t.Context(), info.Cell); out.Err != nil {
			t.Fatal(out.Err)
		}
		at := nodemsg.LogPosition{Group: info.ID, Index: a.regions.Loaded(info.ID).Raft().Status().Last}
		<-time.After(2 * time.Second) // it is stored
		g.Close()
		c = a.net.start("C", a.net.kill(c))
		l, err := c.regions.Open(t.Context(), info.ID, info.Cell)
		if err != nil {
			t.Fatal(err)
		}
		if got := l.ServeDigests(t.Context(), "A", at); got.Wait || got.Error == "" {
			t.Errorf("its report: %+v", got)
		}
		at.Index += 1000
		if got := l.ServeDigests(t.Context(), "A", at); !got.Wait {
			t.Errorf("its report of a barrier that it has not reached: %+v", got)
		}
	})
}

// A closed region is woken to be scrubbed, and hibernates again.
func TestScrubWakesClosedRegions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c, g, info := built(t)
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		if a.regions.Loaded(info.ID) != nil || c.regions.Loaded(info.ID) != nil {
			t.Fatal("the region does not sleep")
		}
		c.disk.harm(world.LandTable, func(rows map[string][]byte, _ badRows) { delete(rows, editRow(info.ID, stone(1))) })
		all := a.ScrubAll(t.Context())
		if len(all) != 1 || all[0].Err != nil || !slices.Equal(all[0].Differ, []string{"C"}) {
			t.Errorf("%+v", all)
		}
		<-time.After(2 * time.Minute)
		if p, err := c.Replicas.Position(info.ID); err != nil || p.Replica <= 3 || !maps.EqualFunc(c.disk.land(info.ID), b.disk.land(info.ID), bytes.Equal) {
			t.Errorf("C has %+v, %v", p, err)
		}
		if a.regions.Loaded(info.ID) != nil {
			t.Error("the region does not sleep again")
		}
	})
}

func TestScrubsComeByThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.copies = 3
		n.adjust = func(_ string, o *Options) { o.ScrubEvery = time.Minute }
		n.near("A", "B", "C")
		a := n.start("A", newDisk())
		n.start("B", newDisk())
		c := n.start("C", newDisk())
		g := c.follow(here)
		g.edit(stone(1))
		go func() {
			for {
				if _, err := g.Receive(t.Context()); err != nil {
					return
				}
			}
		}()
		<-time.After(5 * time.Second)
		info := a.Regions(t.Context())[0].Region
		c.disk.harm(world.LandTable, func(rows map[string][]byte, _ badRows) { delete(rows, editRow(info.ID, stone(1))) })
		<-time.After(3 * time.Minute)
		if rows := c.disk.land(info.ID); len(rows) != 3 || c.replicaID(info.ID) <= 3 {
			t.Errorf("%d rows after three minutes, as replica %d", len(rows), c.replicaID(info.ID))
		}
	})
}

// A node that loses the leadership during a scrub reports that and changes nothing: the members' reports were for its own marks.
func TestScrubEndsWithTheLeadership(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, c, _, info := built(t)
		c.disk.harm(world.LandTable, func(rows map[string][]byte, _ badRows) { delete(rows, editRow(info.ID, stone(1))) })
		release := c.disk.block() // so that it takes a while
		done := make(chan Scrubbed, 1)
		go func() { done <- a.Scrub(t.Context(), info.Cell) }()
		<-time.After(time.Second)
		if err := a.regions.Loaded(info.ID).Raft().Transfer("B"); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Second)
		release()
		if out := <-done; out.Err == nil || len(out.Differ) != 0 {
			t.Errorf("%+v", out)
		}
		if rows := c.disk.land(info.ID); len(rows) != 6 {
			t.Errorf("%d rows, as if somebody had changed them", len(rows))
		}
	})
}
