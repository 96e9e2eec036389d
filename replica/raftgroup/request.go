package raftgroup

import (
	"context"
	"fmt"

	"github.com/voxelpopuli/voxeld/replica/raftlog"
)

// maxReads bounds the pending reads of one group.
const maxReads = 4096

// ReadIndex asks a majority whether this node still leads, and returns an index. An owner that has applied every
// Committed up to it has seen everything that was committed anywhere when ReadIndex was called, and may answer a
// linearizable read. It blocks for a round of heartbeats, without disk access. The error is ErrNotLeader (also if
// leadership is lost meanwhile), ErrOverloaded, one of Propose's, or the context's.
func (g *Group) ReadIndex(ctx context.Context) (uint64, error) {
	answer, err := g.RequestReadIndex()
	if err == nil {
		select {
		case r := <-answer:
			if r.Err == nil {
				return r.Index, nil
			}
			err = r.Err
		case <-g.node.Stopped:
			err = ErrStopped
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	return 0, fmt.Errorf("read index: %w", err)
}

// RequestReadIndex is ReadIndex without waiting: the answer is sent to the channel.
func (g *Group) RequestReadIndex() (<-chan ReadAnswer, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.mu.refusal != nil:
		return nil, g.mu.refusal
	case !g.mu.leading:
		return nil, ErrNotLeader
	case len(g.mu.inbox.reads) >= maxReads:
		return nil, fmt.Errorf("%w: %d reads wait", ErrOverloaded, len(g.mu.inbox.reads))
	}
	answer := make(chan ReadAnswer, 1)
	g.mu.inbox.reads = append(g.mu.inbox.reads, answer)
	g.enqueue()
	return answer, nil
}

// Transfer makes the leader transfer its leadership to another voter. It does not block; a Leadership reports success.
// If the member does not take over within the election timeout, this node continues to lead. Entries proposed meanwhile
// wait. The error is ErrNotLeader, ErrNotMember (also for a learner), ErrMember (for this node itself), ErrBehind, or
// one of Propose's.
func (g *Group) Transfer(peer string) error {
	if err := g.transfer(peer); err != nil {
		return fmt.Errorf("transfer leadership to %q: %w", peer, err)
	}
	return nil
}

func (g *Group) transfer(peer string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	conf := g.conf.Load()
	id := conf.ID(peer)
	switch {
	case g.mu.refusal != nil:
		return g.mu.refusal
	case !g.mu.leading:
		return ErrNotLeader
	case !conf.IsVoter(id):
		return raftlog.ErrNotMember
	case peer == g.node.Self:
		return ErrMember
	case !g.caughtUp(id):
		return ErrBehind
	}
	g.mu.inbox.transfer = id
	g.enqueue()
	return nil
}

// Campaign makes this node campaign at once, if it has a vote and the group has no known leader. So a group that was
// closed on all its members resumes without waiting for a timeout. The others should be opened first (or when Receive
// returns ErrNotOpen). Only one member at a time should campaign, or the votes are split. If another member has entries
// that this one lacks, it campaigns instead. Campaign may be repeated, and never blocks.
func (g *Group) Campaign() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.mu.ended {
		g.mu.inbox.campaign = true
		g.enqueue()
	}
}
