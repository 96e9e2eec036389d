package integrity

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/region/placement"
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// This file is the leader's side of a scrub (docs/adr/0010). It puts a barrier into the log, fetches every member's
// report of its copy as of the barrier, and decides which copies are damaged. Then it puts a second barrier into the
// log, at which the damaged members are repaired, and compares again.

const (
	// reportTime bounds how long a member may take to digest its copy. unreachableTime is how long an unreachable
	// member is waited for. reportPoll is the pause between two requests.
	reportTime      = 3 * time.Minute
	unreachableTime = 10 * time.Second
	reportPoll      = 300 * time.Millisecond
	// lateTime is how long the others are waited for at least after a majority has reported, and else actor.InUseFactor
	// times what that took.
	lateTime = 10 * time.Second
	// barrierTime bounds how long a barrier takes to be committed.
	barrierTime = 15 * time.Second
	// scrubRounds bounds the comparisons of one scrub: the first, and one after each repair.
	scrubRounds = 4
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
	Damaged  int      // copies of parts that were found damaged
	Repaired int      // number of those that were repaired
	Open     []string // differences that were not repaired, for people
	Err      error    // why it was not scrubbed, or not completely
}

// Scrubber compares and repairs the copies of the regions that this node leads.
type Scrubber struct {
	Node
	ScrubberOptions
}

// ScrubberOptions are what a Scrubber needs besides.
type ScrubberOptions struct {
	Every      time.Duration // how often the copies of a region are compared
	Supervisor *placement.Supervisor
	Damages    *Damages
	Facts      *Facts
	Pieces     transport.Pieces
	// Led lists the loaded regions that this node leads.
	Led func() []*actor.Land
}

// scrub compares and repairs the copies of a loaded region that this node leads.
func (sc *Scrubber) scrub(ctx context.Context, l *actor.Land) Scrubbed {
	out := Scrubbed{Region: nodemsg.Region{ID: l.ID(), Cell: l.Cell()}}
	if info, err := l.Info(ctx); err == nil {
		out.Region = info
	}
	begun := time.Now()
	before := 0
	for round := range scrubRounds {
		v, members, reported, err := sc.compare(ctx, l)
		out.Members, out.Reported, out.Open = members, reported, nil
		if err != nil {
			out.Err = err
			break
		}
		bad := v.copies()
		if round == 0 {
			out.Parts, before = v.compared, bad
			sc.Metrics.scrubbedChunks.Add(float64(v.compared))
		}
		out.Damaged = max(out.Damaged, bad+len(v.open))
		out.Repaired += max(0, before-bad)
		before = bad
		sc.Damages.note(out.Region, v)
		out.Open = v.lines()
		if len(v.repairs) == 0 || round == scrubRounds-1 {
			break
		}
		sc.Metrics.damaged.Add(float64(bad))
		for _, m := range v.repairs {
			sc.Logger.Error("damaged copy found", "region", l.ID(), "cell", l.Cell().String(), "part", m.Part.String(),
				"members", strings.Join(m.Damaged, ","))
		}
		barrier := world.Barrier{Repairs: v.repairs[:min(len(v.repairs), world.MaxRepairs)], Need: quorum(l.Raft())}
		if _, err := commitBarrier(ctx, l, barrier); err != nil {
			out.Err = err
			break
		}
	}
	sc.endScrub(out, time.Since(begun))
	return out
}

// endScrub counts and logs the result of a scrub.
func (sc *Scrubber) endScrub(out Scrubbed, took time.Duration) {
	result := "sound"
	switch {
	case out.Err != nil:
		result = "failed"
	case len(out.Open) > 0:
		result = "damaged"
	case out.Damaged > 0:
		result = "repaired"
	}
	sc.Metrics.scrubs.WithLabelValues(result).Inc()
	log := sc.Logger.Debug
	if result == "damaged" || result == "repaired" {
		log = sc.Logger.Warn
	}
	log("region scrubbed", "region", out.Region.ID, "cell", out.Region.Cell.String(), "result", result, "parts", out.Parts,
		"heard", out.Reported, "members", out.Members, "damaged", out.Damaged, "repaired", out.Repaired, "open", out.Open,
		"took", took, "error", out.Err)
}

// copies returns the number of copies of parts to be repaired.
func (v comparison) copies() int {
	n := 0
	for _, m := range v.repairs {
		n += len(m.Damaged)
	}
	return n
}

// lines describes for people what is wrong.
func (v comparison) lines() []string {
	var lines []string
	for _, m := range v.repairs {
		lines = append(lines, fmt.Sprintf("%v is damaged on %s", m.Part, strings.Join(m.Damaged, ", ")))
	}
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

// compare puts a barrier into the log and compares the members' reports.
func (sc *Scrubber) compare(ctx context.Context, l *actor.Land) (v comparison, members, reported int, err error) {
	status := l.Raft().Status()
	index, err := commitBarrier(ctx, l, world.Barrier{})
	if err != nil {
		return comparison{}, len(status.Members), 0, err
	}
	voters, begun := 0, time.Now()
	reports := make([]*scrubReport, len(status.Members))
	asking, stop := context.WithCancel(ctx)
	defer stop()
	var wg sync.WaitGroup
	var reporting atomic.Int32
	need := quorum(l.Raft())
	for i, m := range status.Members {
		if !m.Learner {
			voters++
		}
		until := asking
		if m.Peer == sc.Self.Peer {
			until = ctx // this is the copy that the players see
		}
		wg.Go(func() {
			t, err := sc.fetchReport(until, l, m.Member, nodemsg.LogPosition{Group: l.ID(), Index: index})
			if err != nil {
				sc.Logger.Debug("member's copy not compared", "region", l.ID(), "peer", m.Peer, "error", err)
				return
			}
			if reports[i] = &t; !m.Learner && int(reporting.Add(1)) == need {
				time.AfterFunc(max(lateTime, actor.InUseFactor*time.Since(begun)), stop) // one may say for as long as it likes that it is not ready
			}
		})
	}
	wg.Wait()
	if now := l.Raft().Status(); !now.Self || now.Term != status.Term {
		return comparison{}, len(status.Members), 0, errors.New("leadership changed during the scrub: scrub on the new leader")
	}
	var all []scrubReport
	for _, t := range reports {
		if t != nil {
			all = append(all, *t)
		}
	}
	if len(all) == 0 {
		return comparison{}, len(status.Members), 0, errors.New("no member could read its copy")
	}
	return compareReports(voters, all), len(status.Members), len(all), nil
}

// commitBarrier commits a barrier and returns its index.
func commitBarrier(ctx context.Context, l *actor.Land, barrier world.Barrier) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, barrierTime)
	defer cancel()
	barrier.Nonce = rand.Uint64()
	return l.CommitBarrier(ctx, barrier)
}

// fetchDigests asks a member once, which may be this node.
func (sc *Scrubber) fetchDigests(ctx context.Context, l *actor.Land, peer string, at nodemsg.LogPosition) (nodemsg.Fetched, error) {
	if peer != sc.Self.Peer {
		return sc.Pieces.Fetch(ctx, peer, nodemsg.Fetch{Digests: &at})
	}
	got := l.ServeDigests(ctx, peer, at)
	if got.Error != "" {
		return got, transport.Refusal(got.Error)
	}
	return got, nil
}

// fetchReport asks a member until it has a report as of the barrier. A member that is unreachable, or does not reach
// the barrier, is given up after a while and counts as one without a report.
func (sc *Scrubber) fetchReport(ctx context.Context, l *actor.Land, m replica.Member, at nodemsg.LogPosition) (scrubReport, error) {
	ctx, cancel := context.WithTimeout(ctx, reportTime)
	defer cancel()
	patience := time.Now().Add(unreachableTime)
	for {
		got, err := sc.fetchDigests(ctx, l, m.Peer, at)
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
