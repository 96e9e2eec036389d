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
	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/region/actor"
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
func (n *node) inside(id uint64, f func(tx actor.Tx)) {
	n.net.t.Helper()
	l := n.regions.Loaded(id)
	if l == nil {
		n.net.t.Fatalf("%s has not opened the region", n.peer)
		return
	}
	done := make(chan struct{})
	if !l.Enqueue(func(tx actor.Tx) { f(tx); close(done) }) {
		n.net.t.Fatalf("%s is closing the region", n.peer)
	}
	select {
	case <-done:
	case <-l.Done():
		n.net.t.Fatalf("%s has closed the region", n.peer)
	}
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
		n.inside(id, func(tx actor.Tx) {
			for _, p := range tx.Contents().Parts() {
				tx.Contents().Rows(p, func(key, value []byte) { memory[string(key)] = bytes.Clone(value) })
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
		if out.Err != nil || out.Reported != 3 || out.Members != 3 || out.Parts != 2 || out.Damaged != 0 || len(out.Open) != 0 {
			t.Errorf("%+v", out)
		}
		if out := b.Scrub(t.Context(), info.Cell); out.Err == nil || !strings.Contains(out.Err.Error(), "led by A") {
			t.Errorf("asked at a follower: %+v", out)
		}
		same(t, info.ID, a, b, c)
	})
}

// One copy of three may be damaged in any way, in memory or on disk, on the leader or on a follower: it is repaired
// from the others, and checked again.
func TestScrubMends(t *testing.T) {
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
			it.inside(id, func(tx actor.Tx) {
				var rows []kv.Write
				tx.Contents().Rows(world.Part{Chunk: here}, func(key, value []byte) {
					rows = append(rows, kv.Write{Key: bytes.Clone(key), Value: bytes.Clone(value)})
				})
				rows[1].Value = []byte{0, byte(chunk.Dirt)}
				if _, err := tx.Contents().Replace(world.Part{Chunk: here}, rows, nil); err != nil {
					panic(err)
				}
			})
		},
		"the chunk is lost in memory": func(it *node, id uint64) {
			it.inside(id, func(tx actor.Tx) {
				if _, err := tx.Contents().Replace(world.Part{Chunk: here}, nil, nil); err != nil {
					panic(err)
				}
			})
		},
		"the sequences are lost": func(it *node, id uint64) {
			it.inside(id, func(tx actor.Tx) {
				if _, err := tx.Contents().Replace(world.Part{Sequences: true}, nil, nil); err != nil {
					panic(err)
				}
			})
		},
	}
	for name, harm := range harms {
		for _, who := range []string{"A", "C"} {
			t.Run(name+" on "+who, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					a, b, c, g, info := built(t)
					damaged := map[string]*node{"A": a, "C": c}[who]
					harm(damaged, info.ID)
					out := a.Scrub(t.Context(), info.Cell)
					if out.Err != nil || out.Damaged != 1 || out.Repaired != 1 || len(out.Open) != 0 {
						t.Errorf("%+v", out)
					}
					if d := a.Damaged(); len(d) != 0 {
						t.Errorf("left: %+v", d)
					}
					same(t, info.ID, a, b, c)
					if s := g.state(here); len(s.Edits) != 5 || s.Edits[0].Block != chunk.Stone {
						t.Errorf("the land has the edits %+v", s.Edits)
					}
					e := stone(9)
					if r := g.edit(e)[9]; r.Refused != "" {
						t.Errorf("afterwards: %+v", r)
					}
					same(t, info.ID, a, b, c)
				})
			})
		}
	}
}

// Edits made while a copy is repaired are neither lost nor undone.
func TestMendingKeepsEdits(t *testing.T) {
	for _, who := range []string{"A", "B"} {
		t.Run(who, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b, c, g, info := built(t)
				damaged := map[string]*node{"A": a, "B": b}[who]
				damaged.inside(info.ID, func(tx actor.Tx) {
					if _, err := tx.Contents().Replace(world.Part{Chunk: here}, nil, nil); err != nil {
						panic(err)
					}
				})
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan Scrubbed, 1)
				go func() { done <- a.Scrub(ctx, info.Cell); stop() }()
				placed := 0
				for seq := uint64(100); ctx.Err() == nil; seq++ {
					<-time.After(10 * time.Millisecond) // an edit by itself takes no time in this network
					e := stone(seq)
					e.Pos.Y = 10 + int32(seq-100)%40
					e.Block = chunk.Block(1 + seq%3)
					if r := g.edit(e)[seq]; r.Refused == "" {
						placed++
					} else if damaged != a { // until it is repaired, the damaged leader refuses edits whose base it has lost
						t.Errorf("edit %d: %+v", seq, r)
					}
				}
				// Edits before the repair were also applied wrongly to its copy of the sequences.
				if out := <-done; out.Err != nil || out.Repaired < 1 || out.Repaired != out.Damaged || len(out.Open) != 0 {
					t.Errorf("%+v", out)
				}
				if placed == 0 {
					t.Error("nothing was built meanwhile")
				}
				same(t, info.ID, a, b, c)
			})
		})
	}
}

// With two members that differ, or a single one whose disk differs from its memory, the right copy is unknown: the
// scrub reports it and changes nothing.
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
					a.inside(info.ID, func(tx actor.Tx) {
						if _, err := tx.Contents().Replace(world.Part{Chunk: here}, nil, nil); err != nil {
							panic(err)
						}
					})
				} else {
					a.disk.harm(world.LandTable, func(rows map[string][]byte, _ badRows) { delete(rows, editRow(info.ID, stone(1))) })
				}
				before := a.disk.land(info.ID)
				out := a.Scrub(t.Context(), info.Cell)
				if out.Err != nil || out.Repaired != 0 || len(out.Open) != 1 {
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

// A single member whose disk has wrong checksums is right in memory.
func TestScrubAloneRewritesWhatChecksumsProve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		a := n.start("A", newDisk())
		a.follow(here).edit(stone(1))
		<-time.After(time.Second)
		info := a.Regions(t.Context())[0].Region
		a.disk.harm(world.LandTable, func(_ map[string][]byte, bad badRows) {
			bad[world.LandTable+"/"+editRow(info.ID, stone(1))] = true
		})
		if out := a.Scrub(t.Context(), info.Cell); out.Err != nil || out.Repaired != 1 || len(out.Open) != 0 {
			t.Errorf("%+v", out)
		}
		same(t, info.ID, a)
	})
}

// A member that is away is not judged, and the others can still repair one of them.
func TestScrubWithoutOneMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c, g, info := built(t)
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		a.net.kill(b)
		g = a.refollow()
		c.disk.harm(world.LandTable, func(_ map[string][]byte, bad badRows) {
			bad[world.LandTable+"/"+editRow(info.ID, stone(2))] = true
		})
		c.disk.harm(world.LandTable, func(rows map[string][]byte, _ badRows) { rows[editRow(info.ID, stone(2))] = []byte{0, 1} })
		out := a.Scrub(t.Context(), info.Cell)
		if out.Err != nil || out.Reported != 2 || out.Repaired != 1 || len(out.Open) != 0 {
			t.Errorf("%+v", out)
		}
		if s := g.state(here); len(s.Edits) != 5 {
			t.Errorf("the land has the edits %+v", s.Edits)
		}
	})
}

// A member that says for as long as it likes that it is not ready does not hold up the scrub once most members have
// reported.
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

// A gateway that comes while the leader's copy is repaired is accepted as soon as that is done.
func TestSubscribingDuringRepair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, b, c := three(t)
		ready := make(chan struct{})
		for _, it := range []*node{b, c} { // the sources
			it.opener.probes.land = func(_ actor.Tx, entry []byte) {
				if barrier, err := world.DecodeBarrier(entry); err == nil && len(barrier.Repairs) > 0 {
					<-ready
				}
			}
		}
		a.follow(here).edit(stone(1))
		<-time.After(2 * time.Second)
		info := a.Regions(t.Context())[0].Region
		a.inside(info.ID, func(tx actor.Tx) {
			if _, err := tx.Contents().Replace(world.Part{Chunk: here}, nil, nil); err != nil {
				panic(err)
			}
		})
		scrubbed := make(chan Scrubbed, 1)
		go func() { scrubbed <- a.Scrub(t.Context(), info.Cell) }()
		<-time.After(2 * time.Second)
		comes := a.following(here)
		<-time.After(time.Second) // the leadership is checked
		select {
		case <-comes:
			t.Error("it is accepted during the repair")
		default:
		}
		close(ready)
		select {
		case <-comes:
		case <-time.After(time.Second):
			t.Error("it is not accepted a second after the repair")
		}
		if out := <-scrubbed; out.Err != nil || out.Repaired != 1 {
			t.Errorf("%+v", out)
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
		if len(all) != 1 || all[0].Err != nil || all[0].Repaired != 1 {
			t.Errorf("%+v", all)
		}
		same(t, info.ID, a, b, c)
		<-time.After(time.Minute)
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
		<-time.After(90 * time.Second)
		if _, there := c.disk.land(info.ID)[editRow(info.ID, stone(1))]; !there {
			t.Error("not repaired after a minute and a half")
		}
	})
}

// A node that loses the leadership during a scrub reports that and changes nothing: the members' reports were for its
// own marks.
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
		if out := <-done; out.Err == nil || out.Repaired != 0 {
			t.Errorf("%+v", out)
		}
		if _, there := c.disk.land(info.ID)[editRow(info.ID, stone(1))]; there {
			t.Error("somebody has repaired it")
		}
	})
}
