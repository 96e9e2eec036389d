package region

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// This file is the leader's side of a scrub (docs/adr/0010). It puts a mark into the log, fetches every member's report of its
// copy as of the mark, and decides which copies are damaged. Then it puts a second mark into the log, at which the damaged
// members are repaired, and compares again.

const (
	// reportTime bounds how long a member may take to digest its copy. unreachableTime is how long an unreachable member is
	// waited for. reportPoll is the pause between two requests.
	reportTime      = 3 * time.Minute
	unreachableTime = 10 * time.Second
	reportPoll      = 300 * time.Millisecond
	// markTime bounds how long a mark takes to be committed.
	markTime = 15 * time.Second
	// scrubRounds bounds the comparisons of one scrub: the first, and one after each repair.
	scrubRounds = 4
	// wakeTime bounds how long it takes until a closed region, opened to be scrubbed, has this node as its leader.
	wakeTime = 5 * time.Second
)

// Scrubbed is the result of the scrub of one region.
type Scrubbed struct {
	Region   nodemsg.Region
	Members  int      // of the group
	Heard    int      // number of members that reported
	Parts    int      // parts compared: one for each chunk, and one for the players' sequences
	Damaged  int      // copies of parts that were found damaged
	Repaired int      // number of those that were repaired
	Open     []string // differences that were not repaired, for people
	Err      error    // why it was not scrubbed, or not completely
}

// Damage is a copy that is known to be damaged and is not repaired.
type Damage struct {
	Region uint64
	Cell   grid.Cell
	Peer   string // the node that has it; "" if it is unknown which copy is wrong
	What   string // for people
	Since  time.Time
}

// Damaged lists the damage that this node knows of and that is not repaired: in regions that it led when they were scrubbed last,
// and in its own unusable copies.
func (h *Host) Damaged() []Damage {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []Damage
	for _, list := range h.mu.damage {
		all = append(all, list...)
	}
	for _, c := range h.mu.corrupt {
		all = append(all, Damage{Region: c.info.ID, Cell: c.info.Cell, Peer: h.Self.Peer, What: c.why.Error(), Since: c.since})
	}
	slices.SortFunc(all, func(a, b Damage) int {
		return cmp.Or(cmp.Compare(a.Region, b.Region), cmp.Compare(a.Peer, b.Peer), cmp.Compare(a.What, b.What))
	})
	return all
}

// noteDamage records the damage that the newest scrub of a region has left.
func (h *Host) noteDamage(info nodemsg.Region, v decision) {
	now := time.Now()
	var list []Damage
	add := func(peer, what string) {
		list = append(list, Damage{Region: info.ID, Cell: info.Cell, Peer: peer, What: what, Since: now})
	}
	for _, m := range v.mends {
		for _, peer := range m.Damaged {
			add(peer, m.Part.String()+" is damaged")
		}
	}
	for _, o := range v.open {
		add("", fmt.Sprintf("%v differs, and no majority says which is right: %s", o.part, strings.Join(o.peers, ", ")))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, d := range list {
		for _, before := range h.mu.damage[info.ID] {
			if before.Peer == d.Peer && before.What == d.What {
				list[i].Since = before.Since
			}
		}
	}
	if h.mu.damage[info.ID] = list; len(list) == 0 {
		delete(h.mu.damage, info.ID)
	}
	h.countDamage()
}

// countDamage updates the metric. The caller holds the lock.
func (h *Host) countDamage() {
	n := len(h.mu.corrupt)
	for _, list := range h.mu.damage {
		n += len(list)
	}
	h.metrics.damagedNow.Set(float64(n))
}

// scrub compares and repairs the copies of a loaded region that this node leads.
func (h *Host) scrub(ctx context.Context, l *loop) Scrubbed {
	out := Scrubbed{Region: nodemsg.Region{ID: l.info.ID, Cell: l.info.Cell}}
	if info, err := l.ask(ctx); err == nil {
		out.Region = info
	}
	begun := time.Now()
	before := 0
	for round := range scrubRounds {
		v, members, heard, err := h.compare(ctx, l)
		out.Members, out.Heard, out.Open = members, heard, nil
		if err != nil {
			out.Err = err
			break
		}
		bad := v.copies()
		if round == 0 {
			out.Parts, before = v.compared, bad
			h.metrics.scrubbedChunks.Add(float64(v.compared))
		}
		out.Damaged = max(out.Damaged, bad+len(v.open))
		out.Repaired += max(0, before-bad)
		before = bad
		h.noteDamage(out.Region, v)
		out.Open = v.lines()
		if len(v.mends) == 0 || round == scrubRounds-1 {
			break
		}
		h.metrics.damaged.Add(float64(bad))
		for _, m := range v.mends {
			h.Logger.Error("damaged copy found", "region", l.info.ID, "cell", l.info.Cell.String(), "part", m.Part.String(),
				"members", strings.Join(m.Damaged, ","))
		}
		mark := world.Barrier{Repairs: v.mends[:min(len(v.mends), world.MaxRepairs)], Need: l.quorum()}
		if _, err := h.commitMark(ctx, l, mark); err != nil {
			out.Err = err
			break
		}
	}
	h.endScrub(out, time.Since(begun))
	return out
}

// endScrub counts and logs the result of a scrub.
func (h *Host) endScrub(out Scrubbed, took time.Duration) {
	result := "sound"
	switch {
	case out.Err != nil:
		result = "failed"
	case len(out.Open) > 0:
		result = "damaged"
	case out.Damaged > 0:
		result = "repaired"
	}
	h.metrics.scrubs.WithLabelValues(result).Inc()
	log := h.Logger.Debug
	if result == "damaged" || result == "repaired" {
		log = h.Logger.Warn
	}
	log("region scrubbed", "region", out.Region.ID, "cell", out.Region.Cell.String(), "result", result, "parts", out.Parts,
		"heard", out.Heard, "members", out.Members, "damaged", out.Damaged, "repaired", out.Repaired, "open", out.Open,
		"took", took, "error", out.Err)
}

// copies returns the number of copies of parts to be repaired.
func (v decision) copies() int {
	n := 0
	for _, m := range v.mends {
		n += len(m.Damaged)
	}
	return n
}

// lines describes for people what is wrong.
func (v decision) lines() []string {
	var lines []string
	for _, m := range v.mends {
		lines = append(lines, fmt.Sprintf("%v is damaged on %s", m.Part, strings.Join(m.Damaged, ", ")))
	}
	for _, o := range v.open {
		lines = append(lines, fmt.Sprintf("%v differs, and no majority says which is right: %s", o.part, strings.Join(o.peers, ", ")))
	}
	return lines
}

// quorum is the number of voters that form a majority.
func (l *loop) quorum() int {
	n := 0
	for _, m := range l.raft.Configuration().Members {
		if !m.Learner {
			n++
		}
	}
	return n/2 + 1
}

// compare puts a mark into the log and compares the members' reports.
func (h *Host) compare(ctx context.Context, l *loop) (v decision, members, heard int, err error) {
	status := l.raft.Status()
	index, err := h.commitMark(ctx, l, world.Barrier{})
	if err != nil {
		return decision{}, len(status.Members), 0, err
	}
	voters := 0
	reports := make([]*scrubReport, len(status.Members))
	var crew sync.WaitGroup
	for i, m := range status.Members {
		if !m.Learner {
			voters++
		}
		crew.Go(func() {
			t, err := h.fetchReport(ctx, m.Member, nodemsg.LogPosition{Group: l.info.ID, Index: index})
			if err != nil {
				h.Logger.Debug("member's copy not compared", "region", l.info.ID, "peer", m.Peer, "error", err)
				return
			}
			reports[i] = &t
		})
	}
	crew.Wait()
	if now := l.raft.Status(); !now.Self || now.Term != status.Term {
		return decision{}, len(status.Members), 0, errors.New("leadership changed during the scrub: scrub on the new leader")
	}
	var all []scrubReport
	for _, t := range reports {
		if t != nil {
			all = append(all, *t)
		}
	}
	if len(all) == 0 {
		return decision{}, len(status.Members), 0, errors.New("no member could read its copy")
	}
	return decide(voters, all), len(status.Members), len(all), nil
}

// commitMark commits a mark and returns its index.
func (h *Host) commitMark(ctx context.Context, l *loop, mark world.Barrier) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, markTime)
	defer cancel()
	mark.Nonce = rand.Uint64()
	heard, refused := make(chan uint64, 1), make(chan error, 1)
	if !l.inbox.Put(func() {
		if err := l.proposeMark(mark, heard); err != nil {
			refused <- err
		}
	}) {
		return 0, ErrNotHere
	}
	defer l.inbox.Put(func() { delete(l.markWaiters, mark.Nonce) })
	select {
	case index := <-heard:
		return index, nil
	case err := <-refused:
		return 0, fmt.Errorf("commit a scrub mark: %w", err)
	case <-l.done:
		return 0, ErrNotHere
	case <-ctx.Done():
		return 0, fmt.Errorf("commit a scrub mark: %w", ctx.Err())
	}
}

// fetchReport asks a member until it has a report as of the mark. A member that is unreachable, or does not reach the mark, is
// given up after a while and counts as one without a report.
func (h *Host) fetchReport(ctx context.Context, m replica.Member, at nodemsg.LogPosition) (scrubReport, error) {
	ctx, cancel := context.WithTimeout(ctx, reportTime)
	defer cancel()
	patience := time.Now().Add(unreachableTime)
	for {
		got, err := h.pieces.Fetch(ctx, m.Peer, nodemsg.Fetch{Digests: &at})
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
func (h *Host) Scrub(ctx context.Context, cell grid.Cell) Scrubbed {
	area := cell.Area()
	info, err := h.Directory.fromCatalog(ctx, grid.ChunkPos{X: area.MinX, Z: area.MinZ})
	if err == nil && info.Cell != cell {
		err = fmt.Errorf("no such region: %v", cell)
	}
	if errors.Is(err, errNotFounded) {
		err = fmt.Errorf("region %v has no data yet", cell)
	}
	if err != nil {
		return Scrubbed{Region: nodemsg.Region{Cell: cell}, Err: err}
	}
	if !hasMember(info, h.Self.Peer) {
		return Scrubbed{Region: info, Err: fmt.Errorf("this node is not a member: ask %s", memberNames(info))}
	}
	return h.scrubClosed(ctx, info)
}

// ScrubAll scrubs all regions that this node leads, and the closed ones that it is responsible for.
func (h *Host) ScrubAll(ctx context.Context) []Scrubbed {
	var all []Scrubbed
	infos, err := h.storedRegions()
	if err != nil {
		all = append(all, Scrubbed{Err: err})
	}
	for _, info := range infos {
		if ctx.Err() != nil {
			return append(all, Scrubbed{Err: ctx.Err()})
		}
		l := h.loop(info.ID)
		if l != nil && l.raft.Status().Self {
			all = append(all, h.scrub(ctx, l))
		} else if l == nil && h.responsible(info) {
			all = append(all, h.scrubClosed(ctx, info))
		}
	}
	return all
}

// storedRegions lists the regions that this node is a member of. Unreadable rows are left out.
func (h *Host) storedRegions() ([]nodemsg.Region, error) {
	var infos []nodemsg.Region
	err := h.Storage.Scan(regionTable, nil, func(_, value []byte) error {
		if info, err := nodemsg.DecodeRegion(value); err == nil {
			infos = append(infos, info)
		}
		return nil
	})
	if err != nil {
		return infos, fmt.Errorf("list regions: %w", err)
	}
	return infos, nil
}

// scrubClosed opens the region if it is closed, and scrubs it if this node then leads it.
func (h *Host) scrubClosed(ctx context.Context, info nodemsg.Region) Scrubbed {
	l, err := h.loadGroup(ctx, nodemsg.Hello{Region: info.ID, Cell: info.Cell})
	if err != nil {
		return Scrubbed{Region: info, Err: err}
	}
	status := l.raft.Status()
	if !status.Self && status.Leader == "" {
		l.raft.Campaign()
	}
	waiting, cancel := context.WithTimeout(ctx, wakeTime)
	defer cancel()
	for !l.raft.Status().Self {
		if leader := l.raft.Status().Leader; leader != "" && leader != h.Self.Peer {
			return Scrubbed{Region: info, Err: fmt.Errorf("led by %s: ask there", leader)}
		}
		select {
		case <-waiting.Done():
			return Scrubbed{Region: info, Err: errors.New("no leader: too few of its members can be reached")}
		case <-l.done:
			return Scrubbed{Region: info, Err: ErrNotHere}
		case <-time.After(settlePoll):
		}
	}
	return h.scrub(ctx, l)
}

func memberNames(info nodemsg.Region) string {
	names := make([]string, len(info.Members))
	for i, m := range info.Members {
		names[i] = m.Peer
	}
	return strings.Join(names, " or ")
}
