package main

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/historycmd"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// fly moves players at the same time as fast as the rules allow: up above the land, to their places, and down to a
// height. Without places they only go down. The idle ones stay connected.
func fly(all, idle []*tester, x, z []float64, height func(p *tester, x, z float64) float64) {
	const step = .9
	phase, up, down := make([]int, len(all)), make([]float64, len(all)), make([]float64, len(all))
	for i, p := range all {
		if x == nil {
			phase[i], down[i] = 3, height(p, 0, 0)
		} else {
			up[i] = clearOf(p, x[i], z[i])
		}
	}
	ticker := time.NewTicker(time.Second / 20)
	defer ticker.Stop()
	for moving := true; moving; <-ticker.C {
		moving = false
		for _, p := range idle {
			p.send(sessionmsg.Move{Pose: p.Welcome.Pose})
			p.drain()
		}
		for i, p := range all {
			pose := &p.Welcome.Pose
			towards := func(at *float64, to, most float64) bool {
				*at += max(-most, min(most, to-*at))
				return *at == to
			}
			switch phase[i] {
			case 0:
				if pose.Y >= up[i] || towards(&pose.Y, up[i], step) {
					phase[i]++
				}
			case 1:
				if a, b := towards(&pose.X, x[i], step/1.5), towards(&pose.Z, z[i], step/1.5); a && b {
					phase[i]++
				}
			case 2:
				down[i] = height(p, x[i], z[i])
				phase[i]++
			case 3:
				if towards(&pose.Y, down[i], step) {
					phase[i]++
				}
			}
			moving = moving || phase[i] < 4
			p.send(sessionmsg.Move{Pose: *pose})
			p.drain()
		}
	}
}

// clearOf returns a height above all land between a player and a place: above any land if they do not see all of it.
func clearOf(p *tester, x, z float64) float64 {
	pose := p.Welcome.Pose
	top := 0.
	for bx := math.Floor(min(x, pose.X)) - 1; bx <= max(x, pose.X)+1; bx++ {
		for bz := math.Floor(min(z, pose.Z)) - 1; bz <= max(z, pose.Z)+1; bz++ {
			if _, ok := p.at(grid.Pos{X: int32(bx), Z: int32(bz)}); !ok {
				return 80
			}
			top = max(top, ground(p, bx, bz))
		}
	}
	return top + 2
}

// ground returns the height of the land at a place, once its chunk has arrived.
func ground(p *tester, x, z float64) float64 {
	at := grid.Pos{X: int32(math.Floor(x)), Z: int32(math.Floor(z))}
	p.until("the land", func() bool { _, ok := p.at(at); return ok })
	for at.Y = 99; at.Y > 0; at.Y-- {
		if b, _ := p.at(at); b.Solid() || b == chunk.Water {
			break
		}
	}
	return float64(at.Y) + 1
}

// dig has players remove everything within their reach, at the same time, and adds what was there.
func dig(all []*tester, removed map[grid.Pos]chunk.Block) {
	const atOnce = 40
	left := make([][]grid.Pos, len(all))
	for i, p := range all {
		p.drain()
		pose := p.Welcome.Pose
		around := grid.BoxOf(grid.Pos{X: -8, Y: -8, Z: -8}, grid.Pos{X: 8, Y: 8, Z: 8})
		for x := around.Min.X; x <= around.Max.X; x++ {
			for y := around.Min.Y; y <= around.Max.Y; y++ {
				for z := around.Min.Z; z <= around.Max.Z; z++ {
					pos := grid.Pos{X: int32(math.Floor(pose.X)) + x, Y: int32(pose.Y) + y, Z: int32(math.Floor(pose.Z)) + z}
					b, ok := p.at(pos)
					if ok && b.Solid() && b.Breakable() && pos.Y >= 1 && (player.Rules{}).WithDefaults().InReach(pose.X, pose.Y+player.EyeHeight, pose.Z, pos) {
						left[i] = append(left[i], pos)
						removed[pos] = b
					}
				}
			}
		}
	}
	for digging := true; digging; {
		digging = false
		last := make([]uint64, len(all))
		for i, p := range all {
			now := left[i][:min(len(left[i]), atOnce)]
			left[i] = left[i][len(now):]
			for _, pos := range now {
				last[i] = p.edit(pos, chunk.Air)
			}
			digging = digging || len(now) > 0
		}
		for i, p := range all {
			p.until("the blocks are removed", func() bool { _, ok := p.Acks[last[i]]; return ok || last[i] == 0 })
		}
	}
	for _, p := range all {
		for seq, ack := range p.Acks {
			if ack.Error != "" {
				p.t.Fatalf("edit %d refused: %s", seq, ack.Error)
			}
		}
	}
}

// rolledBack reports whether a rollback is complete, as the node says.
func (d *daemon) rolledBack(id int) bool {
	var r historycmd.Rollback
	err := d.Ask(d.t.Context(), "/rollback?id="+strconv.Itoa(id), &r) // the node may not know of it yet
	return err == nil && r.Complete && r.Regions == 4
}

// compare returns how many blocks are not as expected.
func compare(p *tester, want map[grid.Pos]chunk.Block) (wrong int) {
	p.t.Helper()
	for pos := range want {
		p.until("the land", func() bool { _, ok := p.at(pos); return ok })
	}
	p.drain()
	for pos, b := range want {
		if got, _ := p.at(pos); got != b {
			if wrong++; wrong <= 5 {
				p.t.Errorf("the block at %v is %s, want %s", pos, got.Name(), b.Name())
			}
		}
	}
	return wrong
}

// A griefer with three names removes 20,000 blocks of four regions on three nodes, while others build among the damage.
// A moderator on another node finds them by their blocks, bans them and rolls their changes back in one go, while a
// leader is killed. What others have built stays, and undoing the rollback restores the damage: both block for block.
func TestGrieferIsRolledBack(t *testing.T) {
	t.Parallel()
	nodes := cluster(t, 3, "--edits-per-second", "100000")
	token := nodes[0].operate("owner")
	mod := joinWithKey(t, nodes[1].Game, "mod", "mod's key")
	mod.command("register")
	mod.command("owner " + token)

	// The corner of four regions is at 0,0.
	builder := join(t, nodes[2].Game, "ada", 3)
	fly([]*tester{builder}, []*tester{mod}, []float64{12.5}, []float64{12.5}, ground)
	want := make(map[grid.Pos]chunk.Block)
	built := builder.Welcome.Pose
	wall := func(n int32) grid.Pos { return grid.Pos{X: 9 + n%6, Y: int32(built.Y) + n/6, Z: 8} }
	for n := range int32(24) {
		builder.put(wall(n), chunk.Brick)
	}

	griefers := make([]*tester, 3)
	for i := range griefers {
		griefers[i] = join(t, nodes[i].Game, fmt.Sprintf("eve%d", i+1), 3)
	}
	var x, z []float64
	for i := range 12 { // each in a region of their own, then all in the fourth
		corner, along, across := i%3, 12.5+float64(i/3*18), 12.5
		if i >= 9 {
			corner, along = 3, 12.5+float64(i%3*18)
		}
		x, z = append(x, []float64{along, -along, -along, along}[corner]), append(z, []float64{across, across, -across, -across}[corner])
	}
	planks := make(map[grid.Pos]chunk.Block)
	for round := range len(x) / len(griefers) {
		from := round * len(griefers)
		fly(griefers, []*tester{mod, builder}, x[from:from+3], z[from:from+3], ground)
		for range 2 {
			dig(griefers, want)
			fly(griefers, []*tester{mod, builder}, nil, nil, func(p *tester, _, _ float64) float64 { return max(2, p.Welcome.Pose.Y-7) })
		}
		if round == 1 { // among the damage
			for pos, b := range want {
				if len(planks) < 12 && b != chunk.Brick && pos.Y < int32(built.Y)-1 && (player.Rules{}).WithDefaults().InReach(built.X, built.Y+player.EyeHeight, built.Z, pos) {
					builder.sees(pos, chunk.Air)
					builder.put(pos, chunk.Planks)
					planks[pos] = chunk.Planks
				}
			}
		}
	}
	damage := make(map[grid.Pos]chunk.Block, len(want))
	for pos := range want {
		damage[pos] = chunk.Air
	}
	for pos, b := range planks {
		want[pos], damage[pos] = b, b
	}
	t.Logf("%d blocks were removed", len(want)-len(planks))
	if len(want) < 20_000 {
		t.Errorf("the griefers removed only %d blocks: choose other places", len(want))
	}

	// The moderator finds them by one of the blocks.
	var found historycmd.Changes
	out, errs, _ := voxeld(t, "history", "--at", wall(3).String(), "--json", "--data-dir", nodes[1].dir)
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		t.Fatal(err, errs)
	}
	if len(found.Changes) != 2 || !strings.HasPrefix(found.Changes[0].By, "eve") || found.Changes[0].Old != "brick" || found.Changes[1].By != "ada (guest)" ||
		found.Changes[1].Old != "natural" {
		t.Errorf("the history of a block is %+v", found)
	}
	for i := range griefers {
		mod.command(fmt.Sprintf("ban eve%d", i+1))
	}
	// One rollback of all three, wherever they were.
	var preview historycmd.Rollback
	out, errs, _ = voxeld(t, "rollback", "eve1", "eve2", "eve3", "--since", "1h", "--json", "--data-dir", nodes[1].dir)
	if err := json.Unmarshal([]byte(out), &preview); err != nil {
		t.Fatal(err, errs)
	}
	if all := len(want) - len(planks); preview.Left != all || len(preview.Others)+len(preview.Missing) > 0 {
		t.Errorf("the rollback would change %d blocks, and %+v and %+v, want %d", preview.Left, preview.Others, preview.Missing, all)
	}
	if got := mod.command(preview.Command); got != "Rollback 1 has begun." {
		t.Fatal(got)
	}
	began := time.Now()
	victim, rest := nodes[1], nodes
	for _, corner := range []grid.ChunkPos{{}, {X: -1}, {Z: -1}, {X: -1, Z: -1}} {
		if victim == nodes[1] { // the moderator is there
			victim, rest = leaderOf(t, nodes, corner)
		}
	}
	if victim == nodes[1] {
		t.Skip("the moderator's node leads all four regions")
	}
	victim.kill()
	eventually(t, "the rollback is complete", time.Minute, func() bool { return rest[0].rolledBack(1) })
	t.Logf("complete after %v, with the death of a leader", time.Since(began).Round(time.Millisecond))

	viewer := join(t, rest[0].Game, "viewer", 4)
	fly([]*tester{viewer}, []*tester{mod}, []float64{0.5}, []float64{0.5}, func(*tester, float64, float64) float64 { return 80 })
	if n := compare(viewer, want); n > 0 {
		t.Errorf("after the rollback %d of %d blocks are wrong", n, len(want))
	}
	if got := mod.command("undo"); got != "Rollback 2 has begun." {
		t.Fatal(got)
	}
	eventually(t, "the rollback is undone", time.Minute, func() bool { return rest[0].rolledBack(2) })
	if n := compare(viewer, damage); n > 0 {
		t.Errorf("after the rollback was undone %d of %d blocks are wrong", n, len(damage))
	}
}

// A rollback is carried out in land that nobody has open, also by a node that was restarted since the damage; and what
// is aborted or undone there says so.
func TestClosedLandIsRolledBack(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, "--edits-per-second", "100000")
	eve := join(t, d.Game, "eve", 1)
	eve.Welcome.Pose.Y = ground(eve, eve.Welcome.Pose.X, eve.Welcome.Pose.Z)
	want := make(map[grid.Pos]chunk.Block)
	dig([]*tester{eve}, want)
	at := eve.Welcome.Pose.Block()
	eve.leave()
	if code := d.terminate(); code != 0 {
		t.Fatalf("exit %d", code)
	}
	d.start()
	if n := len(d.regions()); n != 0 {
		t.Fatalf("%d regions are open", n)
	}
	area := fmt.Sprintf("--area=%d,0,%d:%d,127,%d", at.X-20, at.Z-20, at.X+20, at.Z+20)
	if got := d.operate("rollback", "eve", "--since", "1h", area, "--yes"); !strings.HasPrefix(got, "Rollback 1 ") {
		t.Fatal(got)
	}
	eventually(t, "all blocks are rolled back", patience, func() bool { return d.metric("voxeld_rollback_blocks_total") >= float64(len(want)) })
	var out historycmd.Rollback
	text, _, _ := voxeld(t, "rollback", "--id", "1", "--json", "--data-dir", d.dir)
	if err := json.Unmarshal([]byte(text), &out); err != nil || !out.Complete || out.Changed != len(want) {
		t.Errorf("%d blocks were removed: %s, %v", len(want), text, err)
	}
	viewer := join(t, d.Game, "viewer", 1)
	if n := compare(viewer, want); n > 0 {
		t.Errorf("%d of %d blocks are wrong", n, len(want))
	}
	if got := d.operate("abort", "1"); !strings.HasPrefix(got, "Rollback 1 is aborted") {
		t.Error(got)
	}
	if got := d.operate("rollback", "--id", "1"); got != fmt.Sprintf("Rollback 1 was aborted after %d blocks.", len(want)) {
		t.Error(got)
	}
}
