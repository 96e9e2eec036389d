package finding

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/test/testkit/daemon"
)

// Leaders is where regions are led.
type Leaders struct {
	Regions      int
	Pairs        int // regions of founded cells that share a side
	CommonLeader int // of these, pairs with the same leader
	CommonMember int // and with a common member
	LedBy        map[string]int
	MembersOn    map[string]int
}

// leaders collects who leads the open regions.
type leaders struct {
	mu      sync.Mutex
	regions map[grid.Cell]daemon.Region // as last seen
}

func newLeaders() *leaders { return &leaders{regions: make(map[grid.Cell]daemon.Region)} }

// pollEvery is how often the daemons are asked for their regions. A region that nobody uses is open for ten seconds.
const pollEvery = 4 * time.Second

// watch polls the daemons until the returned function is called.
func (l *leaders) watch(ctx context.Context, daemons []*daemon.Daemon) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		every := time.NewTicker(pollEvery)
		defer every.Stop()
		for {
			for _, d := range daemons {
				all, err := d.Regions(ctx)
				if err != nil {
					continue // it is asked again
				}
				l.put(all)
			}
			select {
			case <-ctx.Done():
				return
			case <-every.C:
			}
		}
	})
	return func() {
		cancel()
		done.Wait()
	}
}

// put stores what a daemon has reported, if nothing newer is known.
func (l *leaders) put(all []daemon.Region) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range all {
		cell, err := grid.ParseCell(r.Cell)
		if err == nil && cell.Label.Len() >= grid.FoundingLabel && r.Leader != "" && r.Term >= l.regions[cell].Term {
			l.regions[cell] = r
		}
	}
}

func (l *leaders) result() Leaders {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := Leaders{Regions: len(l.regions), LedBy: make(map[string]int), MembersOn: make(map[string]int)}
	for cell, region := range l.regions {
		r.LedBy[region.Leader]++
		for _, peer := range region.Members {
			r.MembersOn[peer]++
		}
		area := cell.Area()
		for _, p := range []grid.ChunkPos{{X: area.MaxX, Z: area.MinZ}, {X: area.MinX, Z: area.MaxZ}} {
			next, ok := l.regions[grid.CellAt(p, cell.Label.Len())]
			if !ok {
				continue
			}
			r.Pairs++
			if next.Leader == region.Leader {
				r.CommonLeader++
			}
			if haveCommon(next.Members, region.Members) {
				r.CommonMember++
			}
		}
	}
	return r
}

func haveCommon(a, b []string) bool {
	return slices.ContainsFunc(a, func(peer string) bool { return slices.Contains(b, peer) })
}
