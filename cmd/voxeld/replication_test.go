package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire"
)

// cluster starts n daemons of one world.
func cluster(t *testing.T, n int, args ...string) []*daemon {
	t.Helper()
	all := []*daemon{startDaemon(t, args...)}
	token := all[0].invite()
	for range n - 1 {
		all = append(all, startDaemon(t, append([]string{"--join", token}, args...)...))
	}
	for _, d := range all {
		eventually(t, "everybody knows everybody", patience, func() bool {
			var s admin.Status
			d.ask("status", &s)
			return s.Peers >= n-1
		})
	}
	return all
}

func (d *daemon) regions() []admin.Region {
	d.t.Helper()
	var all []admin.Region
	d.ask("regions", &all)
	return all
}

// leaderOf splits the daemons into the one that leads the chunk's region and the others.
func leaderOf(t *testing.T, all []*daemon, pos grid.ChunkPos) (leader *daemon, others []*daemon) {
	t.Helper()
	address := locate(t, all[0].Game, pos)
	for _, d := range all {
		if d.Game == address {
			leader = d
		} else {
			others = append(others, d)
		}
	}
	if leader == nil {
		t.Fatalf("nobody leads %v: %s", pos, address)
	}
	return leader, others
}

// A region's leader is killed while a player on another node edits. Their edits are soon accepted again, those
// that were acknowledged are there, and each was applied once.
func TestLeaderIsKilled(t *testing.T) {
	t.Parallel()
	all := cluster(t, 3)
	probe := join(t, all[0].Game, "ann", 1)
	spawn := under(probe, 1, 0, 0)
	probe.until("the ground", func() bool { _, ok := probe.at(spawn); return ok })
	probe.leave()
	leader, others := leaderOf(t, all, spawn.Chunk())
	t.Logf("%s leads %v", leader.Game, spawn.Chunk())
	ann := join(t, others[0].Game, "ann", 1)
	ann.until("the ground", func() bool { _, ok := ann.at(spawn); return ok })
	built := make(map[grid.Pos]chunk.Block)
	put := func(i int32, b chunk.Block) {
		at := under(ann, 1+i/5, i%5-2, 2)
		ann.putPatiently(at, b)
		built[at] = b
	}
	for i := range int32(5) {
		put(i, chunk.Planks)
	}
	start := time.Now()
	put(5, chunk.Brick)
	t.Logf("an edit takes %v", time.Since(start))
	leader.kill()
	start = time.Now()
	put(6, chunk.Brick)
	took := time.Since(start)
	t.Logf("the leader was killed; edits were accepted again after %v", took)
	if took > 10*time.Second {
		t.Errorf("edits were accepted again after %v only", took)
	}
	for i := int32(7); i < 10; i++ {
		put(i, chunk.Glass)
	}
	bob := join(t, others[1].Game, "bob", 1)
	for at, b := range built {
		bob.sees(at, b)
	}

	// All are killed and started again.
	leader.start()
	for _, d := range all {
		d.kill()
	}
	for _, d := range all {
		d.start()
	}
	slices.Reverse(all)
	start = time.Now()
	for i, d := range all {
		eve := join(t, d.Game, []string{"eve", "fay", "gil"}[i], 1)
		for at, b := range built {
			eve.sees(at, b)
		}
	}
	t.Logf("all were killed; the land was seen on all nodes again %v after they were up", time.Since(start))
}

// Land that was founded by a single node soon has three replicas, also where no player looks, and survives the
// loss of that node.
func TestRegionsGrow(t *testing.T) {
	t.Parallel()
	a := startDaemon(t)
	ann := join(t, a.Game, "ann", 3)
	built := under(ann, 1, 0, 2)
	ann.until("the ground", func() bool { _, ok := ann.at(built); return ok })
	ann.put(built, chunk.Brick)
	ann.leave()
	founded := len(a.regions())
	token := a.invite()
	all := []*daemon{a, startDaemon(t, "--join", token), startDaemon(t, "--join", token)}
	start := time.Now()
	threefold := func(d *daemon) int {
		n := 0
		for _, r := range d.regions() {
			if r.Voters == 3 {
				n++
			}
		}
		return n
	}
	eventually(t, "every region has three members", 40*time.Second, func() bool {
		for _, d := range all {
			if threefold(d) < founded {
				return false
			}
		}
		return true
	})
	t.Logf("%d regions had three members each %v after the third node was up", founded, time.Since(start))
	eventually(t, "the catalog has three members", 30*time.Second, func() bool {
		for _, d := range all {
			if d.metric("voxeld_catalog_members") != 3 {
				return false
			}
		}
		return true
	})
	a.kill()
	start = time.Now()
	bob := join(t, all[1].Game, "bob", 1)
	bob.sees(built, chunk.Brick)
	t.Logf("the land was seen %v after the node that founded the world was killed", time.Since(start))
	start = time.Now()
	if address := locate(t, all[2].Game, grid.ChunkPos{X: 7777, Z: -7777}); address == "" {
		t.Error("no new land without the node that founded the world")
	}
	t.Logf("new land was founded after further %v", time.Since(start))
}

// putPatiently is put that retries while the player's node reloads the chunk, as it does after it has lost the
// region's leader.
func (p *tester) putPatiently(pos grid.Pos, b chunk.Block) {
	p.t.Helper()
	eventually(p.t, fmt.Sprintf("%v at %v is acknowledged", b.Name(), pos), patience, func() bool {
		seq := p.edit(pos, b)
		p.until(fmt.Sprintf("an answer to %v at %v", b.Name(), pos), func() bool { _, ok := p.Acks[seq]; return ok })
		switch why := p.Acks[seq].Error; why {
		case "":
			return true
		case wire.RefusedNotLoaded, wire.RefusedRate: // a client that waits for each answer is still faster than the limit
			return false
		default:
			p.t.Fatalf("edit at %v refused: %s", pos, why)
			return false
		}
	})
}

// A member that is gone for good is replaced by another node after the grace period.
func TestGoneMemberIsReplaced(t *testing.T) {
	t.Parallel()
	all := cluster(t, 4, "--replace-after", "3s")
	ann := join(t, all[0].Game, "ann", 1)
	built := under(ann, 1, 0, 2)
	ann.until("the ground", func() bool { _, ok := ann.at(built); return ok })
	ann.put(built, chunk.Brick)
	_, others := leaderOf(t, all, built.Chunk())
	var region admin.Region
	find := func(d *daemon) bool {
		for _, r := range d.regions() {
			if r.Edits > 0 && r.Leader == d.Status.Peer {
				region = r
				return true
			}
		}
		return false
	}
	eventually(t, "the region has three members", 20*time.Second, func() bool { return slices.ContainsFunc(all, find) && region.Voters == 3 })
	var gone *daemon
	for _, d := range others {
		if slices.Contains(region.Members, d.Status.Peer) && d != all[0] {
			gone = d
		}
	}
	gone.kill()
	start := time.Now()
	eventually(t, "the member is replaced", 33*time.Second, func() bool {
		for _, d := range all {
			if d != gone && find(d) && region.Voters == 3 && len(region.Members) == 3 && !slices.Contains(region.Members, gone.Status.Peer) {
				return true
			}
		}
		return false
	})
	t.Logf("the member was replaced %v after it was killed; the grace period is 3s", time.Since(start))
	ann.putPatiently(built, chunk.Glass)
}

// One node after the other is killed and restarted while a player builds. No acknowledged edit is lost. The
// test keeps its own ledger.
func TestRandomKills(t *testing.T) {
	t.Parallel()
	all := cluster(t, 5)
	probe := join(t, all[0].Game, "ann", 1)
	spawn := under(probe, 1, 0, 2)
	probe.until("the ground", func() bool { _, ok := probe.at(spawn); return ok })
	probe.leave()
	leader, others := leaderOf(t, all, spawn.Chunk())
	builder := join(t, others[0].Game, "bea", 1)
	builder.until("the ground", func() bool { _, ok := builder.at(spawn); return ok })
	victims := append([]*daemon{leader}, others[1:]...) // the player's own node stays, or the session would end
	eventually(t, "the catalog has five members", 40*time.Second, func() bool { return all[0].metric("voxeld_catalog_members") == 5 })
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	stop := make(chan struct{})
	killed := make(chan int)
	go func() {
		kills := 0
		defer func() { killed <- kills }()
		for {
			d := victims[dice.IntN(len(victims))]
			d.kill()
			kills++
			d.start()
			select {
			case <-stop:
				return
			case <-time.After(time.Duration(dice.IntN(1500)) * time.Millisecond):
			}
		}
	}()
	ledger := make(map[grid.Pos]chunk.Block)
	var slowest time.Duration
	edits := 0
	blocks := []chunk.Block{chunk.Planks, chunk.Brick, chunk.Glass, chunk.Cobble, chunk.Stone}
	for began := time.Now(); time.Since(began) < 20*time.Second; edits++ {
		at := under(builder, 1+int32(edits/5)%3, int32(edits)%5-2, 2+int32(edits/15)%3)
		b := blocks[edits%len(blocks)]
		start := time.Now()
		builder.putPatiently(at, b)
		slowest = max(slowest, time.Since(start))
		ledger[at] = b
	}
	close(stop)
	t.Logf("%d edits were acknowledged over %d kills, the slowest after %v", edits, <-killed, slowest)
	for i, d := range victims[:3] {
		bob := join(t, d.Game, []string{"bob", "cat", "dan"}[i], 1)
		for at, b := range ledger {
			bob.sees(at, b)
		}
	}
}

// A region without subscribers hibernates on all nodes, and wakes up with every edit.
func TestRegionsSleep(t *testing.T) {
	t.Parallel()
	all := cluster(t, 3)
	ann := join(t, all[0].Game, "ann", 1)
	built := under(ann, 1, 0, 2)
	ann.until("the ground", func() bool { _, ok := ann.at(built); return ok })
	ann.put(built, chunk.Brick)
	ann.leave()
	asleep := func() bool {
		for _, d := range all {
			if d.metric("voxeld_regions_loaded") > 0 {
				return false
			}
		}
		return true
	}
	eventually(t, "all regions sleep", 60*time.Second, asleep)
	<-time.After(2 * time.Second) // right after hibernating it ignores messages for a second
	start := time.Now()
	bob := join(t, all[1].Game, "bob", 1)
	bob.sees(built, chunk.Brick)
	t.Logf("the land was seen %v after bob came", time.Since(start))
	bob.putPatiently(built, chunk.Glass)
}

// A node that stops hands over the regions that it leads. A player who edits on another node hardly notices.
func TestStopHandsOver(t *testing.T) {
	all := cluster(t, 3)
	probe := join(t, all[0].Game, "ann", 1)
	at := under(probe, 1, 0, 2)
	probe.until("the ground", func() bool { _, ok := probe.at(at); return ok })
	probe.leave()
	leader, others := leaderOf(t, all, at.Chunk())
	ann := join(t, others[0].Game, "bea", 1)
	ann.until("the ground", func() bool { _, ok := ann.at(at); return ok })
	ann.put(at, chunk.Brick)
	stopped := make(chan int)
	go func() { stopped <- leader.terminate() }()
	var slowest time.Duration
	blocks := []chunk.Block{chunk.Planks, chunk.Glass}
	code, edits := -1, 0
	for code < 0 {
		start := time.Now()
		ann.putPatiently(at, blocks[edits%2])
		slowest = max(slowest, time.Since(start))
		edits++
		select {
		case code = <-stopped:
		default:
		}
	}
	t.Logf("%d edits while the leader stopped, the slowest took %v", edits, slowest)
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	if slowest > 3*time.Second {
		t.Errorf("an edit took %v", slowest)
	}
}
