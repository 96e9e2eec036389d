package region

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/wire"
)

const (
	// askEvery is how often a node is asked at least who it is, and askSeldom at most: an eighth of the time after which a
	// silent member is replaced, within these bounds. Who has asked this node meanwhile lives, and need not be asked.
	askEvery, askSeldom = 2500 * time.Millisecond, 7500 * time.Millisecond
	// strangerMost is how often a node is asked at most that is in no group that this one leads: a quarter of that time, within
	// askEvery and this. It may be invited into a group, and is asked once more just before.
	strangerMost = 30 * time.Second
	// describedFor is how long it is believed that a node is what it described itself as.
	describedFor = 30 * time.Second
	// askedAtOnce bounds how many nodes are asked at the same time.
	askedAtOnce = 16
)

// liveness is what this node knows of which others live. Any goroutine may use it.
type liveness struct {
	every    time.Duration // how often a node is asked
	stranger time.Duration // how often one is that is in no group that this one leads

	mu struct {
		sync.Mutex
		nodes map[string]*pulse
	}
}

// pulse is when a node was heard of.
type pulse struct {
	member wire.Member   // as it described itself; zero if it never did
	heard  time.Time     // last; or when it was first asked about
	asked  time.Time     // last
	every  time.Duration // how often it is asked
	told   time.Time     // when it described itself last
	lives  bool          // it answered when it was asked last, or has asked since
	leaves time.Time     // when it told that it is about to end; zero once it answers again
}

// leftAfter is how long a node that leaves may take to end; then it is one like others.
const leftAfter = time.Minute

// askAgain is how often a node is asked at most that has told that it leaves and speaks nevertheless.
const askAgain = 250 * time.Millisecond

// leave notes that a node is about to end: it does not count as living until it answers again.
func (v *liveness) leave(peer string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	p := v.pulse(peer)
	p.lives, p.leaves = false, time.Now()
}

// again tells whether a node that speaks is to be asked whether it is back, because it has told that it leaves. It counts
// as asked then.
func (v *liveness) again(peer string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	p := v.mu.nodes[peer]
	if p == nil || p.leaves.IsZero() || time.Since(p.asked) < askAgain {
		return false
	}
	p.asked = time.Now()
	return true
}

// leaves tells whether the node is about to end.
func (v *liveness) leaves(peer string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	p := v.mu.nodes[peer]
	return p != nil && !p.leaves.IsZero() && time.Since(p.leaves) < leftAfter
}

// keepTo has nodes asked as befits the time after which a silent member is replaced.
func (v *liveness) keepTo(grace time.Duration) {
	v.every = min(max(askEvery, grace/8), askSeldom)
	v.stranger = min(max(askEvery, grace/4), strangerMost)
}

// freshFor is how long the node counts as living when it was heard of: it is asked in rounds.
func (p *pulse) freshFor() time.Duration { return 2*p.every + superviseEvery }

// asks takes in that a node has asked who this one is: so it lives. What it is must have been told by itself, lately; and
// one that leaves, or did not answer, has to answer first: who did not answer is asked in the next round.
func (v *liveness) asks(peer string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	p := v.mu.nodes[peer]
	switch {
	case p == nil || !p.leaves.IsZero():
	case !p.lives:
		p.asked = time.Time{}
	case time.Since(p.told) < describedFor:
		p.heard = time.Now()
	}
}

// pulse gives what is known of a node. The lock is held.
func (v *liveness) pulse(peer string) *pulse {
	if v.mu.nodes == nil {
		v.mu.nodes = make(map[string]*pulse)
	}
	p := v.mu.nodes[peer]
	if p == nil {
		p = &pulse{heard: time.Now(), every: v.every}
		v.mu.nodes[peer] = p
	}
	return p
}

// watched are nodes, and how often each is asked.
type watched map[string]time.Duration

// add has a node watched, as often as whoever needs it the most.
func (w watched) add(peer string, every time.Duration) {
	if now, there := w[peer]; !there || every < now {
		w[peer] = every
	}
}

// refresh asks those of the peers who they are that were not asked for a while.
func (v *liveness) refresh(ctx context.Context, peers watched, describe func(context.Context, string) (wire.Member, error)) {
	var crew sync.WaitGroup
	defer crew.Wait()
	tokens := make(chan struct{}, askedAtOnce)
	for peer, every := range peers {
		if !v.due(peer, every) {
			continue
		}
		tokens <- struct{}{}
		crew.Go(func() {
			defer func() { <-tokens }()
			v.askWho(ctx, peer, describe) //nolint:errcheck // it is noted
		})
	}
}

// due tells whether the peer, which is asked so often from now on, is to be asked now.
func (v *liveness) due(peer string, every time.Duration) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	p := v.pulse(peer)
	p.every = every
	if !p.lives {
		every = askEvery // one slow answer is not to count for long
	}
	if time.Since(p.asked) < every || p.lives && time.Since(p.heard) < every && time.Since(p.told) < describedFor {
		return false
	}
	p.asked = time.Now()
	return true
}

// askWho asks a node who it is, and notes what comes of that.
func (v *liveness) askWho(ctx context.Context, peer string, describe func(context.Context, string) (wire.Member, error)) (wire.Member, error) {
	asked := time.Now()
	member, err := describe(ctx, peer)
	if err == nil || ctx.Err() == nil {
		v.note(peer, asked, member, err == nil)
	}
	return member, err
}

// note takes in the answer to a question, or that there was none, unless something newer than the question is known.
func (v *liveness) note(peer string, asked time.Time, member wire.Member, lives bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	p := v.pulse(peer)
	if p.leaves.After(asked) || !lives && p.told.After(asked) {
		return
	}
	if p.lives = lives; lives {
		p.heard, p.member, p.leaves = time.Now(), member, time.Time{}
		p.told = p.heard
	}
}

// lives gives the node's description if it has answered lately.
func (v *liveness) lives(peer string) (wire.Member, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	p := v.mu.nodes[peer]
	if p == nil || !p.lives || time.Since(p.heard) > p.freshFor() {
		return wire.Member{}, false
	}
	return p.member, true
}

// gone tells whether the node was not heard of for longer than the grace period.
func (v *liveness) gone(peer string, grace time.Duration) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	p := v.mu.nodes[peer]
	return p != nil && time.Since(p.heard) > grace
}

// forget drops the nodes that nobody asked about for long.
func (v *liveness) forget(after time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for peer, p := range v.mu.nodes {
		if time.Since(p.asked) > after {
			delete(v.mu.nodes, peer)
		}
	}
}

// summary says which nodes are known, live and are gone.
func (v *liveness) summary(grace time.Duration) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var all strings.Builder
	for _, peer := range slices.Sorted(maps.Keys(v.mu.nodes)) {
		p := v.mu.nodes[peer]
		fmt.Fprintf(&all, "%s %t %t\n", peer, p.lives, time.Since(p.heard) > grace)
	}
	return all.String()
}

// heard gives when the node was heard of last, or was asked about first; zero if nobody asked.
func (v *liveness) heard(peer string) time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	if p := v.mu.nodes[peer]; p != nil {
		return p.heard
	}
	return time.Time{}
}
