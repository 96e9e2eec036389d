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
	"github.com/voxelpopuli/voxeld/wire"
)

const (
	// feedPause is how long messages for a region are collected into one, except edits, which go at once, and moves of a poller
	// round, which have waited already.
	feedPause = 15 * time.Millisecond
	// feedLinger keeps an unused subscription open, so that a walk along a border does not open and close it all the time.
	feedLinger = 10 * time.Second
	// The pauses between attempts to reach a region: the first, and the longest.
	firstRetry, lastRetry = 100 * time.Millisecond, 1500 * time.Millisecond
	// noticeAfter is how long a region must be unreachable before players are notified. A link counts when it has held for
	// lastRetry.
	noticeAfter = 5 * time.Second
)

// feed is the gateway's subscription to one region.
type feed struct {
	g    *Gateway
	cell grid.Cell
	wake chan struct{} // holds a token while there may be something to send
	rush chan struct{} // holds a token while something to send must not be delayed: an edit, or a round's moves

	// told and post belong to receive: outboxes with answers to write, and the buffers to write them.
	told []*outbox
	post post

	// sending is held from taking a message out until it is sent, which keeps messages in order. It is locked before f.mu.
	sending struct {
		sync.Mutex
		link promptLink // nil if there is none, or none that can send without blocking
	}

	mu struct {
		sync.Mutex
		views   map[grid.ChunkPos]*view
		bodies  map[player.ID]*body // this gateway's players who are in the region
		walks   map[*view]struct{}  // chunks with a predicted body that may be moving
		beaten  time.Duration       // when the last frame was, by the gateway's clock
		strays  bool                // a body here may have diverged from its prediction, or follow one
		intents []intent            // not yet answered, in order; at most maxIntents
		out     wire.ToRegion       // since the last message. While there is no link, only Says is collected.
		moving  map[player.ID]int   // index in out.Moves: the newest pose replaces the one before
		tick    uint64              // of the newest update
		leader  string              // the node that the newest link is with; empty before the first
		linked  bool                // out is sent; else the next link begins with views, bodies and intents
		held    bool                // linked, for long enough to count
		away    bool                // players were notified that the region cannot be reached
		unused  time.Time           // since when the subscription is unused; zero while it is used
		closed  bool                // removed from the gateway: get another
	}
}

// promptLink is a region.Link that can send without blocking.
type promptLink interface {
	// TrySend sends the result of take, or reports false without calling it.
	TrySend(take func() wire.ToRegion) bool
}

// body is a player's body and its owner, the last subscriber to enter it: an older connection of the player that is still ending
// does not remove it.
type body struct {
	wire.Body // Way matters only in messages to the region
	whose     viewer
	course    course
}

// intent is a pending edit and the subscriber that waits for its result.
type intent struct {
	wire.Intent
	whom viewer
}

func newFeed(g *Gateway, cell grid.Cell) *feed {
	f := &feed{g: g, cell: cell, wake: make(chan struct{}, 1), rush: make(chan struct{}, 1)}
	f.mu.views = make(map[grid.ChunkPos]*view)
	f.mu.bodies = make(map[player.ID]*body)
	f.mu.walks = make(map[*view]struct{})
	f.mu.moving = make(map[player.ID]int)
	return f
}

// run keeps the subscription linked with its region, wherever that is led, until it is unused.
func (f *feed) run(ctx context.Context) {
	retry := firstRetry
	away := time.AfterFunc(noticeAfter, f.unreached)
	defer away.Stop()
	for ctx.Err() == nil {
		link, info, err := f.g.Regions.Follow(ctx, f.somewhere())
		if err == nil {
			f.setLeader(info.Leader)
			started := time.Now()
			holds := time.AfterFunc(lastRetry, f.reached)
			err = f.follow(ctx, link)
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
		f.g.Logger.Debug("region not followed", "cell", f.cell.String(), "leader", info.Leader, "error", err)
		if f.dropUnused() {
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
func (f *feed) setLeader(peer string) {
	f.mu.Lock()
	f.mu.leader = peer
	f.mu.Unlock()
	if f.ledElsewhere() {
		f.g.resetOriginals(f)
	}
}

// ledElsewhere reports whether another node was found to lead the region.
func (f *feed) ledElsewhere() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.leader != "" && f.mu.leader != f.g.Peer
}

// somewhere returns a chunk of the cell.
func (f *feed) somewhere() grid.ChunkPos {
	area := f.cell.Area()
	return grid.ChunkPos{X: area.MinX, Z: area.MinZ}
}

// errUnneeded ends a subscription that is no longer used.
var errUnneeded = errors.New("nobody needs the feed")

// errMoved ends a link whose region has named another leader.
var errMoved = errors.New("the region is led elsewhere")

// follow serves one link until it breaks.
func (f *feed) follow(ctx context.Context, link region.Link) error {
	ctx, cancel := context.WithCancel(ctx)
	f.resume()
	var sender sync.WaitGroup
	var sent error
	sender.Go(func() {
		sent = f.send(ctx, link)
		cancel()
	})
	err := f.receive(ctx, link)
	f.pause()
	cancel()
	err = errors.Join(err, link.Close())
	sender.Wait()
	return errors.Join(sent, err)
}

// resume begins a link with the whole state that the region needs. Chat that was not sent yet is kept.
func (f *feed) resume() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.linked = true
	inOrder := slices.SortedFunc(maps.Values(f.mu.views), func(a, b *view) int { return cmp.Compare(a.order, b.order) })
	for _, v := range inOrder {
		f.mu.out.Watch = append(f.mu.out.Watch, v.at)
	}
	now := f.g.now()
	for _, b := range f.mu.bodies {
		if b.course.silent(now) { // the player stopped while there was no link
			b.course.stand(now)
		}
		b.Way = b.course.tell(f.straight(b))
		f.mu.strays = f.mu.strays || b.Way.Goes()
		f.mu.out.Enter = append(f.mu.out.Enter, b.Body)
	}
	for _, i := range f.mu.intents {
		f.mu.out.Edits = append(f.mu.out.Edits, i.Intent)
	}
	wakeUp(f.wake)
}

// pause drops what the next link begins with anyway.
func (f *feed) pause() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.linked, f.mu.held = false, false
	f.mu.out = wire.ToRegion{Says: f.mu.out.Says}
	clear(f.mu.moving)
	for _, v := range f.mu.views {
		v.shown = false
	}
}

// send sends collected messages to the region.
func (f *feed) send(ctx context.Context, link region.Link) error {
	idle := time.NewTicker(feedLinger / 4)
	defer idle.Stop()
	prompt, _ := link.(promptLink)
	f.lend(prompt)
	defer f.lend(nil)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-idle.C:
			if f.dropUnused() {
				return errUnneeded
			}
			f.sweep()
			continue
		case <-f.wake:
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-f.rush:
		case <-time.After(feedPause):
		}
		if err := f.sendNow(link); err != nil {
			return err
		}
	}
}

// sendNow sends what is collected, unless another goroutine does so already.
func (f *feed) sendNow(link region.Link) error {
	f.sending.Lock()
	defer f.sending.Unlock()
	out := f.takeOut()
	if out.Empty() {
		return nil
	}
	return link.Send(out)
}

// lend lets goroutines other than the sender send.
func (f *feed) lend(link promptLink) {
	f.sending.Lock()
	defer f.sending.Unlock()
	f.sending.link = link
}

// push sends what is collected if that does not block. It saves waking the sender.
func (f *feed) push() bool {
	if !f.sending.TryLock() {
		return false
	}
	defer f.sending.Unlock()
	return f.sending.link != nil && f.sending.link.TrySend(f.takeOut)
}

func (f *feed) takeOut() wire.ToRegion {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.mu.linked {
		return wire.ToRegion{} // the link has just broken: the next one sends it
	}
	out := f.mu.out
	f.mu.out = wire.ToRegion{}
	clear(f.mu.moving)
	// A region sends changes of a chunk only on links that have received the chunk. A player who sent chat before that would not
	// see it.
	said := out.Says
	out.Says = nil
	for _, u := range said {
		if v := f.mu.views[u.Chunk]; v != nil && !v.shown {
			f.mu.out.Says = append(f.mu.out.Says, u)
		} else {
			out.Says = append(out.Says, u)
			f.count(u)
		}
	}
	return out
}

// count records in the author's body that the region is sent the event: over the next link it would be too late to wait for it.
// The lock is held.
func (f *feed) count(u wire.Utterance) {
	b := f.mu.bodies[u.Player]
	if stamp, counted := u.Clock(); b != nil && counted {
		b.Said = max(b.Said, stamp.Own())
	}
}

// dropUnused closes the subscription if it has been unused for a while.
func (f *feed) dropUnused() bool {
	f.g.mu.Lock()
	defer f.g.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.mu.views) > 0 || len(f.mu.bodies) > 0 || len(f.mu.intents) > 0 {
		f.mu.unused = time.Time{}
		return false
	}
	if f.mu.unused.IsZero() {
		f.mu.unused = time.Now()
	}
	if time.Since(f.mu.unused) < feedLinger {
		return false
	}
	f.mu.closed = true
	delete(f.g.mu.feeds, f.cell)
	return true
}

// sweep packs the land that was not read for a while.
func (f *feed) sweep() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, v := range f.mu.views {
		v.fold()
	}
}

// receive applies what the region sends.
func (f *feed) receive(ctx context.Context, link region.Link) error {
	for {
		frame, err := link.Receive(ctx)
		if err != nil {
			return err
		}
		err = f.take(frame)
		f.deliver()
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
func (f *feed) deliver() {
	for _, o := range f.told {
		f.post.deliver(o)
	}
	if len(f.told) > 0 {
		f.g.metrics.posted(&f.post)
		clear(f.told)
		f.told = f.told[:0]
	}
}
