package region

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/wallclock"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/region/integrity"
	"github.com/voxelpopuli/voxeld/region/membership"
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

const (
	// countEvery is how often the regions are counted.
	countEvery = time.Second
	// watchEvery is the shortest interval at which the members of all known regions are asked whether they live, and
	// watchRate the most nodes that are asked for that in a second.
	watchEvery = 4 * time.Second
	watchRate  = 10
	// missedAfter is how long a node may leave questions unanswered before it counts as silent: it is asked a second
	// time meanwhile.
	missedAfter = 4 * time.Second
	// settlesIn is how long after the start a node may not know the catalog's leader although there is one.
	settlesIn = 10 * time.Second
)

// States are the numbers of regions by state, and what else shows whether the world is well.
type States struct {
	Node          membership.Counts  // regions that this node holds a replica of, the catalog included
	World         *membership.Counts // all regions without the catalog; nil if this node does not hold the catalog
	CatalogQuorum bool               // this node sees a catalog with a leader
	Settled       bool               // this node has run for long enough to know the catalog's leader, if there is one
	Skew          time.Duration      // the largest difference between this node's clock and that of a node that answers
	Led           int                // open regions that this node leads, the catalog included
}

// StateNames lists the names of the states of regions, in the order in which people should see them.
func StateNames() []string {
	names := make([]string, len(membership.States))
	for i, s := range membership.States {
		names[i] = s.String()
	}
	return names
}

// tallies are the regions to count: those of this node, and if it holds the catalog, those of the world.
type tallies struct {
	regions *regions
	records directory.Records
}

// observer counts the regions by state. No message is sent for it but the failure detector's questions to the distinct
// members of these regions.
type observer struct {
	Options
	tallies
	detector *directory.Detector
	facts    *integrity.Facts
	metrics  *metrics

	mu struct {
		sync.Mutex
		now States
	}
}

// run counts until ctx ends.
func (o *observer) run(ctx context.Context) {
	start := time.Now()
	every := time.NewTicker(countEvery)
	defer every.Stop()
	for {
		now := o.count()
		now.Settled = time.Since(start) >= settlesIn
		o.metrics.observe(now)
		o.mu.Lock()
		o.mu.now = now
		o.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
	}
}

// States returns the last count of the regions by state.
func (h *Host) States() States {
	h.observer.mu.Lock()
	defer h.observer.mu.Unlock()
	return h.observer.mu.now
}

// ownAndAll returns the regions of this node, and those of the world: nil if this node does not hold the catalog.
func (t tallies) ownAndAll() (own, all *membership.Tally) {
	if c := t.regions.Catalog(); c != nil {
		all = c.Regions
	}
	return t.regions.registry.Tally(), all
}

// watch adds the nodes whose liveness is needed: the members of the regions, and the nodes that may hold the catalog.
func (t tallies) watch(peers directory.Watched) {
	needed := make(map[string]bool)
	own, all := t.ownAndAll()
	own.AddPeers(needed)
	if all != nil {
		all.AddPeers(needed)
	}
	for _, peer := range t.records.NearestKnown(grid.CatalogKey, directory.Candidates) {
		needed[peer] = true
	}
	every := max(watchEvery, time.Duration(len(needed))*time.Second/watchRate)
	for peer := range needed {
		peers.Add(peer, every)
	}
}

func (o *observer) count() States {
	nodes := o.detector.Nodes()
	connected := make(map[string]bool)
	for _, peer := range o.Peers.Connected() {
		connected[peer] = true
	}
	liveness := func(peer string) membership.Liveness {
		switch {
		case peer == o.Self.Peer:
			return membership.Alive
		case o.detector.Lost(peer): // at once: its vote is missing even while it goes on to answer
			return membership.Silent
		}
		return livenessOf(nodes[peer], connected[peer])
	}
	exist := map[string]bool{o.Self.Peer: true}
	_, own := o.facts.Failed()
	quarantined := own
	now := States{Led: len(o.regions.Led())}
	leader := false
	var times []wallclock.Reading
	for peer, n := range nodes {
		if n.Answers || n.Leaving {
			exist[peer] = true
		}
		if n.Answers {
			quarantined = append(quarantined, n.About.Quarantined...)
			leader = leader || n.About.CatalogLeader != ""
			now.Skew = max(now.Skew, n.About.Skew.Abs())
			if n.About.Time != nil {
				times = append(times, *n.About.Time)
			}
		}
	}
	if corrected := o.Clock.Consider(times); corrected != 0 {
		o.Logger.Warn("time corrected", "by", corrected, "nodes", len(times), "machine_ahead", o.Clock.MachineAhead())
	}
	here, all := o.ownAndAll()
	here.AddPeers(exist)
	if all != nil {
		all.AddPeers(exist)
	}
	limits := membership.Limits{Copies: o.Copies, Nodes: len(exist)}
	now.Node = here.Count(liveness, own, limits)
	if all != nil {
		counts := all.Count(liveness, quarantined, limits)
		now.World = &counts
	}
	now.CatalogQuorum = leader
	if catalog, err := o.regions.catalogRegion(); err == nil {
		limits.Copies = o.CatalogCopies
		state := membership.Assess(membership.MembersOf(catalog), liveness, o.facts.Quarantined(world.CatalogID), limits)
		now.Node[state]++
		now.CatalogQuorum = o.regions.catalogLeader() != ""
	}
	return now
}

// livenessOf translates what the failure detector knows. A node that announced that it stops serves as long as it is
// connected.
func livenessOf(n directory.Liveness, connected bool) membership.Liveness {
	missed := !n.Since.IsZero() && time.Since(n.Since) >= missedAfter
	switch {
	case n.Hung: // its vote is missing although it answers
		return membership.Silent
	case n.Answers, n.Leaving && connected:
		return membership.Alive
	case n.Leaving:
		return membership.Leaving
	case missed:
		return membership.Silent
	case n.Answered:
		return membership.Alive
	}
	return membership.NotAsked
}

// OthersReady reports whether another node takes players, as it described itself last.
func (h *Host) OthersReady() bool {
	for _, n := range h.detector.Nodes() {
		if n.Answers && n.Answered && n.About.NotReady == "" {
			return true
		}
	}
	return false
}

// description answers nodemsg.Describe.
func (o *observer) description() nodemsg.Answer {
	failed, quarantined := o.facts.Failed()
	at, age := o.Clock.Vote()
	notReady := ""
	if err := o.NotReady(); err != nil {
		notReady = transport.Clip(err)
	}
	return nodemsg.Answer{
		Slow: o.Replicas.Slow(), Hung: o.Replicas.Hung(), NotReady: notReady,
		Member: &o.Self, Clock: time.Now().UnixMilli(), Time: at.UnixMilli(), TimeAge: uint32(min(age/time.Second, math.MaxUint32)), //nolint:gosec // not negative
		CatalogLeader: o.regions.catalogLeader(),
		Failed:        failed[:min(len(failed), nodemsg.MaxQuarantined)],
		Quarantined:   quarantined[:min(len(quarantined), nodemsg.MaxQuarantined)], Version: nodemsg.Version,
	}
}
