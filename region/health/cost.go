package health

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/internal/background"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/region/integrity"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// describeTime bounds how long a node is asked whether it is there.
const describeTime = 2 * time.Second

// Cost is what the loss of some nodes costs.
type Cost struct {
	Regions  int      // of which they are voters, the catalog included
	Majority []string // names of those whose other voters that answer are not the majority
}

// Cost returns what it costs to give up nodes for good. The error is that it is not known which regions there are.
func (h *Examiner) Cost(ctx context.Context, lost func(peer string) bool) (c Cost, err error) {
	catalog, err := h.Regions.Member(world.CatalogID)
	if err != nil {
		if catalog, err = h.Directory.CatalogMembers(ctx); err != nil {
			return c, fmt.Errorf("find out who holds the catalog: %w", err)
		}
	}
	regions, err := h.AllRegions(ctx, catalog)
	if err != nil {
		return c, fmt.Errorf("read the catalog: %w", err)
	}
	regions = slices.DeleteFunc(append([]nodemsg.Region{catalog}, regions...), func(info nodemsg.Region) bool {
		return !slices.ContainsFunc(info.Members, func(m nodemsg.Member) bool { return !m.Learner && lost(m.Peer) })
	})
	c.Regions = len(regions)
	left := h.living(ctx, regions, lost)
	for _, info := range regions {
		voters, living := 0, 0
		for _, m := range info.Members {
			if m.Learner {
				continue
			}
			if voters++; left[m.Peer] {
				living++
			}
		}
		if 2*living <= voters {
			name := integrity.Name(info)
			if info.ID == world.CatalogID {
				name = "the catalog"
			}
			c.Majority = append(c.Majority, name)
		}
	}
	return c, nil
}

// living asks the voters of the regions that are not lost whether they are there, and returns those that answer.
func (h *Examiner) living(ctx context.Context, regions []nodemsg.Region, lost func(peer string) bool) map[string]bool {
	voters := make(map[string]bool)
	for _, info := range regions {
		for _, m := range info.Members {
			if !m.Learner && !lost(m.Peer) {
				voters[m.Peer] = m.Peer == h.Self.Peer
			}
		}
	}
	peers := slices.Collect(maps.Keys(voters))
	var mu sync.Mutex
	background.Several(directory.MaxQuestions, len(peers), func(i int) {
		if peers[i] == h.Self.Peer {
			return
		}
		asking, cancel := context.WithTimeout(ctx, describeTime)
		defer cancel()
		_, err := h.Detector.Check(asking, peers[i])
		mu.Lock()
		defer mu.Unlock()
		voters[peers[i]] = err == nil
	})
	return voters
}
