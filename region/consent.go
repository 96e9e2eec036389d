package region

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// A node that reports a change of a region's members to the catalog may lie: it could name itself as the only one. The members that the
// catalog lists took part in the change, so they are asked. Those that cannot answer do not count: if most of them are lost, the region
// changes without them.

const (
	// consentTries is how often members are asked, and consentPause the time between: a follower learns of a change a little later
	// than the leader that reports it.
	consentTries = 4
	consentPause = 150 * time.Millisecond
	consentTime  = time.Second // bounds one answer
)

// consent returns an error if members of the region that the catalog lists know better than a peer that reports a change of its members.
func (h *Host) consent(ctx context.Context, peer string, known, moved nodemsg.Region) error {
	if !moved.Newer(known) || samePeers(known, moved) {
		return nil
	}
	var agree, disagree int
	for try := range consentTries {
		if try > 0 {
			select {
			case <-time.After(consentPause):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		agree, disagree = h.askMembers(ctx, peer, known, moved)
		if disagree == 0 || 2*(agree+1) > len(known.Members) {
			return nil
		}
	}
	h.Logger.Warn("change of members not accepted: other members know nothing of it", "region", moved.ID, "cell", moved.Cell.String(), "reported_by", peer, "epoch", moved.Epoch)
	h.contradictions.Add(peer, fmt.Sprintf("the members of region %v are %s", moved.Cell, peersOf(moved)))
	return fmt.Errorf("region %d: %d of its members know nothing of epoch %d, and %d agree", moved.ID, disagree, moved.Epoch, agree)
}

// askMembers asks the members that the catalog lists, but the peer, and returns how many have seen the change, and how many have not.
func (h *Host) askMembers(ctx context.Context, peer string, known, moved nodemsg.Region) (agree, disagree int) {
	var crew sync.WaitGroup
	var mu sync.Mutex
	for _, m := range known.Members {
		if m.Peer == peer {
			continue
		}
		crew.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, consentTime)
			defer cancel()
			said, _, err := h.regions.askStatuses(ctx, m.Peer, nodemsg.StatusRequest{Regions: []uint64{moved.ID}, Log: true})
			if err != nil || len(said) != 1 {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			switch confirms(said[0], moved) {
			case yes:
				agree++
			case no:
				disagree++
			case unknown:
			}
		})
	}
	crew.Wait()
	return agree, disagree
}

// opinion is what a member says of a change.
type opinion int

const (
	unknown opinion = iota // it has no copy, or not a good one: it was removed, perhaps
	yes
	no
)

// confirms returns what a member's status says of the change.
func confirms(s nodemsg.RegionStatus, moved nodemsg.Region) opinion {
	switch {
	case s.State != nodemsg.StateOpen && s.State != nodemsg.StateClosed && s.State != nodemsg.StateQuarantined:
		return unknown
	case s.Epoch < moved.Epoch:
		return no
	case s.Epoch > moved.Epoch:
		return yes // the change is followed by others
	}
	if slices.ContainsFunc(s.Members, func(m nodemsg.MemberStatus) bool { return !actor.HasMember(moved, m.Replica.Peer) }) {
		return no
	}
	return yes
}

// samePeers reports whether two descriptions of a region name the same nodes.
func samePeers(a, b nodemsg.Region) bool {
	return len(a.Members) == len(b.Members) && !slices.ContainsFunc(a.Members, func(m nodemsg.Member) bool { return !actor.HasMember(b, m.Peer) })
}

// peersOf returns the peer ids of a region's members, for people.
func peersOf(info nodemsg.Region) string {
	peers := make([]string, len(info.Members))
	for i, m := range info.Members {
		peers[i] = m.Peer
	}
	return strings.Join(peers, ", ")
}
