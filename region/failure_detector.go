package region

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

const (
	// minAskEvery and maxAskEvery bound the longest interval between two questions to a node: an eighth of the time after which a
	// silent member is replaced, within these bounds. A node that has sent a question meanwhile is alive and need not be asked.
	minAskEvery, maxAskEvery = 2500 * time.Millisecond, 7500 * time.Millisecond
	// maxStrangerEvery bounds the interval for a node that shares no group led by this one: a quarter of that time, between
	// minAskEvery and this. Such a node may be invited into a group, and is asked once more just before.
	maxStrangerEvery = 30 * time.Second
	// describedFor is how long a node's description stays valid.
	describedFor = 30 * time.Second
	// maxQuestions bounds how many nodes are asked at the same time.
	maxQuestions = 16
)

// failureDetector tracks which other nodes are alive. Any goroutine may use it.
type failureDetector struct {
	every         time.Duration // interval between two questions to a node
	strangerEvery time.Duration // the same for a node that shares no group led by this one

	mu struct {
		sync.Mutex
		nodes map[string]*nodeState
	}
}

// nodeState is what is known of a node.
type nodeState struct {
	member       nodemsg.Member // as it described itself; zero if it never did
	heard        time.Time      // last; or when it was first asked about
	asked        time.Time      // last
	every        time.Duration  // interval between two questions
	described    time.Time      // when it described itself last
	lives        bool           // it answered the last question, or has sent one since
	leavingSince time.Time      // when it announced that it is about to stop; zero once it answers again
}

// leavingTimeout is how long a leaving node may take to stop. Afterwards its leaving flag is ignored.
const leavingTimeout = time.Minute

// recheckEvery is the shortest interval of questions to a node that announced that it leaves and still sends messages.
const recheckEvery = 250 * time.Millisecond

// leave records that a node is about to stop: it does not count as alive until it answers again.
func (v *failureDetector) leave(peer string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	p := v.state(peer)
	p.lives, p.leavingSince = false, time.Now()
}

// shouldRecheck reports whether to ask a node that sent a message whether it is back, because it had announced that it leaves.
// The question is then counted as asked.
func (v *failureDetector) shouldRecheck(peer string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	p := v.mu.nodes[peer]
	if p == nil || p.leavingSince.IsZero() || time.Since(p.asked) < recheckEvery {
		return false
	}
	p.asked = time.Now()
	return true
}

// leaves reports whether the node is about to stop.
func (v *failureDetector) leaves(peer string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	p := v.mu.nodes[peer]
	return p != nil && !p.leavingSince.IsZero() && time.Since(p.leavingSince) < leavingTimeout
}

// setGrace sets the question intervals for the time after which a silent member is replaced.
func (v *failureDetector) setGrace(grace time.Duration) {
	v.every = min(max(minAskEvery, grace/8), maxAskEvery)
	v.strangerEvery = min(max(minAskEvery, grace/4), maxStrangerEvery)
}

// freshFor returns how long the node counts as alive after it was heard from: nodes are asked in rounds.
func (p *nodeState) freshFor() time.Duration { return 2*p.every + superviseEvery }

// noteQuestion records that a node has asked for this node's description, which proves it alive. It counts only if the node
// described itself lately. A node that leaves, or did not answer the last question, must answer first; one that did not answer is
// asked in the next round.
func (v *failureDetector) noteQuestion(peer string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	p := v.mu.nodes[peer]
	switch {
	case p == nil || !p.leavingSince.IsZero():
	case !p.lives:
		p.asked = time.Time{}
	case time.Since(p.described) < describedFor:
		p.heard = time.Now()
	}
}

// state returns the record of a node. The caller holds the lock.
func (v *failureDetector) state(peer string) *nodeState {
	if v.mu.nodes == nil {
		v.mu.nodes = make(map[string]*nodeState)
	}
	p := v.mu.nodes[peer]
	if p == nil {
		p = &nodeState{heard: time.Now(), every: v.every}
		v.mu.nodes[peer] = p
	}
	return p
}

// watched maps nodes to the interval at which each is asked.
type watched map[string]time.Duration

// add watches a node at the shortest of the requested intervals.
func (w watched) add(peer string, every time.Duration) {
	if now, there := w[peer]; !there || every < now {
		w[peer] = every
	}
}

// refresh asks those peers for their description that are due.
func (v *failureDetector) refresh(ctx context.Context, peers watched, describe func(context.Context, string) (nodemsg.Member, error)) {
	var crew sync.WaitGroup
	defer crew.Wait()
	tokens := make(chan struct{}, maxQuestions)
	for peer, every := range peers {
		if !v.due(peer, every) {
			continue
		}
		tokens <- struct{}{}
		crew.Go(func() {
			defer func() { <-tokens }()
			v.check(ctx, peer, describe) //nolint:errcheck // the result is recorded
		})
	}
}

// due sets the peer's interval and reports whether the peer is to be asked now.
func (v *failureDetector) due(peer string, every time.Duration) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	p := v.state(peer)
	p.every = every
	if !p.lives {
		every = minAskEvery // so that one slow answer does not count for long
	}
	if time.Since(p.asked) < every || p.lives && time.Since(p.heard) < every && time.Since(p.described) < describedFor {
		return false
	}
	p.asked = time.Now()
	return true
}

// check asks a node for its description and records the result.
func (v *failureDetector) check(ctx context.Context, peer string, describe func(context.Context, string) (nodemsg.Member, error)) (nodemsg.Member, error) {
	asked := time.Now()
	member, err := describe(ctx, peer)
	if err == nil || ctx.Err() == nil {
		v.note(peer, asked, member, err == nil)
	}
	return member, err
}

// note records the answer to a question, or that there was none, unless newer information is known.
func (v *failureDetector) note(peer string, asked time.Time, member nodemsg.Member, lives bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	p := v.state(peer)
	if p.leavingSince.After(asked) || !lives && p.described.After(asked) {
		return
	}
	if p.lives = lives; lives {
		p.heard, p.member, p.leavingSince = time.Now(), member, time.Time{}
		p.described = p.heard
	}
}

// lives returns the node's description if it has answered lately.
func (v *failureDetector) lives(peer string) (nodemsg.Member, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	p := v.mu.nodes[peer]
	if p == nil || !p.lives || time.Since(p.heard) > p.freshFor() {
		return nodemsg.Member{}, false
	}
	return p.member, true
}

// gone reports whether nothing was heard from the node for longer than the grace period.
func (v *failureDetector) gone(peer string, grace time.Duration) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	p := v.mu.nodes[peer]
	return p != nil && time.Since(p.heard) > grace
}

// forget drops the nodes that were not asked about for a long time.
func (v *failureDetector) forget(after time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for peer, p := range v.mu.nodes {
		if time.Since(p.asked) > after {
			delete(v.mu.nodes, peer)
		}
	}
}

// summary returns a text that lists which nodes are known, alive and gone.
func (v *failureDetector) summary(grace time.Duration) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var all strings.Builder
	for _, peer := range slices.Sorted(maps.Keys(v.mu.nodes)) {
		p := v.mu.nodes[peer]
		fmt.Fprintf(&all, "%s %t %t\n", peer, p.lives, time.Since(p.heard) > grace)
	}
	return all.String()
}

// heard returns when the node was last heard from, or first asked about; zero if it was never asked about.
func (v *failureDetector) heard(peer string) time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	if p := v.mu.nodes[peer]; p != nil {
		return p.heard
	}
	return time.Time{}
}
