package region

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/background"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/region/integrity"
	"github.com/voxelpopuli/voxeld/region/split"
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

const (
	// subscribeTime bounds how long a node takes to accept or refuse a subscriber; loading and actor.PendingTime are
	// included.
	subscribeTime = actor.PendingTime + 2*time.Second
	// followRounds is how often all members of a region are tried while some of them are alive. followPause is the time
	// between two rounds. Together they are longer than an election takes.
	followRounds = 8
	followPause  = 250 * time.Millisecond
	// readOnlyRound is the first round in which a member whose disk refuses writes may show the land; it also may once
	// actor.PendingTime is over. Until then the members with working disks have time to elect a leader.
	readOnlyRound = 6
	// leaderTime bounds how long the members take to say who leads.
	leaderTime = 400 * time.Millisecond
)

// Link is a gateway's end of its link to the leader of a region.
type Link = transport.Link

// follower links the gateways of this node with the leaders of regions, and subscribes those of other nodes to regions
// that are led here. Any goroutine may call its methods.
type follower struct {
	self      string
	regions   *regions
	unwatched *split.Unwatched
	replicas  *replica.Host
	directory *directory.Directory
	detector  *directory.Detector
	questions transport.Questions
	tasks     *background.Tasks
	ask       integrity.AskStatuses
}

// Follow links the caller with the region that covers the chunk, wherever it is led. If the region does not exist, it
// is founded first. Follow first tries the node that is believed to lead, a member according to Directory.Locate, then
// the leader that the tried nodes name, then the other members. If none of them accepts, the route is dropped and the
// next Follow asks the catalog. If the region was split, Follow continues with its child.
func (h *Host) Follow(ctx context.Context, pos grid.ChunkPos) (Link, nodemsg.Region, error) {
	return h.follower.follow(ctx, pos)
}

func (f *follower) follow(ctx context.Context, pos grid.ChunkPos) (Link, nodemsg.Region, error) {
	for range grid.MaxLabel {
		link, info, err := f.followOnce(ctx, pos)
		if err == nil || !errors.Is(err, actor.ErrSplit) {
			return link, info, err
		}
	}
	return nil, nodemsg.Region{}, fmt.Errorf("follow chunk %v: its region is being split again and again", pos)
}

func (f *follower) followOnce(ctx context.Context, pos grid.ChunkPos) (Link, nodemsg.Region, error) {
	info, err := f.directory.Locate(ctx, pos)
	if err != nil {
		return nil, nodemsg.Region{}, err
	}
	var failed error
	began := time.Now()
	for round := range followRounds {
		reading := round >= readOnlyRound || time.Since(began) >= actor.PendingTime
		link, again, err := f.followRound(ctx, info, reading)
		if err == nil {
			if link.info.Leader != info.Leader {
				f.directory.LeaderMoved(info, link.info.Leader)
				info.Leader = link.info.Leader
			}
			f.tasks.Start(func(ctx context.Context) { f.directory.Prefetch(ctx, info) })
			return link, info, nil
		}
		failed = err
		var no refusedSubscription
		if errors.As(err, &no) && no.split != 0 {
			f.directory.CacheSplit(info, no.split)
			return nil, info, fmt.Errorf("follow %v: %w", info.Cell, actor.ErrSplit)
		}
		if !again || ctx.Err() != nil {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(followPause):
		}
	}
	if ctx.Err() == nil {
		f.directory.Invalidate(info)
	}
	return nil, info, fmt.Errorf("follow %v: %w", info.Cell, failed)
}

// followRound tries all members once, and the leaders that they name. Again reports whether another round may help: at
// least one node is alive and has not refused the region altogether.
func (f *follower) followRound(ctx context.Context, info nodemsg.Region, reading bool) (link routedLink, again bool, err error) {
	hello := nodemsg.Hello{Region: info.ID, Cell: info.Cell, Reading: reading}
	tried := make(map[string]bool)
	if !reading && len(info.Members) > 1 && f.replicas.Hung() {
		tried[f.self] = true // it could not open the region, nor learn who leads it
	}
	named, unreached, quarantined := "", make(map[string]bool), 0
	var failures []error
	for next := f.detector.First(info, tried); next != ""; {
		tried[next] = true
		link, first, err := f.subscribeAt(ctx, next, hello)
		if err == nil {
			f.detector.Trust(next)
			info.Leader = next
			return routedLink{Link: link, follower: f, info: info}, false, nil
		}
		failures = append(failures, fmt.Errorf("on %s: %w", next, err))
		if ctx.Err() != nil {
			break
		}
		var no refusedSubscription
		if errors.As(err, &no) && no.split != 0 {
			return routedLink{}, false, no
		}
		if errors.Is(err, transport.ErrQuarantined) && slices.ContainsFunc(info.Members, func(m nodemsg.Member) bool { return m.Peer == next && !m.Learner }) {
			quarantined++
		}
		if errors.As(err, &no) {
			again = again || no.leader != "" || no.wait
			named = cmp.Or(no.leader, named)
		} else if !errors.Is(err, ErrNotHere) && next != f.self {
			f.detector.Suspect(next)
			unreached[next] = true
		}
		if next = first.Leader; next == "" || tried[next] {
			next = f.detector.First(info, tried)
		}
	}
	learners := 0
	for _, m := range info.Members {
		if m.Learner {
			learners++
		}
	}
	if quarantined > 0 && 2*quarantined >= len(info.Members)-learners { // the others have no majority
		failures = append(failures, ErrQuarantined)
	}
	if unreached[named] {
		failures = append(failures, CutOffError{named})
	}
	return routedLink{}, again, errors.Join(failures...)
}

// ErrQuarantined means that half of a region's members keep it closed until an operator releases it: nobody can serve
// it.
var ErrQuarantined = errors.New("the region failed repeatedly on half of its members")

// CutOffError means that this node cannot reach the leader of a region, which other members name.
type CutOffError struct{ Leader string }

func (e CutOffError) Error() string {
	return fmt.Sprintf("this node is cut off from %s, which leads the region for others", e.Leader)
}

// refusedSubscription is the answer of a node that does not accept a subscriber.
type refusedSubscription struct {
	why         string
	leader      string // the leader; empty if unknown
	wait        bool   // the node is a member
	split       uint64 // not 0 if the region is split
	quarantined bool   // the node keeps it closed until an operator releases it
}

func (r refusedSubscription) Error() string { return r.why }

// Is reports whether it means that the node has quarantined the region.
func (r refusedSubscription) Is(target error) bool {
	return target == transport.ErrQuarantined && r.quarantined
}

// subscribeAt subscribes to the region on a node. First is the frame with which the node has accepted or refused; a
// refusal is also an error.
func (f *follower) subscribeAt(ctx context.Context, peer string, hello nodemsg.Hello) (link Link, first nodemsg.FromRegion, err error) {
	ctx, cancel := context.WithTimeout(ctx, subscribeTime)
	defer cancel()
	if peer == f.self {
		local, err := f.subscribe(ctx, peer, hello)
		if err != nil {
			return nil, first, err
		}
		link = local
	} else {
		remote, err := transport.Follow(ctx, f.questions.Peers, peer, hello)
		if err != nil {
			return nil, first, err
		}
		link = remote
	}
	first, err = link.Receive(ctx)
	if err == nil && first.Closed == "" {
		return link, first, nil
	}
	link.Close() //nolint:errcheck // it is of no use
	if err != nil {
		return nil, first, err
	}
	return nil, first, refusedSubscription{why: first.Closed, leader: first.Leader, wait: first.Tick > 0, split: first.Split, quarantined: first.Quarantined}
}

// subscribe subscribes the gateway of a node to a region that is led here. The region is loaded first if necessary.
func (f *follower) subscribe(ctx context.Context, peer string, hello nodemsg.Hello) (*actor.Subscription, error) {
	for {
		l, err := f.regions.Open(ctx, hello.Region, hello.Cell)
		if err != nil {
			return nil, err
		}
		if s := l.Subscribe(peer, hello.Reading); s != nil {
			f.unwatched.Watched(hello.Region)
			return s, nil
		}
		select { // it is being unloaded: wait, then load it again
		case <-l.Done():
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// routedLink is the end of a link that was found by a route. If the other side ends the link, the route is corrected or
// invalidated.
type routedLink struct {
	Link
	follower *follower
	info     nodemsg.Region
}

// LedElsewhere asks the members whether another one of them leads the region by now than at the other end of this link,
// who may not have learned of it. The route is corrected then. That is so if most voters name it as the leader of one
// term: one member may lie.
func (g routedLink) LedElsewhere(ctx context.Context) bool {
	info := g.info
	if route, ok := g.follower.directory.Known(grid.ChunkPos{X: info.Cell.Area().MinX, Z: info.Cell.Area().MinZ}); ok && route.ID == info.ID {
		info.Members = route.Members
	}
	ctx, cancel := context.WithTimeout(ctx, leaderTime)
	defer cancel()
	voters := slices.DeleteFunc(slices.Clone(info.Members), func(m nodemsg.Member) bool { return m.Learner })
	type leadership struct {
		peer string
		term uint64
	}
	answers := make(chan leadership, len(voters))
	for _, m := range voters {
		go func() {
			all, _, err := g.follower.ask(ctx, m.Peer, nodemsg.StatusRequest{Regions: []uint64{info.ID}})
			if err != nil {
				answers <- leadership{}
				return
			}
			answers <- leadership{all[0].Leader, all[0].Term}
		}()
	}
	named := make(map[leadership]int)
	for range voters {
		l := <-answers
		if named[l]++; 2*named[l] <= len(voters) || !actor.HasMember(info, l.peer) {
			continue
		}
		if l.peer == g.info.Leader {
			return false
		}
		g.follower.directory.LeaderMoved(info, l.peer)
		return true
	}
	return false
}

// TrySend is the TrySend of a link within this process. It reports false for a link to another node, which may block.
func (g routedLink) TrySend(take func() nodemsg.ToRegion) bool {
	local, ok := g.Link.(*actor.Subscription)
	return ok && local.TrySend(take)
}

func (g routedLink) Receive(ctx context.Context) (nodemsg.FromRegion, error) {
	frame, err := g.Link.Receive(ctx)
	switch {
	case frame.Parent != nil && frame.Parent.Cell.Label.Len() >= grid.FoundingLabel && frame.Parent.Cell.Covers(g.info.Cell):
		g.follower.directory.CacheRoute(*frame.Parent)
	case frame.Split != 0:
		g.follower.directory.CacheSplit(g.info, frame.Split)
	case frame.Closed != "" && frame.Leader != "":
		g.follower.directory.LeaderMoved(g.info, frame.Leader)
	case frame.Closed == "" && (err == nil || ctx.Err() != nil):
	case len(g.info.Members) > 1:
		// Another member will lead; the other members know which one.
		if frame.Closed == "" && g.info.Leader != g.follower.self {
			g.follower.detector.Suspect(g.info.Leader)
		}
	default:
		g.follower.directory.Invalidate(g.info)
	}
	return frame, err
}
