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

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

const (
	// Linger keeps an unused subscription open, so that a walk along a border does not open and close it all the
	// time.
	Linger = 10 * time.Second
	// FirstRetry is the first pause between attempts to reach a region.
	FirstRetry = 100 * time.Millisecond
	// LastRetry is the longest one.
	LastRetry = 1500 * time.Millisecond
	// NoticeAfter is how long a region must be unreachable before players are notified. A link counts when it has held
	// for LastRetry.
	NoticeAfter = 5 * time.Second
	// AnswerTime is how long an edit may be unanswered over a link before the region's members are asked who leads it,
	// whatever else arrives: a leader whose disk hangs still sends moves. They are asked again after askPause. If they
	// name no other leader the link stays: over a new one the edits would wait for the same disks once more.
	AnswerTime = 1200 * time.Millisecond
	askPause   = 400 * time.Millisecond
	// LastAnswerTime is when the link ends whoever leads.
	LastAnswerTime = 10 * time.Second
)

// run keeps the feed linked with its region, wherever that is led, until it ends.
func (f *feed) run(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	f.setStop(stop)
	away := time.AfterFunc(NoticeAfter, f.notifyUnreached)
	defer away.Stop()
	retry := FirstRetry
	for ctx.Err() == nil {
		link, info, err := f.sub.m.Regions.Follow(ctx, f.place())
		if err == nil {
			started := time.Now()
			holds := time.AfterFunc(LastRetry, f.notifyReached)
			var moved bool
			moved, err = f.follow(ctx, link, info)
			if errors.Is(err, errUnneeded) {
				holds.Stop()
				return
			}
			if held := !holds.Stop(); held || moved {
				retry = FirstRetry
				away.Reset(NoticeAfter)
			}
			if errors.Is(err, errClosed) && time.Since(started) > FirstRetry {
				continue // probably it is known where to go on: edits must not be delayed
			}
		}
		f.noteCutOff(err)
		if errors.Is(err, region.ErrQuarantined) {
			f.refusePending(wire.RefusedQuarantined)
		}
		f.sub.m.Logger.Debug("link to region failed", "cell", info.Cell.String(), "leader", info.Leader, "error", err)
		if f.dropUnused() {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(retry):
		}
		retry = min(2*retry, LastRetry)
	}
}

// setStop lets others end run.
func (f *feed) setStop(stop func()) {
	f.sub.mu.Lock()
	defer f.sub.mu.Unlock()
	if f.stop = stop; f.ended {
		stop()
	}
}

// place returns a chunk of the region, one that is used if possible.
func (f *feed) place() grid.ChunkPos {
	f.sub.mu.Lock()
	defer f.sub.mu.Unlock()
	if pos, used := f.usedPlace(); used {
		return pos
	}
	area := f.cell.Area()
	return grid.ChunkPos{X: area.MinX, Z: area.MinZ}
}

// errUnneeded ends a feed that is unused, or whose region another feed has taken over.
var errUnneeded = errors.New("the feed is not needed")

// errUnanswered ends a link over which an edit was not answered in time.
var errUnanswered = errors.New("an edit is not answered")

// errClosed ends a link that the region has closed: it is led elsewhere, or was divided or merged.
var errClosed = errors.New("link closed by the region")

// follow serves one link until it breaks. Moved reports whether it was the first link with a region of this cell.
func (f *feed) follow(ctx context.Context, link region.Link, info nodemsg.Region) (moved bool, err error) {
	moved, err = f.setRegion(info)
	if err != nil {
		return false, errors.Join(err, link.Close())
	}
	if info.Leader != "" && info.Leader != f.sub.m.Peer {
		f.sub.m.LedByOthers(info.Cell)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	routed, _ := link.(routedLink)
	f.resume(&liveLink{
		end: func() { cancel(errUnanswered) },
		ledElsewhere: func() bool {
			ctx, cancel := context.WithTimeout(ctx, AnswerTime)
			defer cancel()
			return routed != nil && routed.LedElsewhere(ctx)
		},
	})
	var sending sync.WaitGroup
	var sent error
	sending.Go(func() {
		sent = f.sender.run(ctx, link)
		cancel(nil)
	})
	err = f.receive(ctx, link)
	f.pause()
	cancel(nil)
	err = errors.Join(err, link.Close())
	if errors.Is(context.Cause(ctx), errUnanswered) {
		err = errors.Join(errUnanswered, err)
	}
	sending.Wait()
	return moved, errors.Join(sent, err)
}

// routedLink is a region.Link that was found by a route.
type routedLink interface {
	// LedElsewhere asks the region's members whether another node leads it by now.
	LedElsewhere(ctx context.Context) bool
}

// liveLink is the link that a feed has now.
type liveLink struct {
	end          func()
	ledElsewhere func() bool // it may take as long as AnswerTime
}

// checkAnswers ends the link over which an edit has not been answered for AnswerTime, if the region is led elsewhere,
// or after LastAnswerTime.
func (f *feed) checkAnswers() {
	defer f.sub.m.Panics.Recover("subscription", func() {})
	link, waited := f.unansweredFor()
	switch {
	case link == nil:
	case waited < AnswerTime:
		f.checkLater(link, AnswerTime-waited)
	case waited >= LastAnswerTime || link.ledElsewhere() && f.stillWaits(link):
		link.end()
	default:
		f.checkLater(link, askPause)
	}
}

// unansweredFor returns the link, and for how long the first unanswered edit that was sent over it has waited. The link
// is nil if there is none, or all edits are answered: then checkAnswers is not called again until the next edit.
func (f *feed) unansweredFor() (link *liveLink, waited time.Duration) {
	sub := f.sub
	sub.mu.Lock()
	defer sub.mu.Unlock()
	f.watched = false
	if !f.out.linked {
		return nil, 0
	}
	if e := f.firstUnanswered(); e != nil {
		f.watched = true
		return f.link, time.Since(e.sent)
	}
	return nil, 0
}

// firstUnanswered returns the edit that has waited the longest; nil if none waits. The lock is held.
func (f *feed) firstUnanswered() *pendingEdit {
	pending := f.sub.mu.pending
	i := slices.IndexFunc(pending, func(e pendingEdit) bool { return f.cell.Contains(e.Pos.Chunk()) }) // they are in order
	if i < 0 {
		return nil
	}
	return &pending[i]
}

// stillWaits reports whether an edit has waited for AnswerTime over this link.
func (f *feed) stillWaits(link *liveLink) bool {
	now, waited := f.unansweredFor()
	return now == link && waited >= AnswerTime
}

// checkLater has checkAnswers called, unless the link is another one by now.
func (f *feed) checkLater(link *liveLink, after time.Duration) {
	f.sub.mu.Lock()
	defer f.sub.mu.Unlock()
	if f.link == link && f.out.linked {
		f.answers.Reset(after)
	}
}

// sendEdit puts a pending edit into the next message.
func (f *feed) sendEdit(e *pendingEdit) {
	e.sent = time.Now()
	f.out.message.Edits = append(f.out.message.Edits, e.Intent)
	switch {
	case f.watched:
		return
	case f.answers == nil:
		f.answers = time.AfterFunc(AnswerTime, f.checkAnswers)
	default:
		f.answers.Reset(AnswerTime)
	}
	f.watched = true
}

// resume begins a link with the whole state that the region needs. Chat that was not sent yet is kept.
func (f *feed) resume(link *liveLink) {
	sub := f.sub
	sub.mu.Lock()
	defer sub.mu.Unlock()
	if f.ended {
		return
	}
	f.out.linked, f.link, f.watched = true, link, false
	f.beginConfirming()
	inOrder := slices.SortedFunc(maps.Values(sub.mu.chunks), func(a, b *Chunk) int { return cmp.Compare(a.order, b.order) })
	for _, c := range inOrder {
		if f.cell.Contains(c.at) {
			f.out.watch(c.at)
		}
	}
	now := sub.m.Now()
	for _, b := range sub.mu.bodies {
		if !f.cell.Contains(b.at) {
			continue
		}
		if b.predictor.Silent(now) { // the player stopped while there was no link
			b.predictor.CommitRest(now)
		}
		b.Velocity = b.predictor.CommitMove(b.predictable())
		sub.mu.diverged = sub.mu.diverged || b.Velocity.Moving()
		f.out.message.Enter = append(f.out.message.Enter, b.Body) // nothing that it could replace is queued
	}
	for i := range sub.mu.pending {
		if e := &sub.mu.pending[i]; f.cell.Contains(e.Pos.Chunk()) {
			f.sendEdit(e)
		}
	}
	f.wake.Set()
}

// pause ends a link.
func (f *feed) pause() {
	f.sub.mu.Lock()
	defer f.sub.mu.Unlock()
	if !f.ended { // otherwise another feed has the chunks
		f.unlink()
	}
}

// takeOut returns the message to be sent.
func (f *feed) takeOut() nodemsg.ToRegion {
	sub := f.sub
	sub.mu.Lock()
	defer sub.mu.Unlock()
	// A region sends changes of a chunk only on links that have received the chunk. A player who sent chat before that
	// would not see it.
	return f.out.swap(func(u *nodemsg.ChatEvent) bool {
		if c := sub.mu.chunks[u.Chunk]; c != nil && !c.shown {
			return false
		}
		// The author's body contains that the region is sent the event: over the next link it would be too late to wait
		// for it.
		if stamp, counted := u.Clock(); counted && sub.mu.bodies[u.Player] != nil {
			b := sub.mu.bodies[u.Player]
			b.Said = max(b.Said, stamp.Own())
		}
		return true
	})
}

// foldUnread packs the land that was not read since the last call.
func (f *feed) foldUnread() {
	f.sub.mu.Lock()
	defer f.sub.mu.Unlock()
	for _, c := range f.sub.mu.chunks {
		if f.cell.Contains(c.at) {
			c.land.fold()
		}
	}
}

// errPanicked ends a link because of a bug.
var errPanicked = errors.New("a panic")

// receive applies what the region sends.
func (f *feed) receive(ctx context.Context, link region.Link) (err error) {
	defer f.sub.m.Panics.Recover("subscription", func() { err = errPanicked }, "cell", f.cell.String())
	for {
		frame, err := link.Receive(ctx)
		if err != nil {
			return err
		}
		err = f.apply(frame)
		f.flushAnswered()
		if err != nil {
			return err
		}
		if frame.Closed != "" {
			return fmt.Errorf("%w: %s", errClosed, frame.Closed)
		}
	}
}

// SendPause is how long messages for a region are collected into one, except edits and questions, which go at once, and
// moves of a poller round, which have waited already.
const SendPause = 15 * time.Millisecond

// promptLink is a region.Link that can send without blocking.
type promptLink interface {
	// TrySend sends the result of take, or reports false without calling it.
	TrySend(take func() nodemsg.ToRegion) bool
}

// sender sends a feed's messages to its region. Its lock is held from taking a message out until it is sent, which
// keeps messages in order. It is locked before the subscription's.
type sender struct {
	feed *feed

	sync.Mutex
	link promptLink // nil if there is none, or none that can send without blocking
}

// run sends collected messages over a link, until ctx ends.
func (s *sender) run(ctx context.Context, link region.Link) (err error) {
	defer s.feed.sub.m.Panics.Recover("subscription", func() { err = errPanicked }, "cell", s.feed.cell.String())
	idle, pause := time.NewTicker(Linger/4), time.NewTimer(SendPause)
	defer idle.Stop()
	defer pause.Stop()
	prompt, _ := link.(promptLink)
	s.setLink(prompt)
	defer s.setLink(nil)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-idle.C:
			s.feed.foldUnread()
			if s.feed.dropUnused() {
				return errUnneeded
			}
			continue
		case <-s.feed.wake:
		}
		pause.Reset(SendPause)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.feed.flushNow:
			pause.Stop()
		case <-pause.C:
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
	out := s.feed.takeOut()
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
	return s.link != nil && s.link.TrySend(s.feed.takeOut)
}

// notifyUnreached notifies subscribers that no link has held for NoticeAfter.
func (f *feed) notifyUnreached() {
	f.sub.mu.Lock()
	defer f.sub.mu.Unlock()
	if f.stable || f.notified || f.ended {
		return // since just now
	}
	f.notified = true
	f.notifyAll(sessionmsg.LandAway)
}

// notifyReached records that the link has held, and notifies subscribers if they were notified that there was none.
func (f *feed) notifyReached() {
	f.sub.mu.Lock()
	defer f.sub.mu.Unlock()
	if !f.out.linked {
		return // it broke just now
	}
	f.stable = true
	if f.notified {
		f.notified = false
		f.notifyAll(sessionmsg.LandBack)
	}
}

// refusePending answers the edits that wait for the region, because nobody will serve it for long.
func (f *feed) refusePending(why string) {
	f.sub.mu.Lock()
	var refused []nodemsg.EditResult
	for _, e := range f.sub.mu.pending {
		refused = append(refused, nodemsg.EditResult{Player: e.Player, Seq: e.Seq, Refused: why}) // sendResults skips those of other feeds
	}
	f.sendResults(refused)
	f.sub.mu.Unlock()
	f.flushAnswered()
}

// flushAnswered flushes the subscribers that were sent results.
func (f *feed) flushAnswered() {
	for _, by := range f.answered {
		by.Flush()
	}
	clear(f.answered)
	f.answered = f.answered[:0]
}

// noteCutOff records whether the region could not be followed because this node cannot reach its leader.
func (f *feed) noteCutOff(err error) {
	var cut region.CutOffError
	errors.As(err, &cut)
	f.sub.mu.Lock()
	defer f.sub.mu.Unlock()
	f.cutOff = cut.Leader
}

// CutOff returns a node that leads land where players of this gateway stand, and that cannot be reached from here,
// although other members can, for NoticeAfter; empty if there is none.
func (m *Mirror) CutOff() (leader string) {
	for _, sub := range m.appendSubscriptions(nil) {
		if leader := sub.playersCutOff(); leader != "" {
			return leader
		}
	}
	return ""
}

func (sub *Subscription) playersCutOff() (leader string) {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	for _, b := range sub.mu.bodies {
		if f := sub.feedAt(b.at); f != nil && f.notified && !f.out.linked && f.cutOff != "" {
			return f.cutOff
		}
	}
	return ""
}

// notifyAll sends a notice to all subscribers. The lock is held; those of sessions and outboxes are taken below it.
func (f *feed) notifyAll(n sessionmsg.Notice) {
	notified := make(map[Subscriber]bool)
	for _, c := range f.sub.mu.chunks {
		if !f.cell.Contains(c.at) {
			continue
		}
		for by := range c.subscribers {
			if !notified[by] {
				notified[by] = true
				by.SendNotice(n)
			}
		}
	}
}
