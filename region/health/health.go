// Package health examines the world on behalf of operators: what is wrong with it, and what to do about that.
package health

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/copies"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/region/integrity"
	"github.com/voxelpopuli/voxeld/region/membership"
	"github.com/voxelpopuli/voxeld/region/placement"
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

const (
	// examinedRegions bounds how many regions one examination covers.
	examinedRegions = 4096
	// secondLook is the pause before regions that look wrong are examined again: they may just be changing leaders.
	secondLook = 1500 * time.Millisecond
	// clockSkew is the allowed difference between the clocks of two nodes.
	clockSkew = 2 * time.Second
)

// Finding is a problem of the world.
type Finding struct {
	Kind    string `json:"kind"`    // for programs: "quarantined", "failed", "leaderless", "no_quorum", …
	Subject string `json:"subject"` // the cell, "catalog", "node", or a peer id
	What    string `json:"what"`
	Do      string `json:"do"`
}

// Health is the result of an examination of the world, as far as this node can know.
type Health struct {
	Findings []Finding `json:"findings"` // empty if nothing is wrong
	Unknown  []string  `json:"unknown"`  // what could not be determined
	Regions  int       `json:"regions"`  // examined, the catalog not counted
	Awake    int       `json:"awake"`    // of them, those that run on some node
	Nodes    int       `json:"nodes"`    // that answered, this one included
}

// Examiner examines the world. All fields are required. Its methods may be called from any goroutine.
type Examiner struct {
	integrity.Node
	Copies, CatalogCopies int // number of members of a region and of the catalog
	Records               directory.Records
	Damages               func() []integrity.Damage // known, on this node, or in regions that it led when they were scrubbed last
	AskStatuses           integrity.AskStatuses
	Contradictions        *Contradictions
	Memberships           func() ([]nodemsg.Region, error)      // lists the regions that this node stores a copy of
	MachineAhead          func() time.Duration                  // how far the machine's clock is ahead of the time of the world; nil: it is not
	NotReady              func() error                          // why players should rather be on other nodes; nil if they need not
	Loaded                func(context.Context) []actor.Summary // the regions that are loaded here; nil: nobody knows
	Copied                func() (own bool, others []string)    // see integrity.Incarnations.Copied; nil: nobody knows
}

// Examine examines this node, all nodes that hold regions, and the regions in the catalog. It asks other nodes and may
// take seconds; ctx bounds it.
func (h *Examiner) Examine(ctx context.Context) Health {
	e := examination{Examiner: h}
	if excluded := h.Detector.Excluded; excluded != nil && excluded(h.Self.Peer) {
		// Nobody answers it, so everything would seem to be lost.
		e.found("excluded", "node", "this node is excluded from the world: it, its operator or its token was revoked",
			"stop it; if that was a mistake, run on another node: voxeld peers revoke --lift, with what was revoked (voxeld peers revoked lists it)")
		e.Unknown = append(e.Unknown, "everything else: other nodes do not answer an excluded one")
		return e.Health
	}
	e.node()
	regions := e.census(ctx)
	for _, info := range regions {
		if info.ID != world.CatalogID {
			e.Regions++
		}
	}
	seen := e.look(ctx, regions)
	e.Nodes, e.Awake = len(seen.answered), seen.awake
	if len(seen.wrong) > 0 { // it may have been changing leaders
		select {
		case <-time.After(secondLook):
		case <-ctx.Done():
		}
		if second := e.look(ctx, seen.wrong); ctx.Err() == nil {
			seen.findings = second.findings
			seen.peers = slices.DeleteFunc(seen.peers, func(f Finding) bool { return f.Kind == "unreachable" && second.answered[f.Subject] != nil })
		} else {
			e.Unknown = append(e.Unknown, "whether all of it lasts: there was no time to look twice")
		}
	}
	if e.Nodes == 1 && len(seen.peers) > 0 {
		e.found("disconnected", "node", "no other node answers this one: if others run, it is this one that is cut off",
			"run voxeld doctor on another node first; if the world is well there, mend this node's network (port 4001), and recover nothing here")
	}
	e.Findings = append(append(e.Findings, seen.findings...), seen.peers...)
	e.impaired(ctx)
	e.damage()
	e.copied()
	e.Contradictions.each(func(peer, what string) {
		e.found("contradicted", peer, what, "ask who runs it: it lies, or its data is damaged; voxeld peers revoke "+peer+" throws it out")
	})
	e.older()
	e.mods(ctx)
	slices.SortStableFunc(e.Findings, func(a, b Finding) int { return cmp.Compare(a.Kind, b.Kind) })
	return e.Health
}

type examination struct {
	Health
	*Examiner
}

func (e *examination) found(kind, subject, what, do string) {
	e.Findings = append(e.Findings, Finding{kind, subject, what, do})
}

// node examines this node itself.
func (e *examination) node() {
	err := e.Replicas.Stalled()
	switch {
	case errors.Is(err, replica.ErrHung):
		e.found("storage", "node", fmt.Sprintf("this node cannot write to its disk: %v", err),
			"look for I/O errors in the kernel log, and at what else uses the disk; other nodes lead its regions meanwhile, and it goes on by itself")
	case err != nil:
		e.found("storage", "node", fmt.Sprintf("this node cannot write to its disk: %v", err),
			"free space on the data directory's disk, or look for I/O errors in the kernel log; edits work again by themselves")
	}
	if why := e.NotReady(); why != nil && !errors.Is(why, replica.ErrHung) {
		e.found("not_ready", "node", "players should not be sent to this node: "+why.Error(), "mend the network between the two nodes (port 4001)")
	}
	if ahead := e.machineAhead(); ahead.Abs() > clockSkew {
		e.found("clock", e.Self.Peer, fmt.Sprintf("its machine's clock is %s the time of the world, by which it goes on", aheadOf(ahead)),
			"run a time service on it")
	}
}

// machineAhead returns how far the machine's clock is ahead of the time of the world.
func (e *examination) machineAhead() time.Duration {
	if e.MachineAhead == nil {
		return 0
	}
	return e.MachineAhead()
}

// aheadOf returns a part of a sentence that says how far a clock is ahead of another one, or behind it.
func aheadOf(by time.Duration) string {
	text := by.Abs().Round(100 * time.Millisecond).String()
	if by < 0 {
		return text + " behind"
	}
	return text + " ahead of"
}

// impaired names the other nodes that should not be sent players, as they say now.
func (e *examination) impaired(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, integrity.PollTime)
	defer cancel()
	e.Detector.CheckLiving(ctx)
	nodes := e.Detector.Nodes()
	for _, peer := range slices.Sorted(maps.Keys(nodes)) {
		if n := nodes[peer]; n.Answers && n.About.NotReady != "" {
			e.found("not_ready", peer, "players should not be sent to it: "+n.About.NotReady, "run voxeld doctor on that node")
		}
	}
}

// older names the connected nodes that are not made members of regions because their version is an earlier one.
func (e *examination) older() {
	for _, peer := range e.Detector.Older(nodemsg.Version) {
		e.found("older", peer, "it runs an earlier version of voxeld, or says so: it is not made a member of regions",
			"upgrade it; if it only says so, voxeld peers revoke "+peer+" throws it out")
	}
}

// mods names the mods that are suspended in the regions that are loaded here.
func (e *examination) mods(ctx context.Context) {
	if e.Loaded == nil {
		return
	}
	for _, region := range e.Loaded(ctx) {
		for _, m := range region.Suspended {
			e.found("mod", integrity.Name(region.Region), fmt.Sprintf("the mod %s is suspended there: %s", m.Name, m.Suspended),
				"mend the mod and add it again (voxeld mod add), or let it go on as it is: voxeld mod resume "+m.Name)
		}
	}
}

// copied names the nodes of which two copies run at the same time.
func (e *examination) copied() {
	if e.Copied == nil {
		return
	}
	own, others := e.Copied()
	if own {
		others = append(others, e.Self.Peer)
	}
	for _, peer := range others {
		e.found("copied", peer, "two machines run with a copy of its data directory, at the same time, or did within the last hour: each makes the other one's data an earlier state",
			"if both still run, stop one of them now, and remove its data directory; if there is only one, remove nothing; to add a machine, run it with --join and a token that voxeld invite prints")
	}
}

// damage adds the damage that scrubs have found and that is not repaired yet, as far as this node knows.
func (e *examination) damage() {
	for _, d := range e.Damages() {
		if d.Reason == copies.RolledBack.String() || d.Reason == copies.Lost.String() {
			continue // look reports the node
		}
		what := d.What
		if d.Peer != "" {
			what = fmt.Sprintf("%s, on %s", what, d.Peer)
		}
		e.found(d.Reason, integrity.Name(nodemsg.Region{ID: d.Region, Cell: d.Cell}), what, d.Do)
	}
}

// census lists the founded regions: all of the catalog, or at least those of this node.
func (e *examination) census(ctx context.Context) []nodemsg.Region {
	catalog, err := e.Node.Regions.Member(world.CatalogID)
	if err != nil {
		if catalog, err = e.Directory.CatalogMembers(ctx); err != nil {
			e.Unknown = append(e.Unknown, fmt.Sprintf("who holds the catalog: %v", err))
		}
	}
	var all []nodemsg.Region
	if len(catalog.Members) > 0 {
		all = append(all, catalog)
	}
	founded, err := e.AllRegions(ctx, catalog)
	if err != nil {
		e.Unknown = append(e.Unknown, fmt.Sprintf("complete list of regions: the catalog cannot be read (%v); only those of this node were examined", err))
		if founded, err = e.Memberships(); err != nil {
			e.Unknown = append(e.Unknown, fmt.Sprintf("which regions this node holds: %v", err))
		}
	}
	for _, info := range founded {
		if info.ID == world.CatalogID {
			continue
		}
		if len(all) > examinedRegions {
			e.Unknown = append(e.Unknown, fmt.Sprintf("status of %d further regions: only %d are examined; voxeld status counts all regions by state", len(founded)-examinedRegions, examinedRegions))
			break
		}
		all = append(all, info)
	}
	return all
}

// AllRegions lists the founded regions as a member of the catalog knows them.
func (h *Examiner) AllRegions(ctx context.Context, catalog nodemsg.Region) ([]nodemsg.Region, error) {
	var failed error
	peers := []string{h.Self.Peer}
	for _, m := range catalog.Members {
		if m.Peer != h.Self.Peer {
			peers = append(peers, m.Peer)
		}
	}
	for _, peer := range peers {
		all, err := h.RegionsOn(ctx, peer)
		if err == nil {
			return all, nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, failed
}

// RegionsOn lists the founded regions as a member of the catalog has them. It asks page by page.
func (h *Examiner) RegionsOn(ctx context.Context, peer string) ([]nodemsg.Region, error) {
	var all []nodemsg.Region
	for after := uint64(0); ; {
		var page []nodemsg.Region
		if peer == h.Self.Peer {
			c := h.Regions.Catalog()
			if c == nil {
				return nil, errors.New("this node does not hold the catalog")
			}
			var err error
			if page, err = c.Page(ctx, after); err != nil {
				return nil, err
			}
		} else {
			asking, cancel := context.WithTimeout(ctx, integrity.PollTime)
			answer, err := h.Questions.Ask(asking, peer, nodemsg.Question{Regions: &nodemsg.RegionsRequest{After: after}})
			cancel()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", peer, err)
			}
			page = answer.Regions
		}
		all = append(all, page...)
		if len(page) < nodemsg.RegionsPage || page[len(page)-1].ID <= after {
			return all, nil
		}
		after = page[len(page)-1].ID
	}
}

// overview is the result of one look at the regions.
type overview struct {
	findings []Finding                                  // about regions
	wrong    []nodemsg.Region                           // the regions of these findings
	peers    []Finding                                  // about nodes
	awake    int                                        // regions that run on some node
	answered map[string]map[uint64]nodemsg.RegionStatus // by the nodes that answered
}

// look asks all members for the status of the regions, and assesses each region by the answers.
func (e *examination) look(ctx context.Context, regions []nodemsg.Region) overview {
	want := make(map[string][]uint64)
	for _, info := range regions {
		for _, m := range info.Members {
			want[m.Peer] = append(want[m.Peer], info.ID)
		}
	}
	for _, peer := range e.Records.NearestKnown(grid.CatalogKey, placement.Neighbours) {
		if len(want[peer]) == 0 {
			want[peer] = []uint64{world.CatalogID} // asked only to see whether it is alive, since it could become a member
		}
	}
	want[e.Self.Peer] = append(want[e.Self.Peer], world.CatalogID)
	s := integrity.PollStatuses(ctx, e.AskStatuses, want, false)
	nodes := len(s.Statuses) // number of nodes, as far as the regions show
	for peer := range s.Silent {
		if holds(regions, peer) {
			nodes++
		}
	}
	leader := e.Directory.CatalogLeader(ctx)
	seen := overview{answered: s.Statuses}
	outdated := make(map[string]*outdatedNode)
	for _, info := range regions {
		copies := e.Copies
		if info.ID == world.CatalogID {
			copies = e.CatalogCopies
		}
		c := examined{info: info, catalog: leader, statuses: s, leaving: e.Detector.Leaving, limits: membership.Limits{Copies: copies, Nodes: nodes}}
		for peer := range s.Statuses {
			c.spare = c.spare || !actor.HasMember(info, peer) && !e.Detector.Leaving(peer)
		}
		findings := c.assess()
		if c.awake && info.ID != world.CatalogID {
			seen.awake++
		}
		for _, peer := range c.outdated {
			if outdated[peer] == nil {
				outdated[peer] = &outdatedNode{}
			}
			outdated[peer].replicas++
			outdated[peer].last = outdated[peer].last || peer == c.lastResort
			outdated[peer].until = max(outdated[peer].until, c.status(peer).Until)
		}
		if len(findings)+len(c.outdated) > 0 {
			seen.findings = append(seen.findings, findings...)
			seen.wrong = append(seen.wrong, info)
		}
	}
	for _, peer := range slices.Sorted(maps.Keys(outdated)) {
		seen.findings = append(seen.findings, outdated[peer].finding(peer))
	}
	for _, peer := range slices.Sorted(maps.Keys(s.Silent)) {
		if n := len(want[peer]); holds(regions, peer) && !e.Detector.Leaving(peer) {
			seen.peers = append(seen.peers, Finding{
				"unreachable", peer, fmt.Sprintf("it does not answer, and is a member of %d of these regions; voxeld peers lists its addresses: %v", n, transport.Clip(s.Silent[peer])),
				"start it, or mend the network (port 4001). If it is gone for good, other nodes take its places in these regions after replace_after; " +
					"if there is no other node, give the places up: voxeld peers forget " + peer,
			})
		}
	}
	for _, peer := range slices.Sorted(maps.Keys(s.Skews)) {
		skew := s.Skews[peer]
		if own := e.machineAhead(); own.Abs() > clockSkew && (skew+own).Abs() <= clockSkew {
			continue // it is this node's clock that is wrong
		}
		if skew.Abs() > clockSkew {
			seen.peers = append(seen.peers, Finding{
				"clock", peer, fmt.Sprintf("its machine's clock is %s this node's", aheadOf(skew)), "run a time service on both nodes",
			})
		}
	}
	return seen
}

func holds(regions []nodemsg.Region, peer string) bool {
	return slices.ContainsFunc(regions, func(info nodemsg.Region) bool { return actor.HasMember(info, peer) })
}

// outdatedNode is what is known of a node whose data was put back to an earlier state.
type outdatedNode struct {
	replicas int   // that are not used
	until    int64 // how far the earlier state reaches, in seconds since 1970; 0 if unknown
	last     bool  // one of them is the last copy of a region that answers
}

func (b *outdatedNode) finding(peer string) Finding {
	f := Finding{Kind: "rolled_back", Subject: peer, What: fmt.Sprintf("its data was put back to an earlier state%s, so %d of its replicas are not used", ofTime(b.until), b.replicas)}
	f.Do = "nothing: the other members replace them; keep those running until voxeld status --wait healthy succeeds"
	if b.last {
		f.Do = "start the nodes that do not answer: they have what it has forgotten. If they are gone for good, on this one " +
			"run: voxeld region recover --all-lost (it shows what would be lost, and asks first)"
	}
	return f
}

// ofTime returns a part of a sentence that says how far an earlier state reaches, or "" if that is unknown.
func ofTime(until int64) string {
	if until == 0 {
		return ""
	}
	return " of about " + time.Unix(until, 0).UTC().Format("2006-01-02 15:04:05 MST")
}

// examined is one region with the status of its members.
type examined struct {
	info     nodemsg.Region
	catalog  string // peer that leads the catalog; empty if unknown
	statuses integrity.StatusPoll
	leaving  func(peer string) bool // reports whether a node has announced that it stops
	limits   membership.Limits
	spare    bool // a node that is no member answers
	// Set by assess: it runs on some node; the members whose data was put back; the one of them whose old copy is all
	// that is left.
	awake      bool
	outdated   []string
	lastResort string
}

func (x *examined) status(peer string) nodemsg.RegionStatus {
	status, _ := x.statuses.Of(peer, x.info.ID)
	return status
}

// state returns the state of the region with these members, of which those live that are marked.
func (x *examined) state(members []membership.Member, lives map[string]bool) membership.State {
	return membership.Assess(members, func(peer string) membership.Liveness {
		switch {
		case lives[peer]:
			return membership.Alive
		case x.leaving(peer):
			return membership.Leaving
		}
		return membership.Silent
	}, false, x.limits)
}

// assess returns what is wrong with the region.
func (x *examined) assess() []Finding {
	var all []Finding
	name := integrity.Name(x.info)
	add := func(kind, what, do string) { all = append(all, Finding{kind, name, what, do}) }
	var leader nodemsg.RegionStatus
	newest, best := nodemsg.RegionStatus{}, ""
	newestOld, bestOld := nodemsg.RegionStatus{}, ""
	quarantined, failed := make(map[string][]string), make(map[string][]string) // nodes by reason
	lives, copies := make(map[string]bool), 0
	for _, m := range x.info.Members {
		status, answered := x.statuses.Of(m.Peer, x.info.ID)
		if status.Outdated {
			x.outdated = append(x.outdated, m.Peer)
			if status.State == nodemsg.StateFailed && (bestOld == "" || newerStatus(status, newestOld)) {
				newestOld, bestOld = status, m.Peer
			}
			continue
		}
		if !answered || status.State == nodemsg.StateNone && x.info.Epoch != actor.FirstEpoch {
			continue
		}
		switch status.State {
		case nodemsg.StateQuarantined:
			quarantined[status.Why] = append(quarantined[status.Why], m.Peer)
		case nodemsg.StateFailed:
			failed[status.Why] = append(failed[status.Why], m.Peer)
			continue
		case nodemsg.StateOpen:
			x.awake = true
			if status.Leader == m.Peer && status.Term >= leader.Term {
				leader = status
			}
		case nodemsg.StateNone, nodemsg.StateClosed: // a founding member opens it when a gateway comes
		}
		if status.State != nodemsg.StateNone {
			copies++
		}
		lives[m.Peer] = true
		if best == "" || newerStatus(status, newest) {
			newest, best = status, m.Peer
		}
	}
	for _, why := range slices.Sorted(maps.Keys(quarantined)) {
		add("quarantined", fmt.Sprintf("it failed repeatedly and is quarantined on %s: %s", strings.Join(quarantined[why], ", "), why),
			fmt.Sprintf("look for \"region isolated\" in the log; run another version of voxeld there, or try it again with: voxeld region release %s", name))
	}
	for _, why := range slices.Sorted(maps.Keys(failed)) {
		add("failed", fmt.Sprintf("it fails on %s: %s", strings.Join(failed[why], ", "), why),
			"it is opened again by itself; if that does not help look into that node's log")
	}
	state, total := x.state(membership.MembersOf(x.info), lives), len(x.info.Members)
	switch {
	case state == membership.NoQuorum:
		var what []string
		if n := total - len(lives) - len(x.outdated); n > 0 {
			what = append(what, fmt.Sprintf("%d of its %d members do not answer", n, total))
		}
		if n := len(x.outdated); n > 0 {
			what = append(what, fmt.Sprintf("%d of its %d members cannot be used because their data was put back to an earlier state", n, total))
		}
		if best == "" {
			x.lastResort = bestOld
		}
		add(state.String(), strings.Join(what, ", and ")+": nothing can be changed there", x.recovery(best, name))
	case leader.Region != 0:
		x.assessMembers(leader, add)
		if leader.Undivided != "" {
			add("undivided", fmt.Sprintf("its load is %.0f %% of a limit, and splits of it keep failing: %s", float64(leader.Load)/10, leader.Undivided),
				"see that all its members are up and healthy: nothing is split otherwise; it is tried again by itself, at least every 10 minutes")
		}
	case x.awake && len(quarantined) == 0:
		add("leaderless", "it is open and has no leader", "if this persists, check the logs of its members: "+peerList(x.info))
	case x.info.ID == world.CatalogID && len(quarantined) == 0 && len(failed) == 0:
		add("leaderless", "it has no leader: no new land can be founded", "check the logs of its members: "+peerList(x.info))
	case copies == 0 && x.info.Epoch == actor.FirstEpoch: // it was founded and never visited
	case state == membership.UnderReplicated && len(quarantined) == 0:
		add(state.String(), fmt.Sprintf("it hibernates, and %d of %d copies can be reached", len(lives), x.want(membership.MembersOf(x.info))),
			x.replacement(len(lives)))
	}
	return all
}

// replacement returns what becomes of the places of members that do not answer, of which so many are left that do.
func (x *examined) replacement(left int) string {
	switch {
	case x.spare:
		return "other nodes take the places of those that are silent, or whose disk hangs, for longer than replace_after"
	case left >= 3:
		return "those that are silent, or whose disk hangs, for longer than replace_after leave it, as no other node is there to take their places"
	}
	return "start those that do not answer, or add a node: no other one is there to take their places. Of one that is gone for good, voxeld peers forget NODE gives up the vote"
}

// newerStatus reports whether the copy with status a goes further than that with status b.
func newerStatus(a, b nodemsg.RegionStatus) bool {
	return cmp.Or(cmp.Compare(a.Recovered, b.Recovered), cmp.Compare(a.Last, b.Last)) > 0
}

// recovery returns what to do about a region without a majority. Best is the member with the newest copy, if one
// answers.
func (x *examined) recovery(best, name string) string {
	switch {
	case best != "":
		return fmt.Sprintf("start them again; if they are gone for good, run on %s: voxeld region recover %s", best, name)
	case x.lastResort != "":
		return fmt.Sprintf("start them again; if they are gone for good, look for a newer backup first. The last resort is the old copy%s on %s, "+
			"without all that was acknowledged after it: on that node, run: voxeld region recover %s", ofTime(x.status(x.lastResort).Until), x.lastResort, name)
	case x.info.ID == world.CatalogID:
		return "start them again; if they are gone for good no copy of the catalog is left: stop all nodes, and found the world again from a backup, " +
			"without what was built since: voxeld restore FILE --data-dir NEW; the others join with empty data directories"
	}
	return fmt.Sprintf("start them again; if they are gone for good no copy is left: on the node that leads the catalog (%s), put it back from a "+
		"backup with: voxeld region recover %s --from FILE, or found it anew as terrain with: voxeld region recover %s --anew",
		cmp.Or(x.catalog, "see voxeld status"), name, name)
}

// assessMembers assesses a region that has a leader by the leader's view of the members.
func (x *examined) assessMembers(leader nodemsg.RegionStatus, add func(kind, what, do string)) {
	var members []membership.Member
	var silent, answering []string // members of which nothing arrives at the leader, and those of them that answered a question
	lives, reachable := make(map[string]bool), 0
	for _, c := range leader.Members {
		members = append(members, membership.Member{Peer: c.Replica.Peer, Learner: c.Replica.Learner})
		status, answered := x.statuses.Of(c.Replica.Peer, x.info.ID)
		if !c.Replica.Learner && (!c.Silent || status.State == nodemsg.StateQuarantined) { // a quarantined copy is a finding of its own
			lives[c.Replica.Peer] = true
		}
		switch {
		case c.Replica.Learner:
		case !c.Silent:
			reachable++
		case answered:
			answering = append(answering, c.Replica.Peer)
			fallthrough
		default:
			silent = append(silent, c.Replica.Peer)
		}
		if c.Behind > actor.NearlyAll && !c.Silent {
			what := fmt.Sprintf("%s lacks %d entries of the log", c.Replica.Peer, c.Behind)
			if c.Behind == leader.Last { // how much it has is not known
				what = c.Replica.Peer + " has not confirmed any entry of the log to this leader"
			}
			add("lagging", what, "if it does not catch up, check that node's disk and network")
		}
		if answered && status.State != nodemsg.StateNone && !status.Outdated && status.Replica != 0 && status.Replica != c.Replica.ID {
			add("leftover", fmt.Sprintf("%s holds a copy from before the region was recovered", c.Replica.Peer), "it is dropped automatically; if not, restart that node")
		}
	}
	if x.state(members, lives) == membership.UnderReplicated {
		what, do := fmt.Sprintf("%d of %d copies are up to date and reachable", reachable, x.want(members)), x.replacement(reachable)
		if len(silent) > 0 {
			what += "; missing is that of " + strings.Join(silent, ", ")
		} else {
			do = "nothing: another copy is made by itself where there is a node for it; if this lasts, run voxeld doctor on the other nodes"
		}
		if len(answering) > 0 {
			see := fmt.Sprintf("run voxeld doctor on %s, which answers, but stores nothing here: its disk may be full or hang", strings.Join(answering, ", "))
			if len(answering) == len(silent) {
				do = see
			} else {
				do += "; and " + see
			}
		}
		add(membership.UnderReplicated.String(), what, do)
	}
}

// want returns how many of the region's members should be alive.
func (x *examined) want(members []membership.Member) int {
	voters := 0
	for _, m := range members {
		if !m.Learner {
			voters++
		}
	}
	return x.limits.Want(voters)
}

func peerList(info nodemsg.Region) string {
	peers := make([]string, len(info.Members))
	for i, m := range info.Members {
		peers[i] = m.Peer
	}
	return strings.Join(peers, ", ")
}
