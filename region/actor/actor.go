// Package actor runs one raft group on one node: the land of a region (Land), or the catalog (Catalog). Both are an
// Actor, which receives what the group commits, tracks who leads and who the members are, and isolates failures.
//
// Land, Catalog and Actor are what all goroutines have of it, and may call at any time. Its state (land, catalog and
// core, with all that they point to) is only its own goroutine's, which calls Run. Others reach it by functions that
// they put into its mailbox: those are passed the state, of other packages a Tx (docs/adr/0107). Values go in as Options,
// events come out through their functions, which never block and must not call back into the actor except by its mailbox.
//
// A hub serves the gateways: it has what each watches, and what is sent to it. A Subscription is a gateway's end of a
// link within one process. A Mailbox passes values to the goroutine that owns some state, a budget finds regions that
// use more than their share of a core, and a Fault is why a region is isolated.
package actor

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// ErrNotHere is returned if this node does not lead the region. The caller's route is outdated.
var ErrNotHere = errors.New("the region is not led here")

// Group is the replication of an actor; implemented by *replica.Group.
type Group interface {
	Propose(entry []byte) error
	Ready() <-chan struct{}
	Dequeue() []replica.Delivery
	ReportApplied(index uint64, writes []kv.Write)
	Campaign()
	Close() error
}

// Options are what every actor needs. The functions are called in the actor's goroutine and must not block.
type Options struct {
	Self    nodemsg.Member
	Logger  *slog.Logger
	Metrics *Metrics
	// Start starts a task beside the actor. It reports false if the node is stopping; then the actor ends soon, too.
	Start func(task func(context.Context)) bool
	// Describe asks a member for its description.
	Describe func(ctx context.Context, peer string) (nodemsg.Member, error)
	// Changed is called when this node becomes the leader, or the members change.
	Changed func(nodemsg.Region)
}

// machine is the state that a group replicates.
type machine interface {
	apply(replica.Committed)
	lead(d replica.Leadership, was bool) // was: this node led before
	membersChanged()
	restore(index uint64) error // a snapshot has replaced what is stored
	salvage()                   // the actor is isolated, and no entry was applied in part
	end(why string)             // the actor ends: nothing is answered any more; after a fault it must not touch the replicated state
}

// Actor is what Land and Catalog have in common.
type Actor struct {
	id      uint64
	mailbox *Mailbox[func()]
	done    chan struct{}  // closed by Finish
	raft    *replica.Group // nil in tests with another Group
	core    *core          // for enqueue and what Run calls
}

// core is the state that land and catalog have in common.
type core struct {
	*Actor
	Options
	machine machine
	group   Group // raft, or another Group

	info        nodemsg.Region // its ID and Cell never change
	leader      string         // as the group last reported; empty while unknown
	leading     bool
	stalled     error // why storage refuses writes; nil while it does not
	members     []replica.Member
	roster      map[string]nodemsg.Member // those members whose addresses are known
	paused      bool                      // nothing is applied until resume
	held        []replica.Delivery        // what arrived during the pause
	applying    uint64                    // log index of the entry that is being applied, 0 between entries
	failure     error                     // why the group failed; nil while it did not
	fault       *Fault                    // why the actor is isolated; nothing is applied any more
	removed     bool                      // this node is no longer a member
	discarded   bool                      // with removed: other code deletes what is stored
	closeReason string                    // why the actor must end now; empty while it need not
	afterEnd    func()                    // called when it has ended, before it can be opened again
}

// newCore returns the state of an actor that is to be run. Its owner sets machine.
func newCore(o Options, info nodemsg.Region, g Group) *core {
	a := &Actor{id: info.ID, mailbox: NewMailbox[func()](0), done: make(chan struct{})}
	a.raft, _ = g.(*replica.Group)
	a.core = &core{Actor: a, Options: o, group: g, info: info, roster: map[string]nodemsg.Member{o.Self.Peer: o.Self}}
	return a.core
}

// ID returns the id of the actor's region.
func (a *Actor) ID() uint64 { return a.id }

// Raft returns the actor's group.
func (a *Actor) Raft() *replica.Group { return a.raft }

// Done returns a channel that is closed when the actor has ended and its owner has forgotten it.
func (a *Actor) Done() <-chan struct{} { return a.done }

// Finish closes Done. The owner calls it after Run has returned and the actor can be opened again.
func (a *Actor) Finish() { close(a.done) }

// enqueue has f called in the actor's goroutine. It reports false if the actor has ended.
func (a *Actor) enqueue(f func(*core)) bool { return a.mailbox.Put(func() { f(a.core) }) }

// Close ends the actor for the reason.
func (a *Actor) Close(why string) bool { return a.enqueue(func(c *core) { c.closeReason = why }) }

// CloseThen ends the actor, and calls then before it can be opened again.
func (a *Actor) CloseThen(why string, then func()) bool {
	return a.enqueue(func(c *core) { c.closeReason, c.afterEnd = why, then })
}

// Remove ends the actor because this node is no longer a member. With discard, other code deletes what is stored.
func (a *Actor) Remove(discard bool) bool {
	return a.enqueue(func(c *core) { c.removed, c.discarded = true, discard })
}

// Ask has question called in the actor's goroutine and returns its answer: enqueue is the actor's. The error is
// ErrNotHere if the actor has ended.
func Ask[State, Answer any](ctx context.Context, a *Actor, enqueue func(func(State)) bool, question func(State) Answer) (Answer, error) {
	answer := make(chan Answer, 1)
	return await(ctx, a, answer, enqueue(func(s State) { answer <- question(s) }))
}

// await is Ask for answers that may come after the question has returned, or never: the question was enqueued, and
// answers on the channel, which must have room for it.
func await[A any](ctx context.Context, a *Actor, answer <-chan A, enqueued bool) (A, error) {
	var none A
	if !enqueued {
		return none, ErrNotHere
	}
	select {
	case got := <-answer:
		return got, nil
	case <-a.done:
		return none, ErrNotHere
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// Info returns the region as this member has it, with everything applied that is committed.
func (a *Actor) Info(ctx context.Context) (nodemsg.Region, error) {
	return Ask(ctx, a, a.enqueue, func(c *core) nodemsg.Region { c.deliver(); return c.info })
}

// runInbox runs the closures that others have queued.
func (a *core) runInbox() {
	inputs, _ := a.mailbox.Drain()
	for _, input := range inputs {
		input()
	}
}

// deliver applies what the group has committed.
func (a *core) deliver() {
	if a.fault != nil || a.paused {
		return // after a fault: the entry may have been applied in part
	}
	all := append(a.held, a.group.Dequeue()...)
	a.held = nil
	for i, d := range all {
		if a.failure != nil {
			return // the state in memory is not the one that the next entries apply to
		}
		if a.paused {
			a.held = all[i:]
			return
		}
		switch d := d.(type) {
		case replica.Committed:
			a.machine.apply(d)
		case replica.Leadership:
			was := a.leading
			a.leader, a.info.Leader, a.info.Term = d.Leader, d.Leader, d.Term
			a.leading, a.stalled = d.Self, d.Cause
			a.machine.lead(d, was)
		case replica.Configured:
			a.configured(d)
		case replica.Restored:
			if err := a.machine.restore(d.Index); err != nil {
				a.fail(err)
			}
		case replica.Removed:
			a.removed = true
		case replica.Failed:
			a.fail(d.Err)
		}
	}
}

// resume continues after a pause.
func (a *core) resume() {
	a.paused = false
	a.deliver()
}

// fail records that the group cannot continue here.
func (a *core) fail(err error) {
	a.Logger.Error("region failed", "region", a.info.ID, "cell", a.info.Cell, "error", err)
	a.failure, a.fault = err, groupFault(err)
}

// endReason returns why the actor must end now, or "".
func (a *core) endReason() string {
	switch {
	case a.removed:
		return "the region has moved to other nodes"
	case a.closeReason != "":
		return a.closeReason
	case a.failure != nil:
		return "the region's storage failed"
	}
	return ""
}

// end closes the group and answers everybody who waits. Later commands find the mailbox closed.
func (a *core) end(why string) {
	a.mailbox.Close()
	a.runInbox()
	a.machine.end(why)
	if err := a.group.Close(); err != nil {
		a.Logger.Error("region not closed cleanly", "region", a.info.ID, "error", err)
	}
	a.Logger.Debug("region unloaded", "region", a.info.ID, "cell", a.info.Cell, "why", why)
}

// Ended is how an actor has ended.
type Ended struct {
	Info      nodemsg.Region
	Fault     *Fault // nil if it ended regularly
	Led       bool   // with Fault: this node led
	Removed   bool   // this node is no longer a member
	Discarded bool   // with Removed: other code deletes what is stored
	Reopen    bool   // it was closed, and may be opened again
	Then      func() // from CloseThen; nil if there is none
	// Hibernated is set if the region was replicated and idle, and its leader had all members close it.
	Hibernated bool

	core *core
}

// run runs until the actor ends.
func (a *core) run(ctx context.Context, until func(context.Context)) Ended {
	caught := Catch(func() { until(ctx) })
	if caught != nil {
		caught.Entry = a.applying
		a.fault = caught // nothing that is still queued is applied from here on
	}
	if a.fault != nil {
		a.mailbox.Close()
	}
	if a.fault != nil && a.applying == 0 && a.fault.Kind != Refused {
		if worse := Catch(a.machine.salvage); worse != nil {
			a.Logger.Debug("state of a failed region not stored", "region", a.info.ID, "error", worse)
		}
	}
	return a.ended()
}

func (a *core) ended() Ended {
	return Ended{Info: a.info, Fault: a.fault, Led: a.leading, Removed: a.removed, Discarded: a.discarded, Reopen: a.closeReason != "", Then: a.afterEnd, core: a}
}

// DismissAll answers everybody who waits for an actor that has failed, and closes the group. It returns how the actor
// has ended, because a command that was still queued may have removed it.
func (e Ended) DismissAll(why string) Ended {
	a := e.core
	a.leader, a.leading = a.raft.Status().Leader, false
	a.dismissAll(why)
	if err := a.group.Close(); err != nil {
		a.Logger.Error("region not closed cleanly", "region", a.info.ID, "error", err)
	}
	return a.ended()
}

// dismissAll answers everybody who waits, without touching the replicated state. Queued commands still run, because
// gateways that were just coming in are among them; each may fail by itself.
func (a *core) dismissAll(why string) {
	inputs, _ := a.mailbox.Drain()
	for _, input := range inputs {
		if caught := Catch(input); caught != nil {
			a.Logger.Debug("queued command of a failed region failed", "region", a.info.ID, "error", caught)
		}
	}
	a.machine.end(why)
}

// isOnlyMember reports whether the group has no other members.
func (a *core) isOnlyMember() bool { return len(a.members) <= 1 }

// hung reports whether this node's disk does not answer, so that another member may lead the group and this node would
// not notice.
func (a *core) hung() bool { return a.raft != nil && !a.isOnlyMember() && a.raft.Hung() }

// ledElsewhere reports whether another member leads.
func (a *core) ledElsewhere() bool { return a.leader != "" && a.leader != a.Self.Peer }

// configured applies a new configuration of the group.
func (a *core) configured(c replica.Configured) {
	a.applyMembers(c)
	if !a.member(a.Self.Peer) {
		return // Removed follows, and then nothing of the region may be stored any more
	}
	a.Changed(a.info)
	for _, m := range c.Members {
		if _, known := a.roster[m.Peer]; !known {
			a.resolve(m.Peer)
		}
	}
}

// resolve asks a member for its description. A member that does not answer is asked again when this node leads the
// region.
func (a *core) resolve(peer string) {
	a.Start(func(ctx context.Context) {
		member, err := a.Describe(ctx, peer)
		if err != nil {
			a.Logger.Debug("member not known", "region", a.info.ID, "peer", peer, "error", err)
			return
		}
		a.AddMember(member)
	})
}

// applyMembers records the group's members.
func (a *core) applyMembers(c replica.Configured) {
	a.members = c.Members
	a.info.Epoch = EpochOf(c)
	a.updateMembers()
	a.machine.membersChanged()
}

// updateMembers copies the group's members to the region, as far as their addresses are known. Learners are included: a
// member must be known before it can lead.
func (a *core) updateMembers() {
	for _, m := range a.info.Members {
		if m.Peer != a.Self.Peer { // its address may have changed since that was stored
			a.roster[m.Peer] = m
		}
	}
	members := make([]nodemsg.Member, 0, len(a.members))
	for _, m := range a.members {
		if known, ok := a.roster[m.Peer]; ok {
			known.Replica, known.Learner = m.ID, m.Learner
			members = append(members, known)
		}
	}
	if len(members) > 0 {
		a.info.Members = members
	}
}

// AddMember records the address of a node that is or becomes a member.
func (a *Actor) AddMember(m nodemsg.Member) {
	a.enqueue(func(c *core) {
		before := len(c.info.Members)
		c.roster[m.Peer] = m
		c.updateMembers()
		if len(c.info.Members) != before {
			c.Changed(c.info)
		}
	})
}

// member reports whether the peer is a member of the group.
func (a *core) member(peer string) bool {
	return slices.ContainsFunc(a.members, func(m replica.Member) bool { return m.Peer == peer })
}

// hasSubstitute reports whether another member could lead.
func (a *core) hasSubstitute() bool {
	if a.raft == nil {
		return false
	}
	status := a.raft.Status()
	return slices.ContainsFunc(status.Members, func(m replica.Progress) bool {
		return m.Peer != a.Self.Peer && !m.Learner && m.Active && m.Match+NearlyAll >= status.Last
	})
}

// groupFault returns the fault that a group's error stands for, or nil if the error is not a failure.
func groupFault(err error) *Fault {
	switch {
	case errors.Is(err, replica.ErrStopped), errors.Is(err, replica.ErrClosed):
		return nil
	case errors.Is(err, replica.ErrStorage):
		return &Fault{Kind: Refused, Cause: err}
	default:
		return &Fault{Kind: Broken, Cause: err}
	}
}
