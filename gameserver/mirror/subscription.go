package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/gameserver/wake"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

const (
	// Linger keeps an unused subscription open, so that a walk along a border does not open and close it all the
	// time.
	Linger = 10 * time.Second
	// FirstRetry is the first pause between attempts to reach a region.
	FirstRetry = 100 * time.Millisecond
	// LastRetry is the longest one.
	LastRetry = 1500 * time.Millisecond
	// NoticeAfter is how long a region must be unreachable before players are notified. A link counts when it has held for
	// LastRetry.
	NoticeAfter = 5 * time.Second
)

// Subscription is the gateway's subscription to one region.
type Subscription struct {
	m        *Mirror
	cell     grid.Cell
	wake     wake.Signal // set while there may be something to send
	flushNow wake.Signal // set while something to send must not be delayed: an edit, or a round's moves
	sender   sender
	answered []Subscriber // those with results to flush; receive's

	mu struct {
		sync.Mutex
		chunks      map[grid.ChunkPos]*Chunk
		bodies      map[player.ID]*body // this gateway's players who are in the region
		predicted   map[*Chunk]struct{} // chunks with a predicted body that may be moving
		lastFrame   time.Duration       // when the last frame was
		diverged    bool                // a body here may have diverged from its prediction, or follow one
		pending     pendingEdits
		out         outgoing
		tick        uint64    // of the newest update
		leader      string    // the node that the newest link is with; empty before the first
		stable      bool      // linked, for long enough to count
		notified    bool      // players were notified that the region cannot be reached
		unusedSince time.Time // since when the subscription is unused; zero while it is used
		closed      bool      // removed from the mirror: get another
	}
}

func newSubscription(m *Mirror, cell grid.Cell) *Subscription {
	sub := &Subscription{m: m, cell: cell, wake: wake.NewSignal(), flushNow: wake.NewSignal()}
	sub.sender.sub = sub
	sub.mu.chunks = make(map[grid.ChunkPos]*Chunk)
	sub.mu.bodies = make(map[player.ID]*body)
	sub.mu.predicted = make(map[*Chunk]struct{})
	sub.mu.out.moves = make(map[player.ID]int)
	return sub
}

// Covers reports whether a chunk is in the region.
func (sub *Subscription) Covers(pos grid.ChunkPos) bool { return sub.cell.Contains(pos) }

// run keeps the subscription linked with its region, wherever that is led, until it is unused.
func (sub *Subscription) run(ctx context.Context) {
	retry, area := FirstRetry, sub.cell.Area()
	away := time.AfterFunc(NoticeAfter, sub.notifyUnreached)
	defer away.Stop()
	for ctx.Err() == nil {
		link, info, err := sub.m.Regions.Follow(ctx, grid.ChunkPos{X: area.MinX, Z: area.MinZ})
		if err == nil {
			sub.setLeader(info.Leader)
			started := time.Now()
			holds := time.AfterFunc(LastRetry, sub.notifyReached)
			err = sub.follow(ctx, link)
			if errors.Is(err, errUnneeded) {
				holds.Stop()
				return
			}
			if !holds.Stop() {
				retry = FirstRetry
				away.Reset(NoticeAfter)
			}
			if errors.Is(err, errMoved) && time.Since(started) > FirstRetry {
				continue // the new leader is known: edits must not be delayed
			}
		}
		sub.m.Logger.Debug("link to region failed", "cell", sub.cell.String(), "leader", info.Leader, "error", err)
		if sub.dropUnused() {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(retry):
		}
		retry = min(2*retry, LastRetry)
	}
}

// setLeader records which node leads the region.
func (sub *Subscription) setLeader(peer string) {
	sub.mu.Lock()
	sub.mu.leader = peer
	sub.mu.Unlock()
	if sub.LedElsewhere() {
		sub.m.LedByOthers(sub)
	}
}

// LedElsewhere reports whether another node was found to lead the region.
func (sub *Subscription) LedElsewhere() bool {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	return sub.mu.leader != "" && sub.mu.leader != sub.m.Peer
}

// errUnneeded ends a subscription that is no longer used.
var errUnneeded = errors.New("the subscription is unused")

// errMoved ends a link whose region has named another leader.
var errMoved = errors.New("the region is led elsewhere")

// follow serves one link until it breaks.
func (sub *Subscription) follow(ctx context.Context, link region.Link) error {
	ctx, cancel := context.WithCancel(ctx)
	sub.resume()
	var sending sync.WaitGroup
	var sent error
	sending.Go(func() {
		sent = sub.sender.run(ctx, link)
		cancel()
	})
	err := sub.receive(ctx, link)
	sub.pause()
	cancel()
	err = errors.Join(err, link.Close())
	sending.Wait()
	return errors.Join(sent, err)
}

// resume begins a link with the whole state that the region needs. Chat that was not sent yet is kept.
func (sub *Subscription) resume() {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	sub.mu.out.linked = true
	inOrder := slices.SortedFunc(maps.Values(sub.mu.chunks), func(a, b *Chunk) int { return cmp.Compare(a.order, b.order) })
	for _, c := range inOrder {
		sub.mu.out.watch(c.at)
	}
	now := sub.m.Now()
	for _, b := range sub.mu.bodies {
		if b.predictor.Silent(now) { // the player stopped while there was no link
			b.predictor.CommitRest(now)
		}
		b.Velocity = b.predictor.CommitMove(b.predictable())
		sub.mu.diverged = sub.mu.diverged || b.Velocity.Moving()
		sub.mu.out.message.Enter = append(sub.mu.out.message.Enter, b.Body) // nothing that it could replace is queued
	}
	for _, i := range sub.mu.pending {
		sub.mu.out.message.Edits = append(sub.mu.out.message.Edits, i.Intent)
	}
	sub.wake.Set()
}

// pause drops what the next link begins with anyway.
func (sub *Subscription) pause() {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	sub.mu.stable = false
	sub.mu.out.reset()
	for _, c := range sub.mu.chunks {
		c.shown = false
	}
}

// takeOut returns the message to be sent.
func (sub *Subscription) takeOut() nodemsg.ToRegion {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	// A region sends changes of a chunk only on links that have received the chunk. A player who sent chat before that would not
	// see it.
	return sub.mu.out.swap(func(u *nodemsg.ChatEvent) bool {
		if c := sub.mu.chunks[u.Chunk]; c != nil && !c.shown {
			return false
		}
		// The author's body contains that the region is sent the event: over the next link it would be too late to wait for it.
		if stamp, counted := u.Clock(); counted && sub.mu.bodies[u.Player] != nil {
			b := sub.mu.bodies[u.Player]
			b.Said = max(b.Said, stamp.Own())
		}
		return true
	})
}

// foldUnread packs the land that was not read since the last call.
func (sub *Subscription) foldUnread() {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	for _, c := range sub.mu.chunks {
		c.land.fold()
	}
}

// dropUnused closes the subscription if it has been unused for a while.
func (sub *Subscription) dropUnused() (closed bool) {
	sub.m.mu.Lock()
	defer sub.m.mu.Unlock()
	sub.mu.Lock()
	defer sub.mu.Unlock()
	if len(sub.mu.chunks) > 0 || len(sub.mu.bodies) > 0 || len(sub.mu.pending) > 0 {
		sub.mu.unusedSince = time.Time{}
		return false
	}
	if sub.mu.unusedSince.IsZero() {
		sub.mu.unusedSince = time.Now()
	}
	if time.Since(sub.mu.unusedSince) < Linger {
		return false
	}
	sub.mu.closed = true
	delete(sub.m.mu.subs, sub.cell)
	return true
}

// receive applies what the region sends.
func (sub *Subscription) receive(ctx context.Context, link region.Link) error {
	for {
		frame, err := link.Receive(ctx)
		if err != nil {
			return err
		}
		err = sub.Apply(frame)
		for _, by := range sub.answered {
			by.Flush()
		}
		clear(sub.answered)
		sub.answered = sub.answered[:0]
		if err != nil {
			return err
		}
		if frame.Closed != "" && frame.Leader != "" {
			return fmt.Errorf("%w: %s", errMoved, frame.Closed)
		}
		if frame.Closed != "" {
			return fmt.Errorf("link closed by the region: %s", frame.Closed)
		}
	}
}

// SendPause is how long messages for a region are collected into one, except edits, which go at once, and moves of a poller
// round, which have waited already.
const SendPause = 15 * time.Millisecond

// promptLink is a region.Link that can send without blocking.
type promptLink interface {
	// TrySend sends the result of take, or reports false without calling it.
	TrySend(take func() nodemsg.ToRegion) bool
}

// sender sends a subscription's messages to its region. Its lock is held from taking a message out until it is sent, which keeps
// messages in order. It is locked before the subscription's.
type sender struct {
	sub *Subscription

	sync.Mutex
	link promptLink // nil if there is none, or none that can send without blocking
}

// run sends collected messages over a link, until ctx ends.
func (s *sender) run(ctx context.Context, link region.Link) error {
	idle := time.NewTicker(Linger / 4)
	defer idle.Stop()
	prompt, _ := link.(promptLink)
	s.setLink(prompt)
	defer s.setLink(nil)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-idle.C:
			s.sub.foldUnread()
			if s.sub.dropUnused() {
				return errUnneeded
			}
			continue
		case <-s.sub.wake:
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.sub.flushNow:
		case <-time.After(SendPause):
		}
		if err := s.send(link); err != nil {
			return err
		}
	}
}

// send sends what is collected, unless another goroutine does so already.
func (s *sender) send(link region.Link) error {
	s.Lock()
	defer s.Unlock()
	out := s.sub.takeOut()
	if out.Empty() {
		return nil
	}
	return link.Send(out)
}

// setLink lets goroutines other than the sender send.
func (s *sender) setLink(link promptLink) {
	s.Lock()
	defer s.Unlock()
	s.link = link
}

// tryFlush sends what is collected if that does not block. It saves waking the sender.
func (s *sender) tryFlush() bool {
	if !s.TryLock() {
		return false
	}
	defer s.Unlock()
	return s.link != nil && s.link.TrySend(s.sub.takeOut)
}

// Notices about a region that cannot be reached, or can be reached again.
const (
	landAway = "The land here cannot be reached at the moment. Your edits wait."
	landBack = "The land here can be reached again."
)

// notifyUnreached notifies subscribers that no link has held for NoticeAfter.
func (sub *Subscription) notifyUnreached() {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	if sub.mu.stable {
		return // since just now
	}
	sub.mu.notified = true
	sub.notifyAll(landAway)
}

// notifyReached records that the link has held, and notifies subscribers if they were notified that there was none.
func (sub *Subscription) notifyReached() {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	if !sub.mu.out.linked {
		return // it broke just now
	}
	sub.mu.stable = true
	if sub.mu.notified {
		sub.mu.notified = false
		sub.notifyAll(landBack)
	}
}

// notifyAll sends a notice to all subscribers. The lock is held; those of sessions and outboxes are taken below it.
func (sub *Subscription) notifyAll(text string) {
	notified := make(map[Subscriber]bool)
	for _, c := range sub.mu.chunks {
		for by := range c.subscribers {
			if !notified[by] {
				notified[by] = true
				by.SendNotice(text)
			}
		}
	}
}

// body is a player's body and its owner, the last subscriber to enter it: an older connection of the player that is still ending
// does not remove it.
type body struct {
	nodemsg.Body // its Velocity matters only in messages to the region
	sub          *Subscription
	owner        Subscriber
	predictor    motion.Predictor
}

// predictionCrowd is the maximum number of players in a chunk for predictions to be sent. The region receives updates of a larger
// crowd in each tick anyway, and players in a crowd must be shown exactly.
const predictionCrowd = 16

// regionHas reports whether the region has exactly the newest pose, and does not extrapolate the player. The subscription's lock
// is held, as below.
func (b *body) regionHas() bool { return b.predictor.LastSent() == b.Pose && !b.predictor.Predicts() }

// predictable reports whether the region is sent predictions for the body.
func (b *body) predictable() bool {
	if !b.owner.Predictable() || b.sub.m.Overlay.Enabled() {
		return false
	}
	c := b.sub.mu.chunks[b.Pose.Chunk()]
	return c == nil || len(c.occupants) <= predictionCrowd
}

// sendRest reports to the region that the body rests where it is.
func (b *body) sendRest() {
	b.predictor.CommitRest(b.sub.m.Now())
	b.sendMove(false)
	b.sub.wake.Set()
}

// sendMove puts the newest pose and velocity into the next message.
func (b *body) sendMove(straight bool) {
	sub := b.sub
	if !sub.mu.out.linked {
		return // the next link begins with it
	}
	m := nodemsg.BodyMove{Player: b.Player, Pose: b.Pose, Velocity: b.predictor.CommitMove(straight)}
	sub.mu.diverged = sub.mu.diverged || m.Velocity.Moving()
	if sub.mu.out.move(m) {
		sub.m.metrics.movesSent.Inc()
	}
}
