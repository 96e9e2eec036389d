package integrity

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/internal/background"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// PollTime is how long a node may take to answer one question. A node that does not answer in time is not asked again.
const PollTime = 1500 * time.Millisecond

// AskStatuses asks a node, possibly this one, for the status of regions. The statuses are in the order of the request.
// Skew is how far the node's clock is ahead of this one's, or 0 if the round trip took too long to measure it.
type AskStatuses func(ctx context.Context, peer string, q nodemsg.StatusRequest) (statuses []nodemsg.RegionStatus, skew time.Duration, err error)

// StatusPoll is the result of asking nodes for the status of regions.
type StatusPoll struct {
	Statuses map[string]map[uint64]nodemsg.RegionStatus // by peer and region, of the nodes that answered
	Silent   map[string]error                           // why the others did not
	Skews    map[string]time.Duration                   // how far a node's clock is ahead of this one's, as far as can be measured
}

// Of returns the peer's status of the region.
func (s StatusPoll) Of(peer string, id uint64) (status nodemsg.RegionStatus, answered bool) {
	status, answered = s.Statuses[peer][id]
	return status, answered
}

// PollStatuses asks each node for the regions named: all nodes at once, each of them page by page.
func PollStatuses(ctx context.Context, ask AskStatuses, want map[string][]uint64, log bool) StatusPoll {
	s := StatusPoll{Statuses: make(map[string]map[uint64]nodemsg.RegionStatus), Silent: make(map[string]error), Skews: make(map[string]time.Duration)}
	var mu sync.Mutex
	peers := slices.Collect(maps.Keys(want))
	background.Several(directory.MaxQuestions, len(peers), func(i int) {
		peer, ids := peers[i], want[peers[i]]
		said := make(map[uint64]nodemsg.RegionStatus, len(ids))
		least := time.Duration(-1)
		var failed error
		for page := range slices.Chunk(ids, nodemsg.MaxStatuses) {
			ctx, cancel := context.WithTimeout(ctx, PollTime)
			statuses, skew, err := ask(ctx, peer, nodemsg.StatusRequest{Regions: page, Log: log})
			cancel()
			if failed = err; err != nil {
				break
			}
			if least < 0 || skew.Abs() < least.Abs() {
				least = skew // the quickest answer is the most precise
			}
			for _, status := range statuses {
				said[status.Region] = status
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if failed != nil {
			s.Silent[peer] = failed
		}
		if len(said) > 0 {
			s.Statuses[peer], s.Skews[peer] = said, least
		}
	})
	return s
}
