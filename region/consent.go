package region

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/region/health"
	"github.com/voxelpopuli/voxeld/region/integrity"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// A node that reports a change of a region to the catalog may lie: it could name itself as the only member, or the
// others as replicas that they are not. The members that the catalog lists took part in the change, so they are asked.
// Those that cannot answer do not count: if most of them are lost, the region changes without them. See docs/adr/0040
// and docs/adr/0076.

const (
	// consentTries is how often members are asked, and consentPause the time between: a follower learns of a change a
	// little later than the leader that reports it.
	consentTries = 8
	consentPause = 150 * time.Millisecond
	// answerTime bounds one answer, and consentTime all of them.
	answerTime  = time.Second
	consentTime = 4 * time.Second
)

// consent decides what the catalog believes of what a member reports. Any goroutine may call its methods.
type consent struct {
	ask            integrity.AskStatuses
	contradictions *health.Contradictions
	logger         *slog.Logger
}

// moved returns an error if members of the region that the catalog lists know better than the peer that reports a
// change of it, which must be one of them, too. A report that is not newer changes nothing.
func (c *consent) moved(ctx context.Context, peer string, known, moved nodemsg.Region) error {
	switch {
	case known.ID != moved.ID:
		return directory.ErrNotFounded
	case !actor.HasMember(known, peer):
		return fmt.Errorf("%s is not a member of region %d", peer, moved.ID)
	case !moved.Newer(known):
		return nil
	}
	said := c.poll(ctx, peer, known, func(s nodemsg.RegionStatus) opinion { return confirms(s, moved) }, opinions.consent)
	if said.consent() {
		return nil
	}
	if said.disagree > 0 {
		c.logger.Warn("change of a region not accepted: other members know nothing of it", "region", moved.ID, "cell", moved.Cell.String(), "reported_by", peer, "epoch", moved.Epoch)
		c.contradictions.Add(peer, fmt.Sprintf("the members of region %v are %s", moved.Cell, peersOf(moved)))
	}
	return fmt.Errorf("region %d: of its %d voters, %d agree with epoch %d; %d members know nothing of it, and %d know a later one",
		moved.ID, said.voters, said.agree, moved.Epoch, said.disagree, said.later)
}

// ended returns an error unless most voters of a region that the catalog lists say that it was given up, as the peer
// reports, which must be one of them, too. Members that cannot answer count: without a majority the region stays.
func (c *consent) ended(ctx context.Context, peer string, known nodemsg.Region, vacated nodemsg.Vacated) error {
	switch {
	case known.ID != vacated.Region:
		return directory.ErrNotFounded
	case !actor.HasMember(known, peer):
		return fmt.Errorf("%s is not a member of region %d", peer, known.ID)
	}
	said := c.poll(ctx, peer, known, func(s nodemsg.RegionStatus) opinion { return confirmsVacated(s, known) }, opinions.most)
	if said.most() {
		return nil
	}
	if said.disagree > 0 {
		c.logger.Warn("end of a region not accepted: other members know nothing of it", "region", known.ID, "cell", known.Cell.String(), "reported_by", peer)
		c.contradictions.Add(peer, fmt.Sprintf("region %v was given up", known.Cell))
	}
	return fmt.Errorf("region %d: of its %d voters, %d say that it was given up, and %d members do not", known.ID, said.voters, said.agree, said.disagree)
}

// vacated removes a region from the catalog that was given up, as the peer reports, and returns it as it was.
func (c *consent) vacated(ctx context.Context, peer string, catalog *actor.Catalog, vacated nodemsg.Vacated) (nodemsg.Region, error) {
	known, err := catalog.At(ctx, vacated.Cell)
	if err == nil {
		err = c.ended(ctx, peer, known, vacated)
	}
	if err != nil {
		return nodemsg.Region{}, err
	}
	return catalog.Vacated(ctx, vacated)
}

// poll asks the members of a region that the catalog lists, but the peer, until enough confirm what that one says, or
// for some time.
func (c *consent) poll(ctx context.Context, peer string, known nodemsg.Region, confirms func(nodemsg.RegionStatus) opinion, enough func(opinions) bool) (said opinions) {
	ctx, cancel := context.WithTimeout(ctx, consentTime)
	defer cancel()
	for try := 0; try < consentTries && ctx.Err() == nil; try++ {
		if said = c.askMembers(ctx, peer, known, confirms); enough(said) {
			return said
		}
		select {
		case <-time.After(consentPause):
		case <-ctx.Done():
		}
	}
	return said
}

// opinions counts what the members that the catalog lists say of a change.
type opinions struct {
	voters, agree   int // those that may vote, and how many of them have seen the change: whoever reports it has
	disagree, later int
}

// consent reports whether the change is to be accepted. A learner may lack it for long, so it cannot prevent what most
// voters have seen.
func (o opinions) consent() bool { return o.most() || o.disagree+o.later == 0 }

// most reports whether most voters agree.
func (o opinions) most() bool { return 2*o.agree > o.voters }

// askMembers asks the members that the catalog lists, but the peer, what they say of a change.
func (c *consent) askMembers(ctx context.Context, peer string, known nodemsg.Region, confirms func(nodemsg.RegionStatus) opinion) (said opinions) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	var mu sync.Mutex
	for _, m := range known.Members {
		if m.Learner {
			continue
		}
		if said.voters++; m.Peer == peer {
			said.agree++
		}
	}
	for _, m := range known.Members {
		if m.Peer == peer {
			continue
		}
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, answerTime)
			defer cancel()
			status, _, err := c.ask(ctx, m.Peer, nodemsg.StatusRequest{Regions: []uint64{known.ID}, Log: true})
			if err != nil || len(status) != 1 {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			switch of := confirms(status[0]); {
			case of == yes && !m.Learner:
				if said.agree++; said.most() {
					cancel() // nothing can change that
				}
			case of == no:
				said.disagree++
			case of == later:
				said.later++
			}
		})
	}
	wg.Wait()
	return said
}

// opinion is what a member says of a change.
type opinion int

const (
	unknown opinion = iota // it has no copy, or not a good one: it was removed, perhaps
	yes
	no
	later // it knows a later change, so it cannot say how the region was after this one
)

// confirmsVacated returns what a member's status says of the end of a region that the catalog lists: its own log has
// that, and nothing undoes it.
func confirmsVacated(s nodemsg.RegionStatus, known nodemsg.Region) opinion {
	switch {
	case s.State == nodemsg.StateNone || s.State == nodemsg.StateFailed || s.Structure == nil:
		return unknown
	case s.Structure.Vacated != 0 && s.Recovered == actor.ConfigurationOf(known.Epoch).Recovered:
		return yes
	}
	return no
}

// confirms returns what a member's status says of the change. One that cannot read all of its copy contradicts it by
// what it can read, and does not confirm it.
func confirms(s nodemsg.RegionStatus, moved nodemsg.Region) opinion {
	if s.State != nodemsg.StateOpen && s.State != nodemsg.StateClosed && s.State != nodemsg.StateQuarantined {
		return unknown
	}
	has := nodemsg.Region{ID: moved.ID, Epoch: s.Epoch, Split: moved.Split, Merged: moved.Merged}
	if s.Structure != nil {
		has.Split, has.Merged = s.Structure.Split, s.Structure.Merged
	}
	switch {
	case moved.Newer(has):
		return no
	case has.Newer(moved):
		return later
	case has.Split != moved.Split || has.Merged != moved.Merged || !sameReplicas(s.Members, moved.Members):
		return no
	case s.Structure == nil: // it cannot read how the region was split and merged
		return unknown
	}
	return yes
}

// sameReplicas reports whether a group has exactly these members, as the same replicas.
func sameReplicas(group []nodemsg.MemberStatus, members []nodemsg.Member) bool {
	if len(group) != len(members) {
		return false
	}
	for i, m := range members {
		replica := nodemsg.Replica{ID: cmp.Or(m.Replica, uint64(i)+1), Peer: m.Peer, Learner: m.Learner} // the first members are numbered
		if !slices.ContainsFunc(group, func(s nodemsg.MemberStatus) bool { return s.Replica == replica }) {
			return false
		}
	}
	return true
}

// peersOf returns the peer ids of a region's members, for people.
func peersOf(info nodemsg.Region) string {
	peers := make([]string, len(info.Members))
	for i, m := range info.Members {
		peers[i] = m.Peer
	}
	return strings.Join(peers, ", ")
}
