package integrity

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/background"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/region/placement"
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// This file compares the copies of a region (docs/adr/0010). The leader puts a barrier into the log, and fetches every member's report of its
// copy as of the barrier. It asks the members whose copies differ from that of a majority to compare by themselves: a member replaces its
// copy because a majority says so, not because one node does.

const (
	// reportTime bounds how long a member may take to digest its copy. unreachableTime is how long an unreachable member is
	// waited for. reportPoll is the pause between two requests.
	reportTime      = 3 * time.Minute
	unreachableTime = 10 * time.Second
	reportPoll      = 300 * time.Millisecond
	// lateTime is how long the others are waited for at least after a majority has reported, and else actor.InUseFactor times what that took.
	lateTime = 10 * time.Second
	// barrierTime bounds how long a barrier takes to be committed.
	barrierTime = 15 * time.Second
	// wakeTime bounds how long it takes until a closed region, opened to be scrubbed, has this node as its leader.
	wakeTime = 5 * time.Second
	// pollEvery is the interval of the checks in this package that wait for something on this node or a member.
	pollEvery = 50 * time.Millisecond
)

// Scrubbed is the result of the scrub of one region.
type Scrubbed struct {
	Region   nodemsg.Region
	Members  int      // of the group
	Reported int      // number of members that reported
	Parts    int      // parts compared: one for each chunk, and one for the players' sequences
	Differ   []string // members whose copies differ from that of a majority: they are replaced
	Open     []string // differences that cannot be decided, for people
	Err      error    // why it was not scrubbed, or not completely
}

// Scrubber compares the copies of the regions that this node leads.
type Scrubber struct {
	Node
	ScrubberOptions

	comparing sync.Mutex // held while a copy is compared because its leader asks for that
}

// ScrubberOptions are what a Scrubber needs besides.
type ScrubberOptions struct {
	Every      time.Duration // how often the copies of a region are compared
	Supervisor *placement.Supervisor
	Damages    *Damages
	Executor   *Executor
	Pieces     *transport.Pieces
	// Led lists the loaded regions that this node leads.
	Led func() []*actor.Land
}

// scrub compares the copies of a loaded region that this node leads, and has those replaced that differ.
func (sc *Scrubber) scrub(ctx context.Context, l *actor.Land) Scrubbed {
	out := Scrubbed{Region: nodemsg.Region{ID: l.ID(), Cell: l.Cell()}}
	if info, err := l.Info(ctx); err == nil {
		out.Region = info
	}
	begun := time.Now()
	status := l.Raft().Status()
	index, err := commitBarrier(ctx, l)
	var v decision
	var all []scrubReport
	if err == nil {
		v, all, err = sc.compare(ctx, l, status.Members, index)
	}
	if now := l.Raft().Status(); err == nil && (!now.Self || now.Term != status.Term) {
		err = errors.New("leadership changed during the scrub: scrub on the new leader")
	}
	out.Members, out.Reported, out.Err = len(status.Members), len(all), err
	if err == nil {
		out.Parts, out.Differ, out.Open = v.compared, slices.Sorted(maps.Keys(v.differ)), v.lines()
		sc.Metrics.scrubbedChunks.Add(float64(v.compared))
		sc.Damages.note(out.Region, v)
		sc.replace(ctx, out, v, all, nodemsg.LogPosition{Group: l.ID(), Index: index})
	}
	sc.endScrub(out, time.Since(begun))
	return out
}

// replace has the copies replaced that differ.
func (sc *Scrubber) replace(ctx context.Context, out Scrubbed, v decision, all []scrubReport, at nodemsg.LogPosition) {
	for _, peer := range out.Differ {
		sc.Metrics.damaged.Inc()
		sc.Logger.Error("copy differs from that of a majority", "region", out.Region.ID, "cell", out.Region.Cell.String(), "peer", peer,
			"what", differText(v.differ[peer]))
		if peer == sc.Self.Peer {
			sc.Executor.NoteDiffers(out.Region, v, all)
		} else if _, err := sc.Questions.Ask(ctx, peer, nodemsg.Question{Compare: &at}); err != nil {
			sc.Logger.Warn("member not asked to compare its copy", "region", out.Region.ID, "peer", peer, "error", err)
		}
	}
}

// CompareHere compares the copies of a region as of a barrier because its leader asks for that, and has the one here replaced if it differs
// from that of a majority.
func (sc *Scrubber) CompareHere(peer string, at nodemsg.LogPosition) error {
	l := sc.Regions.Loaded(at.Group)
	if l == nil || l.Raft().Status().Leader != peer {
		return fmt.Errorf("compare region %d: it is not open, or %s does not lead it", at.Group, peer)
	}
	if !sc.comparing.TryLock() {
		return errors.New("another region is being compared here")
	}
	started := sc.Tasks.Start(func(ctx context.Context) {
		defer sc.comparing.Unlock()
		v, all, err := sc.compare(ctx, l, l.Raft().Status().Members, at.Index)
		if err != nil {
			sc.Logger.Warn("copy not compared", "region", at.Group, "error", err)
			return
		}
		if info, err := l.Info(ctx); err == nil && len(v.differ[sc.Self.Peer]) > 0 {
			sc.Executor.NoteDiffers(info, v, all)
		}
	})
	if !started {
		sc.comparing.Unlock()
		return background.ErrStopping
	}
	return nil
}

// endScrub counts and logs the result of a scrub.
func (sc *Scrubber) endScrub(out Scrubbed, took time.Duration) {
	result := "sound"
	switch {
	case out.Err != nil:
		result = "failed"
	case len(out.Open) > 0:
		result = "undecided"
	case len(out.Differ) > 0:
		result = "different"
	}
	sc.Metrics.scrubs.WithLabelValues(result).Inc()
	log := sc.Logger.Debug
	if result == "undecided" || result == "different" {
		log = sc.Logger.Warn
	}
	log("region scrubbed", "region", out.Region.ID, "cell", out.Region.Cell.String(), "result", result, "parts", out.Parts,
		"heard", out.Reported, "members", out.Members, "differ", out.Differ, "open", out.Open, "took", took, "error", out.Err)
}

// differText describes for people in what a copy differs.
func differText(parts []world.Part) string {
	text := fmt.Sprintf("%v differs from that of a majority, or cannot be read", parts[0])
	if len(parts) > 1 {
		text = fmt.Sprintf("%v and %d other parts differ from those of a majority, or cannot be read", parts[0], len(parts)-1)
	}
	return text
}

// lines describes for people what cannot be decided.
func (v decision) lines() []string {
	var lines []string
	for _, o := range v.open {
		lines = append(lines, fmt.Sprintf("%v differs, and no majority says which is right: %s", o.part, strings.Join(o.peers, ", ")))
	}
	return lines
}

// quorum is the number of voters that form a majority.
func quorum(g *replica.Group) int {
	n := 0
	for _, m := range g.Configuration().Members {
		if !m.Learner {
			n++
		}
	}
	return n/2 + 1
}

// compare fetches the members' reports as of a barrier, and compares them.
func (sc *Scrubber) compare(ctx context.Context, l *actor.Land, members []replica.Progress, index uint64) (decision, []scrubReport, error) {
	voters, begun := 0, time.Now()
	reports := make([]*scrubReport, len(members))
	asking, stop := context.WithCancel(ctx)
	defer stop()
	var waits sync.WaitGroup
	var reporting atomic.Int32
	need := quorum(l.Raft())
	for i, m := range members {
		if !m.Learner {
			voters++
		}
		until := asking
		if m.Peer == sc.Self.Peer {
			until = ctx // of the leader, this is the copy that the players see
		}
		waits.Go(func() {
			t, err := sc.fetchReport(until, m.Member, nodemsg.LogPosition{Group: l.ID(), Index: index})
			if err != nil {
				sc.Logger.Debug("member's copy not compared", "region", l.ID(), "peer", m.Peer, "error", err)
				return
			}
			if reports[i] = &t; !m.Learner && int(reporting.Add(1)) == need {
				time.AfterFunc(max(lateTime, actor.InUseFactor*time.Since(begun)), stop) // one may say for as long as it likes that it is not ready
			}
		})
	}
	waits.Wait()
	var all []scrubReport
	for _, t := range reports {
		if t != nil {
			all = append(all, *t)
		}
	}
	if len(all) == 0 {
		return decision{}, nil, errors.New("no member could read its copy")
	}
	return decide(voters, all), all, nil
}

// commitBarrier commits a barrier and returns its index.
func commitBarrier(ctx context.Context, l *actor.Land) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, barrierTime)
	defer cancel()
	return l.CommitBarrier(ctx, world.Barrier{Nonce: rand.Uint64()})
}

// fetchReport asks a member until it has a report as of the barrier. A member that is unreachable, or does not reach the barrier, is
// given up after a while and counts as one without a report.
func (sc *Scrubber) fetchReport(ctx context.Context, m replica.Member, at nodemsg.LogPosition) (scrubReport, error) {
	ctx, cancel := context.WithTimeout(ctx, reportTime)
	defer cancel()
	patience := time.Now().Add(unreachableTime)
	for {
		got, err := sc.Pieces.Fetch(ctx, m.Peer, nodemsg.Fetch{Digests: &at})
		switch {
		case err == nil && !got.Wait:
			t := scrubReport{peer: m.Peer, voter: !m.Learner, parts: make(map[world.Part]finding, len(got.Digests))}
			for _, d := range got.Digests {
				t.parts[world.Part{Chunk: d.Chunk, Sequences: d.Sequences}] = finding{world.Digest(d.Memory), d.Disk}
			}
			return t, nil
		case err == nil:
			patience = time.Now().Add(unreachableTime)
		case errors.As(err, new(transport.Refusal)), time.Now().After(patience):
			return scrubReport{}, err
		}
		select {
		case <-ctx.Done():
			return scrubReport{}, ctx.Err()
		case <-time.After(reportPoll):
		}
	}
}

// Scrub scrubs the region of a cell now, if this node leads it, or if it is a member and the region is closed.
func (sc *Scrubber) Scrub(ctx context.Context, cell grid.Cell) Scrubbed {
	area := cell.Area()
	info, err := sc.Directory.FromCatalog(ctx, grid.ChunkPos{X: area.MinX, Z: area.MinZ})
	if err == nil && info.Cell != cell {
		err = fmt.Errorf("no such region: %v", cell)
	}
	if errors.Is(err, directory.ErrNotFounded) {
		err = fmt.Errorf("region %v has no data yet", cell)
	}
	if err != nil {
		return Scrubbed{Region: nodemsg.Region{Cell: cell}, Err: err}
	}
	if !actor.HasMember(info, sc.Self.Peer) {
		return Scrubbed{Region: info, Err: fmt.Errorf("this node is not a member: ask %s", memberNames(info))}
	}
	return sc.scrubClosed(ctx, info)
}

// ScrubAll scrubs all regions that this node leads, and the closed ones that it is responsible for.
func (sc *Scrubber) ScrubAll(ctx context.Context) []Scrubbed {
	var all []Scrubbed
	infos, err := sc.Registry.All()
	if err != nil {
		all = append(all, Scrubbed{Err: err})
	}
	for _, info := range infos {
		if ctx.Err() != nil {
			return append(all, Scrubbed{Err: ctx.Err()})
		}
		l := sc.Regions.Loaded(info.ID)
		if l != nil && l.Raft().Status().Self {
			all = append(all, sc.scrub(ctx, l))
		} else if l == nil && sc.Supervisor.Responsible(info) {
			all = append(all, sc.scrubClosed(ctx, info))
		}
	}
	return all
}

// scrubClosed opens the region if it is closed, and scrubs it if this node then leads it.
func (sc *Scrubber) scrubClosed(ctx context.Context, info nodemsg.Region) Scrubbed {
	l, err := sc.Regions.Open(ctx, info.ID, info.Cell)
	if err != nil {
		return Scrubbed{Region: info, Err: err}
	}
	status := l.Raft().Status()
	if !status.Self && status.Leader == "" {
		l.Raft().Campaign()
	}
	waiting, cancel := context.WithTimeout(ctx, wakeTime)
	defer cancel()
	for !l.Raft().Status().Self {
		if leader := l.Raft().Status().Leader; leader != "" && leader != sc.Self.Peer {
			return Scrubbed{Region: info, Err: fmt.Errorf("led by %s: ask there", leader)}
		}
		select {
		case <-waiting.Done():
			return Scrubbed{Region: info, Err: errors.New("no leader: too few of its members can be reached")}
		case <-l.Done():
			return Scrubbed{Region: info, Err: actor.ErrNotHere}
		case <-time.After(pollEvery):
		}
	}
	return sc.scrub(ctx, l)
}

func memberNames(info nodemsg.Region) string {
	names := make([]string, len(info.Members))
	for i, m := range info.Members {
		names[i] = m.Peer
	}
	return strings.Join(names, " or ")
}
