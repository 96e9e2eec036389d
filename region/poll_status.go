package region

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/region/failuredetector"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// pollTime is how long a node may take to answer one question. A node that does not answer in time is not asked again.
const pollTime = 1500 * time.Millisecond

// statusPoll is the result of asking nodes for the status of regions.
type statusPoll struct {
	statuses map[string]map[uint64]nodemsg.RegionStatus // by peer and region, of the nodes that answered
	silent   map[string]error                           // why the others did not
	skews    map[string]time.Duration                   // how far a node's clock is ahead of this one's, as far as can be measured
}

// of returns the peer's status of the region.
func (s statusPoll) of(peer string, id uint64) (status nodemsg.RegionStatus, answered bool) {
	status, answered = s.statuses[peer][id]
	return status, answered
}

// pollStatuses asks each node for the regions named: all nodes at once, each of them page by page.
func (h *Host) pollStatuses(ctx context.Context, want map[string][]uint64, log bool) statusPoll {
	s := statusPoll{statuses: make(map[string]map[uint64]nodemsg.RegionStatus), silent: make(map[string]error), skews: make(map[string]time.Duration)}
	var mu sync.Mutex
	var crew sync.WaitGroup
	defer crew.Wait()
	tokens := make(chan struct{}, failuredetector.MaxQuestions)
	for peer, ids := range want {
		crew.Go(func() {
			tokens <- struct{}{}
			defer func() { <-tokens }()
			said := make(map[uint64]nodemsg.RegionStatus, len(ids))
			least := time.Duration(-1)
			var failed error
			for page := range slices.Chunk(ids, nodemsg.MaxStatuses) {
				ctx, cancel := context.WithTimeout(ctx, pollTime)
				statuses, skew, err := h.askStatuses(ctx, peer, nodemsg.StatusRequest{Regions: page, Log: log})
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
				s.silent[peer] = failed
			}
			if len(said) > 0 {
				s.statuses[peer], s.skews[peer] = said, least
			}
		})
	}
	return s
}
