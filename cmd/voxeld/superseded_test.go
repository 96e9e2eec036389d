package main

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/test/chaos/hostile"
)

// An admitted node of four says that the catalog, and every region, continues with itself as the only member, while the
// others restart: one after the other, and all at once. They keep all their copies, and what was acknowledged, and
// commands take effect. A backup has all of the land, and is signed; only the liar's players are missing.
func TestLiarWhileNodesRestart(t *testing.T) {
	t.Parallel()
	all := cluster(t, 4)
	honest, stopped := all[:3], all[3]
	for i := range int32(24) { // so many that three of four nodes are hardly ever the same for all
		locate(t, all[0].Game, grid.ChunkPos{X: 48 * i, Z: 48})
	}
	alice := join(t, honest[0].Game, "alice", 1)
	at := under(alice, 2, 1, 1)
	alice.until("the ground", func() bool { _, ok := alice.at(at); return ok })
	alice.put(at, chunk.Brick)
	alice.leave()
	eventually(t, "all regions have all their members", patience, func() bool { return complete(all) })
	stopped.terminate()
	var addresses []string
	for _, d := range honest {
		addresses = append(addresses, d.Listen)
	}
	l, err := hostile.Impersonate(t.Context(), filepath.Join(stopped.dir, databaseName), "/ip4/"+stopped.ip+"/tcp/4001", stopped.Game, addresses)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	regions, member := l.Regions(t.Context())
	if member == 0 || member == len(regions) {
		t.Fatalf("the liar is a member of %d of %d regions: the test shows too little", member, len(regions))
	}
	before := make(map[*daemon]map[uint64]uint64)
	for _, d := range honest {
		before[d] = l.Replicas(t.Context(), d.Status.Peer, regions)
	}
	restart := func(some ...*daemon) {
		t.Helper()
		for _, d := range some {
			d.kill()
		}
		for _, d := range some {
			d.start()
		}
		eventually(t, "the liar reaches the nodes again", patience, func() bool {
			for _, d := range some {
				if !l.Heard(t.Context(), d.Status.Peer) {
					return false
				}
			}
			return true
		})
	}
	for _, recovered := range []bool{false, true} {
		l.Recovered.Store(recovered)
		for _, d := range honest {
			restart(d)
		}
		restart(honest...)
		for i, d := range honest {
			ann := join(t, d.Game, "ann", 1)
			ann.sees(at, chunk.Brick)
			ann.putPatiently(under(ann, 1, int32(i), 2), chunk.Glass)
			ann.leave()
			for x := range int32(6) {
				locate(t, d.Game, grid.ChunkPos{X: 48 * x, Z: 48})
			}
			eventually(t, "the nodes know the members of the catalog", patience, func() bool { return d.metric("voxeld_catalog_quorum") == 1 })
		}
		honest[1].operate("ban", map[bool]string{false: "mallory", true: "malcolm"}[recovered])
		agree(t, honest...)
		for i, d := range honest {
			if after := l.Replicas(t.Context(), d.Status.Peer, regions); !maps.Equal(after, before[d]) {
				t.Errorf("recovered %v: node %d had the replicas %v, and has %v", recovered, i, before[d], after)
			}
		}
		file := filepath.Join(t.TempDir(), "world.voxback")
		if out, errs, _ := voxeld(t, "backup", file, "--data-dir", honest[2].dir); strings.Count(errs, "problem:") != 1 || !strings.Contains(errs, "problem: players on "+stopped.Status.Peer) {
			t.Errorf("recovered %v: voxeld backup: %s%s", recovered, out, errs)
		}
		if out, errs, _ := voxeld(t, "verify", file); !strings.Contains(out, "signed by a majority of their members: ") || strings.Contains(out, "not signed") || strings.Contains(out, "no issuer") {
			t.Errorf("recovered %v: voxeld verify: %s%s", recovered, out, errs)
		}
	}
	if n := l.Believed(); n > 0 {
		t.Errorf("the liar was asked %d questions as the catalog", n)
	}
}
