package integrity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/voxelpopuli/voxeld/internal/background"
	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/copies"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/region/placement"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// Executor carries out what package copies decides about the copies on this node: those that are opened are admitted
// (Admit), and Run replaces, drops and reports the others. Any goroutine may call its methods.
type Executor struct {
	Node
	ExecutorOptions
}

// ExecutorOptions are what an Executor needs besides. All fields are required.
type ExecutorOptions struct {
	Facts      *Facts
	Supervisor *placement.Supervisor
	Judge      *Judge
	Records    directory.Records
	// Replaced is called when the copy of a group is replaced, or used after all: it is not of an earlier state any
	// more.
	Replaced func(group uint64) error
	// ReopenCatalog opens the catalog again, whose copy is used after all, and CatalogReleased when it may be opened
	// after failures.
	ReopenCatalog   func(ctx context.Context) error
	CatalogReleased func()
}

// decideEvery is how often the copies that are not in order are decided about.
const decideEvery = 5 * time.Second

// Run carries out the decisions until ctx ends.
func (e *Executor) Run(ctx context.Context) {
	every := time.NewTicker(decideEvery)
	defer every.Stop()
	unled := make(map[uint64]int)
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		e.noteForgetful()
		unled = e.askUnled(ctx, unled)
		for _, c := range e.Facts.unsound() {
			err := e.carryOut(ctx, c)
			if reason := e.Facts.Decide(c.info.ID).Reason.String(); err != nil && ctx.Err() == nil && reason != c.logged {
				e.Facts.with(c.info.ID, func(c *copyFacts) { c.logged = reason })
				e.Logger.Error("unusable copy not replaced yet", "region", c.info.ID, "cell", Name(c.info), "reason", reason, "error", err)
			}
		}
	}
}

// carryOut carries out what is decided about a copy that must not be used.
func (e *Executor) carryOut(ctx context.Context, c copyFacts) error {
	ctx, cancel := context.WithTimeout(ctx, replaceTime)
	defer cancel()
	id := c.info.ID
	if _, err := e.Regions.Member(id); errors.Is(err, actor.ErrNotHere) && c.Stored != copies.Missing {
		e.Facts.Clear(id) // it was deleted meanwhile
		return nil
	}
	if c.Members != copies.Others { // by now there may be
		known, err := e.newest(ctx, c.info)
		e.Facts.with(id, func(c *copyFacts) {
			switch {
			case err != nil:
				c.Members = copies.Unknown
			case len(known.Members) == 1 && known.Members[0].Peer == e.Self.Peer:
				c.Members = copies.Alone
			default:
				c.Members = copies.Others
			}
		})
	}
	d := e.Facts.Decide(id)
	if s, ok := e.Storage.(structured); ok && d.Action == copies.Replace {
		err := s.CheckStructure()
		if err != nil && !IsDamage(err) {
			return fmt.Errorf("%v: the node's file cannot be checked now: %w", d.Reason, err)
		}
		e.Facts.with(id, func(c *copyFacts) { c.fileDamaged = err != nil })
		d = e.Facts.Decide(id)
	}
	switch {
	case d.Reason == copies.RolledBackAlone:
		release, claimed := e.Facts.claim(id)
		if !claimed {
			return errors.New("an operator is about to use it")
		}
		defer release()
		return e.useRolledBack(ctx, c.info)
	case d.Action == copies.Drop:
		return nil // whoever has found out drops it
	case d.Action != copies.Replace:
		return fmt.Errorf("%v: %s", d.Reason, toDo(d.Reason, c.info))
	}
	if err := e.Replace(ctx, c.info); err != nil {
		return err
	}
	e.Facts.Clear(id)
	e.Facts.with(id, func(c *copyFacts) { c.replaced = append(c.replaced, time.Now()) })
	e.Metrics.discarded.WithLabelValues(d.Reason.String()).Inc()
	e.Logger.Warn("unusable copy discarded; waiting for a new one from the other members", "region", id, "cell", Name(c.info), "reason", d.Reason.String())
	return nil
}

// toDo returns what an operator does about a decision.
func toDo(r copies.Reason, info nodemsg.Region) string {
	if r == copies.OnlyCopy && info.ID == world.CatalogID {
		return "found the world again from a backup: voxeld restore FILE --data-dir NEW"
	}
	return strings.ReplaceAll(r.Do(), "CELL", Name(info))
}

// structured is a Storage that can check whether a new copy in it would be damaged as well.
type structured interface{ CheckStructure() error }

// useRolledBack uses a copy of an earlier state after all, because nobody has what it has forgotten. The caller has
// claimed it.
func (e *Executor) useRolledBack(ctx context.Context, info nodemsg.Region) error {
	if err := e.Replaced(info.ID); err != nil {
		return err
	}
	e.Facts.Clear(info.ID)
	e.Logger.Warn("the data of this node was put back to an earlier state, and no newer copy of the region is left: what was built "+
		"since then is lost", "region", info.ID, "cell", Name(info), "reason", copies.RolledBackAlone.String())
	if info.ID == world.CatalogID { // regions are opened when they are needed
		return e.ReopenCatalog(ctx)
	}
	return nil
}

// Note records what is wrong with what is stored of a region.
func (e *Executor) Note(info nodemsg.Region, stored copies.Stored, cause error) {
	if e.Facts.note(info, stored, cause) {
		e.Logger.Error("this node's copy of a region is not used", "region", info.ID, "cell", Name(info), "members", len(info.Members),
			"reason", e.Facts.Decide(info.ID).Reason.String(), "error", cause)
	}
}

// DamagedLog handles the finding of a scrub that an open group's log or vote cannot be read from disk. The group still
// has both in memory, so it continues until another replica has replaced this one.
func (e *Executor) DamagedLog(ctx context.Context, l *actor.Land, why error) {
	if info, err := l.Info(ctx); err == nil {
		e.Note(info, copies.Unreadable, why)
	}
}

// errForgetful is why the copy of an open group is replaced that lacks entries which it has acknowledged.
var errForgetful = errors.New("the leader counts on entries that this copy has acknowledged, and lacks: the data of this node was put back to an earlier state")

// noteForgetful notes the open copies that have forgotten something though no peer has noticed: those that lack
// entries. The leader removes such a replica only once others have all that it has.
func (e *Executor) noteForgetful() {
	for _, g := range e.Regions.Groups() {
		if !g.Raft.Status().Lost {
			continue
		}
		if info, err := e.Regions.Member(g.ID); err == nil {
			e.Note(info, copies.Lacking, errForgetful)
		}
	}
}

// Admit returns why a region must not be opened now, or nil. It asks the other members whether the group continues
// without the copy here, which then is dropped, each time until most have answered: the node may have left the group
// while it was away. If nobody answers, the copy is used. The only copy of a region that has just failed is waited for.
func (e *Executor) Admit(ctx context.Context, info nodemsg.Region) error {
	err := e.Facts.Err(info.ID)
	if Refused(err, copies.Failure) && len(info.Members) == 1 {
		select {
		case <-time.After(time.Until(e.Facts.Until(info.ID))):
			err = e.Facts.Err(info.ID)
		case <-ctx.Done():
		}
	}
	if err != nil {
		if !Refused(err, copies.Failure) {
			e.logClosed(info, err)
		}
		return err
	}
	if e.Facts.look(info.ID).Peers == copies.Agree {
		return nil
	}
	e.askPeers(ctx, e.Judge, info.ID)
	switch {
	case e.Facts.Decide(info.ID).Action == copies.Drop:
		return cmp.Or(e.drop(ctx, info, nil), fmt.Errorf("%w: %w", errSuperseded, actor.ErrNotHere))
	case e.Facts.look(info.ID).Peers == copies.Claim:
		e.Logger.Warn("a member says that the region continues without this node; nothing confirms it, and the copy is kept", "region", info.ID, "cell", Name(info))
	}
	return nil
}

// AdmitCatalog is Admit for the catalog, which is open. If the error is not nil, the copy is to be dropped.
func (e *Executor) AdmitCatalog(ctx context.Context) error {
	e.askPeers(ctx, e.Judge, world.CatalogID)
	if e.Facts.Decide(world.CatalogID).Action != copies.Drop {
		return nil
	}
	e.Facts.with(world.CatalogID, func(c *copyFacts) { c.Peers = copies.Unasked }) // of the next copy
	return errSuperseded
}

// Fail records a failure of a region on this node.
func (e *Executor) Fail(info nodemsg.Region, f *actor.Fault) {
	e.Metrics.isolated.WithLabelValues(f.Kind.String()).Inc()
	d := e.Facts.fail(info.ID, f)
	e.Logger.Error("region isolated", "region", info.ID, "cell", Name(info), "reason", d.Reason.String(), "kind", f.Kind.String(), "error", f, "stack", string(f.Stack))
	if d.Reason == copies.Quarantined {
		e.Logger.Error("region quarantined: closed on this node until voxeld region release", "region", info.ID, "cell", Name(info), "why", f.Error())
	}
}

// NotOpened records that a region could not be opened. A copy that cannot be read is replaced, which does not count as
// a failure; a panic does.
func (e *Executor) NotOpened(info nodemsg.Region, err error) {
	var caught *actor.Fault
	switch {
	case IsDamage(err):
		e.Note(info, copies.Unreadable, err)
		return
	case errors.As(err, &caught):
		e.Fail(info, caught)
	case errors.Is(err, actor.ErrNotHere), errors.Is(err, background.ErrStopping), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, replica.ErrOpen), errors.Is(err, replica.ErrStopped):
		return
	}
	e.Facts.with(info.ID, func(c *copyFacts) { c.openError = err })
	e.logClosed(info, err)
}

// logEvery is the shortest interval at which it is logged that a region cannot be opened.
const logEvery = time.Minute

// logClosed logs that a region cannot be opened on this node, and what to do.
func (e *Executor) logClosed(info nodemsg.Region, why error) {
	due := false
	e.Facts.with(info.ID, func(c *copyFacts) {
		if due = c.loggedClosed.IsZero() || time.Since(c.loggedClosed) >= logEvery; due {
			c.loggedClosed = time.Now()
		}
	})
	if !due {
		return
	}
	do := "run voxeld doctor to see whether other members serve it; if it stays closed here, look for disk errors"
	var refused Refusal
	switch {
	case errors.As(why, &refused):
		do = toDo(refused.Reason, info)
	case errors.Is(why, replica.ErrStorage):
		do = "free space on the disk of the data directory, and look for I/O errors; it opens by itself then"
	}
	e.Logger.Warn("region cannot be opened on this node", "region", info.ID, "cell", Name(info), "members", len(info.Members),
		"error", why, "do", do)
}

// ReleaseHere ends the quarantine of a region on this node: its failures are forgotten, and it can be opened again.
func (e *Executor) ReleaseHere(id uint64) {
	if !e.Facts.forget(id) {
		return
	}
	e.Logger.Info("region released", "region", id)
	if id == world.CatalogID {
		e.CatalogReleased()
	}
}

// ReleasedBy releases a region because another member has released it.
func (e *Executor) ReleasedBy(peer string, id uint64) error {
	info, err := e.Regions.Member(id)
	if err != nil {
		return err
	}
	if !actor.HasMember(info, peer) {
		return fmt.Errorf("%s is not a member of region %d", peer, id)
	}
	e.ReleaseHere(id)
	return nil
}

// Release ends the quarantine of a region on this node, which must be one of its members, and on those other members
// that can be reached. It returns the peers that were informed and those that were missed. On the latter, release the
// region again when they are back, or restart them.
func (e *Executor) Release(ctx context.Context, id uint64) (informed, missed []string, err error) {
	info, err := e.Regions.Member(id)
	if err != nil {
		return nil, nil, err
	}
	e.ReleaseHere(id)
	for _, m := range info.Members {
		if m.Peer != e.Self.Peer {
			if _, err := e.Questions.Ask(ctx, m.Peer, nodemsg.Question{Release: &nodemsg.Release{Region: id}}); err != nil {
				e.Logger.Debug("release not sent to member", "region", id, "peer", m.Peer, "error", err)
				missed = append(missed, m.Peer)
				continue
			}
		}
		informed = append(informed, m.Peer)
	}
	return informed, missed, nil
}

// NoteDamaged notes the copies that were found damaged when the store was opened.
func (e *Executor) NoteDamaged(damaged map[uint64]string) error {
	for id, why := range damaged {
		info, err := e.Registry.Region(id)
		if errors.Is(err, actor.ErrNotHere) {
			continue // a region that this node is not a member of
		}
		if err != nil {
			return err
		}
		e.Note(info, copies.Unreadable, fmt.Errorf("%w: %s", kv.ErrDamaged, why))
	}
	return nil
}

// newest returns the members of a region, or of the catalog, according to the other nodes.
func (e *Executor) newest(ctx context.Context, info nodemsg.Region) (nodemsg.Region, error) {
	if info.ID == world.CatalogID {
		return e.Directory.NewestCatalog(ctx)
	}
	return e.Directory.ByID(ctx, info.ID)
}

// askPeers asks the other members, and the nodes in also, whether the group of a region continues without the copy
// here, and notes what they say. The verdict is zero if there is no copy that can be read.
func (e *Executor) askPeers(ctx context.Context, by *Judge, id uint64, also ...string) Verdict {
	own, err := e.Replicas.Position(id)
	if err != nil {
		return Verdict{}
	}
	v := by.Judge(ctx, id, own, also...)
	peers := copies.Unasked
	switch {
	case v.Confirmed:
		peers = copies.Without
	case v.Claimed:
		peers = copies.Claim
	case v.Settled:
		peers = copies.Agree
	}
	e.Facts.with(id, func(c *copyFacts) { c.Peers = peers })
	return v
}

var errSuperseded = errors.New("the region continues without this node; the copy here is dropped")

// drop deletes a copy whose group continues without it. Open is its actor, nil if it is closed.
func (e *Executor) drop(ctx context.Context, info nodemsg.Region, open *actor.Actor) error {
	e.Logger.Warn("region continues without this node; its copy is dropped", "region", info.ID, "cell", Name(info), "reason", copies.Superseded.String())
	e.Facts.with(info.ID, func(c *copyFacts) { c.Peers = copies.Unasked }) // of the next copy
	if open != nil {
		open.Remove(false)
		return waitFor(ctx, open.Done())
	}
	if info.ID != world.CatalogID {
		e.ReleaseHere(info.ID)
	}
	return e.Delete(info)
}

// CheckSucceeded drops the copy of a group here if it is confirmed that the group continues without this node. The
// members are asked, and the peers in also, one of which may have said so.
func (e *Executor) CheckSucceeded(ctx context.Context, id uint64, also ...string) error {
	return e.checkSucceeded(ctx, e.Judge, id, also...)
}

func (e *Executor) checkSucceeded(ctx context.Context, by *Judge, id uint64, also ...string) error {
	info, err := e.Regions.Member(id)
	if errors.Is(err, actor.ErrNotHere) {
		return nil // there is nothing to be dropped
	}
	if err != nil {
		return err
	}
	open := e.openActor(id) // another copy may join meanwhile
	v := e.askPeers(ctx, by, id, also...)
	switch {
	case !v.Claimed && !v.Heard:
		return fmt.Errorf("region %d: %w", id, ErrUnheard) // it is checked again
	case !v.Claimed:
		return nil // this copy is of the same group, or of a later one
	case !v.Confirmed:
		return fmt.Errorf("region %d: %w", id, ErrUnconfirmed)
	}
	return e.drop(ctx, info, open)
}

// CheckInvited returns an error if a peer invites this node to a group as a later replica, although nothing confirms
// that the group continues without the one here, which has state.
func (e *Executor) CheckInvited(ctx context.Context, peer string, id, replica uint64) error {
	own, err := e.Replicas.Position(id)
	if err != nil || own.Members.Index == 0 || own.Replica >= replica || e.Judge.Judge(ctx, id, own, peer).Confirmed {
		return nil //nolint:nilerr // there is no copy, or one that cannot be read
	}
	return fmt.Errorf("invited to group %d as replica %d: %w as replica %d", id, replica, ErrUnconfirmed, own.Replica)
}

const (
	// askUnledEvery is the number of rounds between two questions about a group: most of them have only lost their
	// majority.
	askUnledEvery = 12
	// maxAskedUnled bounds about how many groups is asked in one round: each costs a question to its members.
	maxAskedUnled = 8
)

// askUnled asks the members of the open groups that have no leader, or in which this node is a learner, whether they
// continue without this node: when one is found for the second time, and then once a minute. The members of a group
// that have removed this node while it could not be reached send it nothing, and refuse what it sends: a voter never
// has a leader again, and a learner goes on to believe in the last one. Before says in how many rounds in succession
// each group was found until now.
func (e *Executor) askUnled(ctx context.Context, before map[uint64]int) map[uint64]int {
	rounds, asked := make(map[uint64]int), 0
	for _, g := range e.Regions.Groups() {
		learner := func(m replica.Member) bool { return m.Peer == e.Self.Peer && m.Learner }
		if g.Raft.Status().Leader != "" && !slices.ContainsFunc(g.Raft.Configuration().Members, learner) {
			continue
		}
		n := before[g.ID] + 1
		rounds[g.ID] = n
		if n%askUnledEvery != 2 {
			continue
		}
		if asked++; asked > maxAskedUnled {
			rounds[g.ID] = n - 1 // it is asked about in the next round
			continue
		}
		asking, cancel := context.WithTimeout(ctx, replaceTime)
		if err := e.checkSucceeded(asking, e.Judge.Quiet(), g.ID); err != nil {
			e.Logger.Debug("copy without a leader kept", "region", g.ID, "error", err)
		}
		cancel()
	}
	return rounds
}
