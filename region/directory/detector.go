package directory

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/voxelpopuli/voxeld/internal/wallclock"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

const (
	// minAskEvery and maxAskEvery bound the longest interval between two questions to a node: an eighth of the time
	// after which a silent member is replaced, within these bounds. A node that has sent a question meanwhile is alive
	// and need not be asked.
	minAskEvery, maxAskEvery = 2500 * time.Millisecond, 7500 * time.Millisecond
	// maxStrangerEvery bounds the interval for a node that shares no group led by this one: a quarter of that time,
	// between minAskEvery and this. Such a node may be invited into a group, and is asked once more just before.
	maxStrangerEvery = 30 * time.Second
	// describedFor is how long a node's description stays valid.
	describedFor = 10 * time.Second
	// MaxQuestions bounds how many nodes are asked at the same time.
	MaxQuestions = 16
	// RoundEvery is how often Refresh is called.
	RoundEvery = 2 * time.Second
)

// Describe asks a node for its description. The answer's Member is not nil.
type Describe func(ctx context.Context, peer string) (nodemsg.Answer, error)

// DetectorOptions are what a Detector needs.
type DetectorOptions struct {
	Grace     time.Duration   // after which a silent member is replaced
	Describe  Describe        // asks a node
	Connected func() []string // nodes to which a connection is open: one whose connection was lost is asked at once
	// Excluded reports whether a node is excluded from the world: it is not alive, and gone at once. If nil, none is.
	Excluded func(peer string) bool
	// Clock is this node's clock, by which others' times are understood. If nil, they do not count.
	Clock *wallclock.Clock
}

// Detector tracks which other nodes are alive. Any goroutine may use it.
type Detector struct {
	DetectorOptions
	Every         time.Duration // interval between two questions to a node
	StrangerEvery time.Duration // the same for a node that shares no group led by this one

	mu struct {
		sync.Mutex
		nodes    map[string]*nodeState
		suspects map[string]time.Time // nodes that did not answer a request, and when; see Suspect
	}
}

// NewDetector returns a detector.
func NewDetector(o DetectorOptions) *Detector {
	d := &Detector{
		DetectorOptions: o,
		Every:           min(max(minAskEvery, o.Grace/8), maxAskEvery),
		StrangerEvery:   min(max(minAskEvery, o.Grace/4), maxStrangerEvery),
	}
	d.mu.nodes = make(map[string]*nodeState)
	d.mu.suspects = make(map[string]time.Time)
	return d
}

// nodeState is what is known of a node.
type nodeState struct {
	member       nodemsg.Member // as it described itself; zero if it never did
	lastHeard    time.Time      // last; or when it was first asked about
	asked        time.Time      // last
	every        time.Duration  // interval between two questions
	described    time.Time      // when it described itself last
	lives        bool           // it answered the last question, or has sent one since
	silentSince  time.Time      // when it did not answer for the first time since it answered last; zero while it answers
	connected    bool           // it was connected when Refresh was called last
	about        About          // from its last description
	leavingSince time.Time      // when it announced that it is about to stop; zero once it answers again
	forgotten    bool           // an operator says that it does not come back; false once it is heard from
	hungSince    time.Time      // since when it says that its disk does not answer; zero if it does
}

// About is what a node said in its last description, besides how to reach it.
type About struct {
	Failed        []uint64           // regions that failed there lately
	Quarantined   []uint64           // those of them that are quarantined there
	CatalogLeader string             // the catalog's leader as that node sees it, if it is a member of the catalog
	Skew          time.Duration      // how far its machine's clock is ahead of this one's; 0 if that is less than can be measured
	Time          *wallclock.Reading // the time of the world as it has it; nil if it did not say
	Version       int                // see nodemsg.Version
	Slow          bool               // its disk does not answer, or did not lately: it should not lead
	Hung          bool               // its disk does not answer now: its votes are missing
	NotReady      string             // why it should not be sent players; empty if it may
}

// leavingTimeout is how long a leaving node may take to stop. Afterwards its leaving flag is ignored.
const leavingTimeout = time.Minute

// recheckEvery is the shortest interval of questions to a node that announced that it leaves and still sends messages.
const recheckEvery = 250 * time.Millisecond

// MarkLeaving records that a node is about to stop: it does not count as alive until it answers again.
func (d *Detector) MarkLeaving(peer string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.state(peer)
	p.lives, p.leavingSince = false, time.Now()
}

// ShouldRecheck reports whether to ask a node that sent a message whether it is back, because it had announced that it
// leaves. The question is then counted as asked.
func (d *Detector) ShouldRecheck(peer string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.mu.nodes[peer]
	if p == nil || p.leavingSince.IsZero() || time.Since(p.asked) < recheckEvery {
		return false
	}
	p.asked = time.Now()
	return true
}

// Leaving reports whether the node is about to stop.
func (d *Detector) Leaving(peer string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.mu.nodes[peer]
	return p != nil && !p.leavingSince.IsZero() && time.Since(p.leavingSince) < leavingTimeout
}

// freshFor returns how long the node counts as alive after it was heard from: nodes are asked in rounds.
func (p *nodeState) freshFor() time.Duration { return 2*p.every + RoundEvery }

// NoteQuestion records that a node has asked for this node's description, which proves it alive. It counts only if the
// node described itself lately. A node that leaves, or did not answer the last question, must answer first; one that
// did not answer is asked in the next round.
func (d *Detector) NoteQuestion(peer string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.mu.nodes[peer]
	if p != nil {
		p.forgotten = false
	}
	switch {
	case p == nil || !p.leavingSince.IsZero():
	case !p.lives:
		p.asked = time.Time{}
	case time.Since(p.described) < describedFor:
		p.lastHeard = time.Now()
	}
}

// state returns the record of a node. The caller holds the lock.
func (d *Detector) state(peer string) *nodeState {
	p := d.mu.nodes[peer]
	if p == nil {
		p = &nodeState{lastHeard: time.Now(), every: d.Every}
		d.mu.nodes[peer] = p
	}
	return p
}

// Watched maps nodes to the interval at which each is asked.
type Watched map[string]time.Duration

// Add watches a node at the shortest of the requested intervals.
func (w Watched) Add(peer string, every time.Duration) {
	if now, there := w[peer]; !there || every < now {
		w[peer] = every
	}
}

// Refresh asks those peers for their description that are due.
func (d *Detector) Refresh(ctx context.Context, peers Watched) {
	var questions errgroup.Group
	questions.SetLimit(MaxQuestions)
	connected := make(map[string]bool)
	for _, peer := range d.Connected() {
		connected[peer] = true
	}
	for peer, every := range peers {
		lost := d.lost(peer, connected[peer])
		if !d.due(peer, every) && !lost {
			continue
		}
		questions.Go(func() error {
			d.Check(ctx, peer) //nolint:errcheck // the result is recorded
			return nil
		})
	}
	questions.Wait() //nolint:errcheck // always nil
}

// CheckLiving asks all nodes that are alive for their description now.
func (d *Detector) CheckLiving(ctx context.Context) {
	var questions errgroup.Group
	questions.SetLimit(MaxQuestions)
	for peer, n := range d.Nodes() {
		if n.Answers {
			questions.Go(func() error {
				d.Check(ctx, peer) //nolint:errcheck // the result is recorded
				return nil
			})
		}
	}
	questions.Wait() //nolint:errcheck // always nil
}

// lost records whether the peer is connected, and reports whether its connection has been lost since the last call.
func (d *Detector) lost(peer string, connected bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.state(peer)
	was := p.connected
	p.connected = connected
	return was && !connected
}

// due sets the peer's interval and reports whether the peer is to be asked now.
func (d *Detector) due(peer string, every time.Duration) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.state(peer)
	p.every = every
	if !p.lives {
		every = minAskEvery // so that one slow answer does not count for long
	}
	if time.Since(p.asked) < every || p.lives && time.Since(p.lastHeard) < every && time.Since(p.described) < describedFor {
		return false
	}
	p.asked = time.Now()
	return true
}

// Check asks a node for its description and records the result.
func (d *Detector) Check(ctx context.Context, peer string) (nodemsg.Member, error) {
	asked := time.Now()
	answer, err := d.Describe(ctx, peer)
	if err != nil {
		if ctx.Err() == nil {
			d.note(peer, asked, nodemsg.Member{}, false)
		}
		return nodemsg.Member{}, err
	}
	took := time.Since(asked)
	about := About{
		Failed: answer.Failed, Quarantined: answer.Quarantined, CatalogLeader: answer.CatalogLeader, Skew: Skew(answer.Clock, asked, took), Version: answer.Version,
		Slow: answer.Slow, Hung: answer.Hung, NotReady: answer.NotReady,
	}
	if answer.Time != 0 && d.Clock != nil {
		reading := d.Clock.Heard(time.UnixMilli(answer.Time), time.Duration(answer.TimeAge)*time.Second, asked, took)
		about.Time = &reading
	}
	d.noteAbout(peer, about)
	d.note(peer, asked, *answer.Member, true)
	return *answer.Member, nil
}

// Skew returns how far a node's clock is ahead of this one's, given what it said, in Unix milliseconds, in answer to a
// question. It returns 0 if the answer took too long to measure it.
func Skew(clock int64, asked time.Time, took time.Duration) time.Duration {
	if clock == 0 {
		return 0
	}
	skew := time.UnixMilli(clock).Sub(asked.Add(took / 2))
	if skew.Abs() <= took {
		return 0
	}
	return skew
}

func (d *Detector) noteAbout(peer string, about About) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.state(peer)
	switch p.about = about; {
	case !about.Hung:
		p.hungSince = time.Time{}
	case p.hungSince.IsZero():
		p.hungSince = time.Now()
	}
}

// Version returns the version of the messages that a node understood when it described itself last; known is false if
// it never did.
func (d *Detector) Version(peer string) (version int, known bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.mu.nodes[peer]
	if p == nil || p.described.IsZero() {
		return 0, false
	}
	return p.about.Version, true
}

// Older lists the connected nodes that understand less than a version of the messages, as they described themselves
// last. Whoever has not described themselves yet, or was revoked, is not among them.
func (d *Detector) Older(version int) []string {
	return slices.DeleteFunc(d.Connected(), func(peer string) bool {
		at, known := d.Version(peer)
		return !known || at >= version || d.excluded(peer)
	})
}

// note records the answer to a question, or that there was none, unless newer information is known.
func (d *Detector) note(peer string, asked time.Time, member nodemsg.Member, lives bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.state(peer)
	if p.leavingSince.After(asked) || !lives && p.described.After(asked) {
		return
	}
	if p.lives = lives; lives {
		p.lastHeard, p.member, p.leavingSince, p.silentSince = time.Now(), member, time.Time{}, time.Time{}
		p.described, p.forgotten = p.lastHeard, false
	} else if p.silentSince.IsZero() {
		p.silentSince = time.Now()
	}
}

// Alive returns the node's description if it has answered lately, and its disk does.
func (d *Detector) Alive(peer string) (nodemsg.Member, bool) {
	if d.excluded(peer) {
		return nodemsg.Member{}, false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.mu.nodes[peer]
	if p == nil || !p.lives || !p.hungSince.IsZero() || time.Since(p.lastHeard) > p.freshFor() {
		return nodemsg.Member{}, false
	}
	return p.member, true
}

// Known returns the node's last description, also if it is not alive.
func (d *Detector) Known(peer string) (nodemsg.Member, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p := d.mu.nodes[peer]; p != nil && !p.described.IsZero() {
		return p.member, true
	}
	return nodemsg.Member{}, false
}

// About returns what a node said in its last description, and when; zero if it never described itself.
func (d *Detector) About(peer string) (About, time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p := d.mu.nodes[peer]; p != nil {
		return p.about, p.described
	}
	return About{}, time.Time{}
}

// Liveness is what is known of a node.
type Liveness struct {
	Answers  bool      // it answers, as far as is known
	Answered bool      // it has answered at some time
	Leaving  bool      // it has announced that it is about to stop, and has not come back yet
	Hung     bool      // its disk has not answered for longer than the grace period
	Since    time.Time // when it did not answer for the first time; zero if it answers, or was not asked yet
	About    About
}

// Nodes returns what is known of all nodes that have been asked, or announced that they stop.
func (d *Detector) Nodes() map[string]Liveness {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := make(map[string]Liveness, len(d.mu.nodes))
	for peer, p := range d.mu.nodes {
		all[peer] = Liveness{
			Answers: p.lives && time.Since(p.lastHeard) <= p.freshFor(), Answered: !p.described.IsZero(),
			Leaving: !p.leavingSince.IsZero() && time.Since(p.leavingSince) < leavingTimeout,
			Hung:    d.hung(p),
			Since:   p.silentSince, About: p.about,
		}
	}
	return all
}

func (d *Detector) excluded(peer string) bool { return d.Excluded != nil && d.Excluded(peer) }

// MarkForgotten records that a node does not come back, as an operator says. That holds until it is heard from.
func (d *Detector) MarkForgotten(peer string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.state(peer)
	p.forgotten, p.lives = true, false
}

// Lost reports whether the node does not come back as it is: it is excluded, or forgotten.
func (d *Detector) Lost(peer string) bool {
	if d.excluded(peer) {
		return true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.mu.nodes[peer]
	return p != nil && p.forgotten
}

// Gone reports whether nothing was heard from the node, or its disk did not answer, for longer than the grace period,
// or it is lost.
func (d *Detector) Gone(peer string) bool {
	if d.excluded(peer) {
		return true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.mu.nodes[peer]
	return p != nil && d.gone(p)
}

// gone is Gone of a node that is not excluded. The caller holds the lock.
func (d *Detector) gone(p *nodeState) bool {
	return p.forgotten || time.Since(p.lastHeard) > d.Grace || d.hung(p)
}

// hung reports whether the node's disk has not answered for longer than the grace period. The caller holds the lock.
func (d *Detector) hung(p *nodeState) bool {
	return !p.hungSince.IsZero() && time.Since(p.hungSince) > d.Grace
}

// Forget drops the nodes that were not asked about for ten grace periods, and have not announced within leavingTimeout
// that they leave.
func (d *Detector) Forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for peer, p := range d.mu.nodes {
		if time.Since(p.asked) > 10*d.Grace && time.Since(p.leavingSince) > leavingTimeout {
			delete(d.mu.nodes, peer)
		}
	}
}

// Summary returns a text that lists which nodes are known, alive and gone.
func (d *Detector) Summary() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all strings.Builder
	for _, peer := range slices.Sorted(maps.Keys(d.mu.nodes)) {
		p := d.mu.nodes[peer]
		fmt.Fprintf(&all, "%s %t %t\n", peer, p.lives, d.excluded(peer) || d.gone(p))
	}
	return all.String()
}

// LastHeard returns when the node was last heard from, or first asked about; zero if it was never asked about.
func (d *Detector) LastHeard(peer string) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p := d.mu.nodes[peer]; p != nil {
		return p.lastHeard
	}
	return time.Time{}
}

// unresponsiveFor is how long a node that did not answer a request is tried after the others.
const unresponsiveFor = 5 * time.Second

// Suspect records that a node did not answer a request. It is tried after the others for some time.
func (d *Detector) Suspect(peer string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for old, since := range d.mu.suspects {
		if time.Since(since) > unresponsiveFor {
			delete(d.mu.suspects, old)
		}
	}
	d.mu.suspects[peer] = time.Now()
}

// Trust records that a node answered a request.
func (d *Detector) Trust(peer string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.mu.suspects, peer)
}

// Suspected reports whether the node did not answer a request lately.
func (d *Detector) Suspected(peer string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.suspected(peer)
}

// suspected is Suspected for callers that hold the lock.
func (d *Detector) suspected(peer string) bool {
	since, found := d.mu.suspects[peer]
	return found && time.Since(since) <= unresponsiveFor
}

// First returns the member of a region to try next: the leader, then the other members, and last the suspected ones. It
// returns "" when all have been tried.
func (d *Detector) First(info nodemsg.Region, tried map[string]bool) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	last := ""
	for _, m := range append([]nodemsg.Member{{Peer: info.Leader}}, info.Members...) {
		switch {
		case m.Peer == "" || tried[m.Peer]:
		case !d.suspected(m.Peer):
			return m.Peer
		case last == "":
			last = m.Peer
		}
	}
	return last
}
