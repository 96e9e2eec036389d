package gameserver

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
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

const (
	// sendPause is how long messages for a region are collected into one, except edits, which go at once, and moves of a poller
	// round, which have waited already.
	sendPause = 15 * time.Millisecond
	// subscriptionLinger keeps an unused subscription open, so that a walk along a border does not open and close it all the
	// time.
	subscriptionLinger = 10 * time.Second
	// The pauses between attempts to reach a region: the first, and the longest.
	firstRetry, lastRetry = 100 * time.Millisecond, 1500 * time.Millisecond
	// noticeAfter is how long a region must be unreachable before players are notified. A link counts when it has held for
	// lastRetry.
	noticeAfter = 5 * time.Second
)

// subscription is the gateway's subscription to one region.
type subscription struct {
	g        *Gateway
	cell     grid.Cell
	wake     chan struct{} // holds a token while there may be something to send
	flushNow chan struct{} // holds a token while something to send must not be delayed: an edit, or a round's moves

	// answered and frameWriter belong to receive: outboxes with answers to write, and the buffers to write them.
	answered    []*outbox
	frameWriter frameWriter

	// sending is held from taking a message out until it is sent, which keeps messages in order. It is locked before sub.mu.
	sending struct {
		sync.Mutex
		link promptLink // nil if there is none, or none that can send without blocking
	}

	mu struct {
		sync.Mutex
		chunks      map[grid.ChunkPos]*mirrorChunk
		bodies      map[player.ID]*body       // this gateway's players who are in the region
		predicted   map[*mirrorChunk]struct{} // chunks with a predicted body that may be moving
		lastFrame   time.Duration             // when the last frame was, by the gateway's clock
		diverged    bool                      // a body here may have diverged from its prediction, or follow one
		pending     []intent                  // not yet answered, in order; at most maxIntents
		out         nodemsg.ToRegion          // since the last message. While there is no link, only Says is collected.
		moveIndex   map[player.ID]int         // index in out.Moves: the newest pose replaces the one before
		tick        uint64                    // of the newest update
		leader      string                    // the node that the newest link is with; empty before the first
		linked      bool                      // out is sent; else the next link begins with views, bodies and intents
		stable      bool                      // linked, for long enough to count
		notified    bool                      // players were notified that the region cannot be reached
		unusedSince time.Time                 // since when the subscription is unused; zero while it is used
		closed      bool                      // removed from the gateway: get another
	}
}

// promptLink is a region.Link that can send without blocking.
type promptLink interface {
	// TrySend sends the result of take, or reports false without calling it.
	TrySend(take func() nodemsg.ToRegion) bool
}

// body is a player's body and its owner, the last subscriber to enter it: an older connection of the player that is still ending
// does not remove it.
type body struct {
	nodemsg.Body // Way matters only in messages to the region
	owner        subscriber
	predictor    predictor
}

// intent is a pending edit and the subscriber that waits for its result.
type intent struct {
	nodemsg.Intent
	requester subscriber
}

func newSubscription(g *Gateway, cell grid.Cell) *subscription {
	sub := &subscription{g: g, cell: cell, wake: make(chan struct{}, 1), flushNow: make(chan struct{}, 1)}
	sub.mu.chunks = make(map[grid.ChunkPos]*mirrorChunk)
	sub.mu.bodies = make(map[player.ID]*body)
	sub.mu.predicted = make(map[*mirrorChunk]struct{})
	sub.mu.moveIndex = make(map[player.ID]int)
	return sub
}

// run keeps the subscription linked with its region, wherever that is led, until it is unused.
func (sub *subscription) run(ctx context.Context) {
	retry := firstRetry
	away := time.AfterFunc(noticeAfter, sub.notifyUnreached)
	defer away.Stop()
	for ctx.Err() == nil {
		link, info, err := sub.g.Regions.Follow(ctx, sub.anyChunk())
		if err == nil {
			sub.setLeader(info.Leader)
			started := time.Now()
			holds := time.AfterFunc(lastRetry, sub.notifyReached)
			err = sub.follow(ctx, link)
			if errors.Is(err, errUnneeded) {
				holds.Stop()
				return
			}
			if !holds.Stop() {
				retry = firstRetry
				away.Reset(noticeAfter)
			}
			if errors.Is(err, errMoved) && time.Since(started) > firstRetry {
				continue // the new leader is known: edits must not be delayed
			}
		}
		sub.g.Logger.Debug("link to region failed", "cell", sub.cell.String(), "leader", info.Leader, "error", err)
		if sub.dropUnused() {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(retry):
		}
		retry = min(2*retry, lastRetry)
	}
}

// setLeader records which node leads the region. Original clients must be connected with that node: if it is another one, their
// connections are reset.
func (sub *subscription) setLeader(peer string) {
	sub.mu.Lock()
	sub.mu.leader = peer
	sub.mu.Unlock()
	if sub.ledElsewhere() {
		sub.g.resetLegacy(sub)
	}
}

// ledElsewhere reports whether another node was found to lead the region.
func (sub *subscription) ledElsewhere() bool {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	return sub.mu.leader != "" && sub.mu.leader != sub.g.Peer
}

// anyChunk returns a chunk of the cell.
func (sub *subscription) anyChunk() grid.ChunkPos {
	area := sub.cell.Area()
	return grid.ChunkPos{X: area.MinX, Z: area.MinZ}
}

// errUnneeded ends a subscription that is no longer used.
var errUnneeded = errors.New("the subscription is unused")

// errMoved ends a link whose region has named another leader.
var errMoved = errors.New("the region is led elsewhere")

// follow serves one link until it breaks.
func (sub *subscription) follow(ctx context.Context, link region.Link) error {
	ctx, cancel := context.WithCancel(ctx)
	sub.resume()
	var sender sync.WaitGroup
	var sent error
	sender.Go(func() {
		sent = sub.send(ctx, link)
		cancel()
	})
	err := sub.receive(ctx, link)
	sub.pause()
	cancel()
	err = errors.Join(err, link.Close())
	sender.Wait()
	return errors.Join(sent, err)
}

// resume begins a link with the whole state that the region needs. Chat that was not sent yet is kept.
func (sub *subscription) resume() {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	sub.mu.linked = true
	inOrder := slices.SortedFunc(maps.Values(sub.mu.chunks), func(a, b *mirrorChunk) int { return cmp.Compare(a.order, b.order) })
	for _, mc := range inOrder {
		sub.mu.out.Watch = append(sub.mu.out.Watch, mc.at)
	}
	now := sub.g.now()
	for _, b := range sub.mu.bodies {
		if b.predictor.silent(now) { // the player stopped while there was no link
			b.predictor.commitStanding(now)
		}
		b.Velocity = b.predictor.commitMove(sub.predictable(b))
		sub.mu.diverged = sub.mu.diverged || b.Velocity.Moving()
		sub.mu.out.Enter = append(sub.mu.out.Enter, b.Body)
	}
	for _, i := range sub.mu.pending {
		sub.mu.out.Edits = append(sub.mu.out.Edits, i.Intent)
	}
	wakeUp(sub.wake)
}

// pause drops what the next link begins with anyway.
func (sub *subscription) pause() {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	sub.mu.linked, sub.mu.stable = false, false
	sub.mu.out = nodemsg.ToRegion{Chat: sub.mu.out.Chat}
	clear(sub.mu.moveIndex)
	for _, mc := range sub.mu.chunks {
		mc.shown = false
	}
}

// send sends collected messages to the region.
func (sub *subscription) send(ctx context.Context, link region.Link) error {
	idle := time.NewTicker(subscriptionLinger / 4)
	defer idle.Stop()
	prompt, _ := link.(promptLink)
	sub.setPromptLink(prompt)
	defer sub.setPromptLink(nil)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-idle.C:
			if sub.dropUnused() {
				return errUnneeded
			}
			sub.sweep()
			continue
		case <-sub.wake:
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-sub.flushNow:
		case <-time.After(sendPause):
		}
		if err := sub.sendNow(link); err != nil {
			return err
		}
	}
}

// sendNow sends what is collected, unless another goroutine does so already.
func (sub *subscription) sendNow(link region.Link) error {
	sub.sending.Lock()
	defer sub.sending.Unlock()
	out := sub.takeOut()
	if out.Empty() {
		return nil
	}
	return link.Send(out)
}

// setPromptLink lets goroutines other than the sender send.
func (sub *subscription) setPromptLink(link promptLink) {
	sub.sending.Lock()
	defer sub.sending.Unlock()
	sub.sending.link = link
}

// tryFlush sends what is collected if that does not block. It saves waking the sender.
func (sub *subscription) tryFlush() bool {
	if !sub.sending.TryLock() {
		return false
	}
	defer sub.sending.Unlock()
	return sub.sending.link != nil && sub.sending.link.TrySend(sub.takeOut)
}

func (sub *subscription) takeOut() nodemsg.ToRegion {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	if !sub.mu.linked {
		return nodemsg.ToRegion{} // the link has just broken: the next one sends it
	}
	out := sub.mu.out
	sub.mu.out = nodemsg.ToRegion{}
	clear(sub.mu.moveIndex)
	// A region sends changes of a chunk only on links that have received the chunk. A player who sent chat before that would not
	// see it.
	said := out.Chat
	out.Chat = nil
	for _, u := range said {
		if mc := sub.mu.chunks[u.Chunk]; mc != nil && !mc.shown {
			sub.mu.out.Chat = append(sub.mu.out.Chat, u)
		} else {
			out.Chat = append(out.Chat, u)
			sub.countEvent(u)
		}
	}
	return out
}

// countEvent records in the author's body that the region is sent the event: over the next link it would be too late to wait for
// it. The lock is held.
func (sub *subscription) countEvent(u nodemsg.ChatEvent) {
	b := sub.mu.bodies[u.Player]
	if stamp, counted := u.Clock(); b != nil && counted {
		b.Said = max(b.Said, stamp.Own())
	}
}

// dropUnused closes the subscription if it has been unused for a while.
func (sub *subscription) dropUnused() bool {
	sub.g.mu.Lock()
	defer sub.g.mu.Unlock()
	sub.mu.Lock()
	defer sub.mu.Unlock()
	if len(sub.mu.chunks) > 0 || len(sub.mu.bodies) > 0 || len(sub.mu.pending) > 0 {
		sub.mu.unusedSince = time.Time{}
		return false
	}
	if sub.mu.unusedSince.IsZero() {
		sub.mu.unusedSince = time.Now()
	}
	if time.Since(sub.mu.unusedSince) < subscriptionLinger {
		return false
	}
	sub.mu.closed = true
	delete(sub.g.mu.subs, sub.cell)
	return true
}

// sweep packs the land that was not read for a while.
func (sub *subscription) sweep() {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	for _, mc := range sub.mu.chunks {
		mc.fold()
	}
}

// receive applies what the region sends.
func (sub *subscription) receive(ctx context.Context, link region.Link) error {
	for {
		frame, err := link.Receive(ctx)
		if err != nil {
			return err
		}
		err = sub.apply(frame)
		sub.deliver()
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

// deliver writes pending results to sessions without waking their writers.
func (sub *subscription) deliver() {
	for _, o := range sub.answered {
		sub.frameWriter.deliver(o)
	}
	if len(sub.answered) > 0 {
		sub.g.metrics.posted(&sub.frameWriter)
		clear(sub.answered)
		sub.answered = sub.answered[:0]
	}
}
