package region

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// guest returns an edit of a guest.
func guest(name string, seq uint64, pos grid.Pos, block chunk.Block) nodemsg.Intent {
	return nodemsg.Intent{Player: player.GuestID(name), Proof: nodemsg.Proof{Name: name}, Seq: seq, Pos: pos, Block: block}
}

func stone(seq uint64) nodemsg.Intent {
	return guest("alice", seq, at(here, int32(seq)%60), chunk.Stone)
}

// An edit is acknowledged once it is on disk, not before. An acknowledged edit survives a crash.
func TestAcknowledgedAfterCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork(t)
		a := net.start("A", newDisk())
		g, other := a.follow(here), a.follow(here)
		if s := g.state(here); len(s.Base)+len(s.Edits)+len(s.Bodies) > 0 {
			t.Fatalf("untouched land is %+v", s)
		}
		other.state(here)
		release := a.disk.block()
		g.send(nodemsg.ToRegion{Edits: []nodemsg.Intent{stone(5)}})
		g.silent(func(f nodemsg.FromRegion) bool { return len(f.Results)+len(f.Chunks) > 0 })
		release()
		if r := g.results(1)[5]; r.Refused != "" || r.Block != chunk.Stone {
			t.Fatalf("result %+v", r)
		}
		left := a.disk.afterCrash()
		blocks := until(other, func(f nodemsg.FromRegion) ([]nodemsg.BlockAt, bool) {
			return f.Chunks[0].Blocks, len(f.Chunks[0].Blocks) > 0
		})
		want := nodemsg.BlockAt{At: chunk.At(at(here, 5)), Block: chunk.Stone}
		if len(blocks) != 1 || blocks[0] != want {
			t.Errorf("the other gateway sees %v, want %v", blocks, want)
		}
		a.stop()
		base := baseOf(here)
		if s := net.start("A", left).follow(here).state(here); len(s.Edits) != 1 || s.Edits[0] != want || [32]byte(s.Base) != base {
			t.Errorf("after a crash the land is %+v", s)
		}
	})
}

// The same edit sent again over another link is confirmed and not applied again. A different edit with the same
// sequence number is refused.
func TestRetryIsAppliedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newNetwork(t).start("A", newDisk())
		watcher := a.follow(here)
		watcher.state(here)
		changes := 0
		count := func(f nodemsg.FromRegion) bool {
			for _, n := range f.Chunks {
				changes += len(n.Blocks)
			}
			return false
		}
		first := a.follow(here)
		release := a.disk.block()
		first.send(nodemsg.ToRegion{Edits: []nodemsg.Intent{stone(5)}})
		watcher.silent(count)
		if err := first.Close(); err != nil { // the link ends while the edit is pending
			t.Fatal(err)
		}
		second := a.follow(here)
		other := stone(5)
		other.Block = chunk.Dirt
		second.send(nodemsg.ToRegion{Edits: []nodemsg.Intent{stone(5)}})
		second.send(nodemsg.ToRegion{Edits: []nodemsg.Intent{other}})
		if r := second.results(1)[5]; r.Refused != wire.RefusedStale {
			t.Errorf("another edit under a number in use: %+v", r)
		}
		release()
		if r := second.results(1)[5]; r.Refused != "" || r.Block != chunk.Stone {
			t.Errorf("the retry while it is under way: %+v", r)
		}
		over := guest("bob", 5, stone(5).Pos, chunk.Sand)
		if r := second.edit(over)[5]; r.Refused != "" {
			t.Errorf("another player's edit: %+v", r)
		}
		third := a.follow(here)
		if r := third.edit(stone(5))[5]; r.Refused != "" || r.Block != chunk.Sand {
			t.Errorf("a late retry: %+v, want confirmed, with the block that stands there now", r)
		}
		if r := third.edit(other)[5]; r.Refused != wire.RefusedStale {
			t.Errorf("another edit under a used number: %+v", r)
		}
		watcher.silent(count)
		if changes != 2 {
			t.Errorf("%d changes were seen of 2", changes)
		}
	})
}

// A node that sends edits with sequences far ahead does not shut the player out for ever, as a full window of them
// would.
func TestSequencesCannotRunAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newNetwork(t).start("A", newDisk()).follow(here)
		in := func(d time.Duration) uint64 { return uint64(time.Now().Add(d).UnixMicro()) }
		soon, later, never := in(11*time.Minute), in(13*time.Minute), uint64(1<<62)
		refused := g.edit(stone(4), stone(soon), stone(later), stone(never))
		for seq, want := range map[uint64]string{4: "", soon: "", later: wire.RefusedStale, never: wire.RefusedStale} {
			if got := refused[seq].Refused; got != want {
				t.Errorf("edit %d is refused with %q, want %q", seq, got, want)
			}
		}
	})
}

func TestRefusedEdits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newNetwork(t).start("A", newDisk()).follow(here)
		outside, high, unknown := stone(1), stone(2), stone(3)
		outside.Pos = at(grid.ChunkPos{X: -1}, 1)
		high.Pos.Y = 64
		unknown.Block = 60_000
		bedrock, floor := stone(5), stone(6)
		bedrock.Block, floor.Pos.Y = chunk.Bedrock, 0
		got := g.edit(outside, high, unknown, stone(4), bedrock, floor)
		for seq, want := range map[uint64]string{
			1: wire.RefusedOutOfWorld, 2: wire.RefusedOutOfWorld, 3: wire.RefusedUnknownBlock, 4: "",
			5: wire.RefusedNotPlaceable, 6: wire.RefusedUnbreakable,
		} {
			if got[seq].Refused != want {
				t.Errorf("edit %d: %+v, want %q", seq, got[seq], want)
			}
		}
		if s := g.state(here); len(s.Edits) != 1 {
			t.Errorf("the land is %+v", s)
		}
	})
}

// While storage refuses writes, edits are refused and no link ends. Afterwards edits are accepted again.
func TestStorageStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newNetwork(t).start("A", newDisk())
		g := a.follow(here)
		g.state(here)
		if r := g.edit(stone(1))[1]; r.Refused != "" {
			t.Fatal(r)
		}
		g.silent(func(f nodemsg.FromRegion) bool { return len(f.Results) > 0 }) // what was applied is stored
		a.disk.setRefuse(errors.New("no space left on device"))
		g.send(nodemsg.ToRegion{Edits: []nodemsg.Intent{stone(2)}}) // detects the stall; this edit stays in doubt
		g.silent(func(f nodemsg.FromRegion) bool { return len(f.Results) > 0 || f.Closed != "" })
		if r := g.edit(stone(3))[3]; r.Refused != wire.RefusedUnavailable {
			t.Errorf("during the stall: %+v", r)
		}
		if r := a.follow(here).edit(stone(1))[1]; r.Refused != "" || r.Block != chunk.Stone {
			t.Errorf("one that was applied before the stall, sent again: %+v", r)
		}
		if s := a.follow(here).state(here); len(s.Edits) != 1 {
			t.Errorf("during the stall the land reads as %+v", s)
		}
		left := a.disk.afterCrash()
		a.disk.setRefuse(nil)
		if r := g.results(1)[2]; r.Refused != "" {
			t.Errorf("the edit in doubt: %+v", r)
		}
		if r := g.edit(stone(3))[3]; r.Refused != "" {
			t.Errorf("after the stall: %+v", r)
		}
		if s := g.state(here); len(s.Edits) != 3 {
			t.Errorf("after the stall the land is %+v", s)
		}
		a.stop()
		if s := a.net.start("A", left).follow(here).state(here); len(s.Edits) != 1 {
			t.Errorf("a crash during the stall left %+v", s)
		}
	})
}

// A slow terrain hash delays the edits of its chunk and later edits of the same players, but no others.
func TestSlowTerrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newNetwork(t).start("A", newDisk())
		slow := grid.ChunkPos{X: 2, Z: 1}
		grown := make(chan struct{})
		a.bases.Base = func(pos grid.ChunkPos) [32]byte {
			if pos == slow {
				<-grown
			}
			return baseOf(pos)
		}
		g := a.follow(here)
		first, second := stone(1), stone(2)
		first.Pos = at(slow, 1)
		others := guest("bob", 9, at(here, 30), chunk.Dirt)
		g.send(nodemsg.ToRegion{Edits: []nodemsg.Intent{first, second, others}})
		if got := g.results(1); got[9].Refused != "" || got[9].Block != chunk.Dirt {
			t.Errorf("another player's edit: %+v", got)
		}
		g.silent(func(f nodemsg.FromRegion) bool { return len(f.Results) > 0 })
		close(grown)
		if got := g.results(2); got[1].Refused+got[2].Refused != "" {
			t.Errorf("the edits that waited: %+v", got)
		}
	})
}

// Edits of many gateways and chunks at the same time: each is answered once and applied.
func TestManyGateways(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork(t)
		a, b := net.start("A", newDisk()), net.start("B", newDisk())
		const each = 200
		done := make(chan int)
		for i := range 8 {
			from := a
			if i%2 == 1 {
				from = b
			}
			g := from.follow(here)
			go func() {
				confirmed := 0
				defer func() { done <- confirmed }()
				for seq := range uint64(each) {
					e := guest(fmt.Sprint("guest", i), seq, at(grid.ChunkPos{X: int32(i), Z: int32(seq % 16)}, int32(seq/16)), chunk.Stone)
					if err := g.Send(nodemsg.ToRegion{Edits: []nodemsg.Intent{e}}); err != nil {
						t.Error(err)
						return
					}
				}
				for confirmed < each {
					frame, err := g.Receive(context.Background())
					if err != nil {
						t.Error(err)
						return
					}
					for _, r := range frame.Results {
						if r.Refused != "" {
							t.Errorf("%+v", r)
						}
						confirmed++
					}
				}
			}()
		}
		total := 0
		for range 8 {
			total += <-done
		}
		all := a.Regions(t.Context())
		if total != 8*each || len(all) != 1 || all[0].Edits != 8*each || all[0].Links != 8 {
			t.Errorf("%d edits confirmed of %d; %+v", total, 8*each, all)
		}
	})
}
