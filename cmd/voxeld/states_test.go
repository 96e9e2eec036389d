package main

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/test/testkit/metrics"
)

// noticedWithin is how soon the metrics, voxeld status and voxeld doctor must show that regions have lost their
// majority.
const noticedWithin = 15 * time.Second

// allIn reports whether the node has regions, and all of them, as all of the world's that it counts, are in the state.
func (d *daemon) allIn(state string) bool {
	m, err := d.Scrape(d.t.Context())
	if err != nil {
		return false
	}
	node, world := m.Value("voxeld_node_regions"), m.Value("voxeld_world_regions")
	return node > 0 && m.Value("voxeld_node_regions", "state", state) == node && m.Value("voxeld_world_regions", "state", state) == world
}

// alarmGrace is how long the metrics may show a problem while nodes are restarted as they should be: alerts wait
// longer.
const alarmGrace = 8 * time.Second

// watchStates watches the metrics of the nodes until the returned function is called, and fails the test if they show
// for longer than alarmGrace that regions, or the catalog, lack members or their majority. A node that does not run
// shows nothing.
func watchStates(t *testing.T, all []*daemon) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	longest := make([]map[string]time.Duration, len(all))
	var wg sync.WaitGroup
	for i, d := range all {
		address := d.Metrics
		longest[i] = make(map[string]time.Duration)
		wg.Go(func() {
			since := make(map[string]time.Time)
			for ctx.Err() == nil {
				m, err := metrics.Scrape(ctx, address)
				shown := map[string]bool{
					"no_quorum":        err == nil && m.Value("voxeld_node_regions", "state", "no_quorum")+m.Value("voxeld_world_regions", "state", "no_quorum") > 0,
					"under_replicated": err == nil && m.Value("voxeld_node_regions", "state", "under_replicated")+m.Value("voxeld_world_regions", "state", "under_replicated") > 0,
					"no catalog":       err == nil && m.Value("voxeld_catalog_quorum") == 0,
				}
				for problem, is := range shown {
					switch {
					case !is:
						delete(since, problem)
					case since[problem].IsZero():
						since[problem] = time.Now()
					default:
						longest[i][problem] = max(longest[i][problem], time.Since(since[problem]))
					}
				}
				select {
				case <-ctx.Done():
				case <-time.After(200 * time.Millisecond):
				}
			}
		})
	}
	return func() {
		t.Helper()
		cancel()
		wg.Wait()
		for i, d := range all {
			t.Logf("%s showed %v", d.ip, longest[i])
			for problem, length := range longest[i] {
				if length > alarmGrace {
					t.Errorf("%s showed for %v: %s", d.ip, length, problem)
				}
			}
		}
	}
}

// A node without others is healthy, and never says otherwise from the moment that it serves.
func TestSingleNodeIsHealthy(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	join(t, d.Game, "ann", 1)
	seen := 0.0
	eventually(t, "its regions are counted", patience, func() bool {
		for _, state := range []string{"under_replicated", "no_quorum", "quarantined"} {
			if n := d.metric("voxeld_node_regions", "state", state); n != 0 {
				t.Fatalf("%v regions are %s", n, state)
			}
		}
		seen = d.metric("voxeld_world_regions", "state", "healthy")
		return seen > 0 && d.allIn("healthy") && d.metric("voxeld_catalog_quorum") == 1
	})
	if n := d.metric("voxeld_node_regions"); n < seen+1 {
		t.Errorf("%v regions and the catalog are in the world, and %v on its only node", seen, n)
	}
	if out, errs, code := voxeld(t, "status", "--wait", "healthy", "--data-dir", d.dir); code != 0 || !strings.Contains(out, "NO_QUORUM") {
		t.Errorf("voxeld status --wait healthy: exit %d: %s%s", code, out, errs)
	}
	d.kill()
	if out, errs, code := voxeld(t, "status", "--wait", "healthy", "--timeout", "1s", "--data-dir", d.dir); code != exitFailed || !strings.Contains(errs, "no node runs") {
		t.Errorf("voxeld status --wait healthy without a node: exit %d: %s%s", code, out, errs)
	}
}

// A node that once joined, and is the last one of its world, takes players.
func TestLastNodeIsReady(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	token := d.invite()
	d.kill()
	if err := d.Start(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	if out, errs, code := voxeld(t, "status", "--wait", "healthy", "--timeout", patience.String(), "--data-dir", d.dir); code != 0 {
		t.Errorf("voxeld status --wait healthy: exit %d: %s%s", code, out, errs)
	}
	join(t, d.Game, "ann", 1).leave()
}

// When the majority of every region is gone, the metrics of the survivor and the doctor say so.
func TestLostMajorityIsNoticed(t *testing.T) {
	t.Parallel()
	all := cluster(t, 3)
	ann := join(t, all[0].Game, "ann", 1)
	ann.until("the ground", func() bool { _, ok := ann.at(under(ann, 1, 0, 2)); return ok })
	eventually(t, "all regions are healthy", patience, func() bool {
		return !slices.ContainsFunc(all, func(d *daemon) bool { return !d.allIn("healthy") || d.metric("voxeld_catalog_quorum") != 1 })
	})
	ann.leave()
	survivor := all[0]
	for _, d := range all[1:] {
		d.kill()
	}
	killed := time.Now()
	eventually(t, "the metrics show it", noticedWithin, func() bool {
		return survivor.allIn("no_quorum") && survivor.metric("voxeld_catalog_quorum") == 0
	})
	noticed := time.Since(killed)
	t.Logf("the metrics show it after %v", noticed)
	if found := findings(survivor.doctor()); !slices.Contains(found, "no_quorum") {
		t.Errorf("after %v the doctor finds %v", noticed, found)
	}
	eventually(t, "status --wait healthy says so", noticedWithin, func() bool { // a node that has just started may not know the leader yet
		_, errs, code := voxeld(t, "status", "--wait", "healthy", "--timeout", "1s", "--data-dir", survivor.dir)
		return code == exitFailed && strings.Contains(errs, "no_quorum") && strings.Contains(errs, "the catalog has no leader")
	})
	all[1].start()
	eventually(t, "two of three work again", patience, func() bool {
		return survivor.allIn("under_replicated") && survivor.metric("voxeld_catalog_quorum") == 1
	})
}
