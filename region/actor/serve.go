package actor

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// CommitBarrier commits a barrier and returns its index.
func (l *Land) CommitBarrier(ctx context.Context, barrier world.Barrier) (uint64, error) {
	committed, answer := make(chan uint64, 1), make(chan error, 1)
	if !l.enqueue(func(l *land) {
		err := ErrNotHere
		if l.leading {
			err = l.group.Propose(barrier.Encode())
		}
		if err != nil {
			answer <- err
			return
		}
		l.inspection.waiters[barrier.Nonce] = committed
	}) {
		return 0, ErrNotHere
	}
	defer l.enqueue(func(l *land) { delete(l.inspection.waiters, barrier.Nonce) })
	select {
	case index := <-committed:
		return index, nil
	case err := <-answer:
		return 0, fmt.Errorf("commit a barrier: %w", err)
	case <-l.done:
		return 0, ErrNotHere
	case <-ctx.Done():
		return 0, fmt.Errorf("commit a barrier: %w", ctx.Err())
	}
}

// ServeDigests returns this member's report at a barrier to a peer.
func (l *Land) ServeDigests(ctx context.Context, peer string, at nodemsg.LogPosition) nodemsg.Fetched {
	return l.serveMember(ctx, peer, func(l *land) nodemsg.Fetched { return l.inspection.report(at.Index, l.applied) })
}

// ServePart returns a part as of a barrier to a peer.
func (l *Land) ServePart(ctx context.Context, peer string, at nodemsg.PartAt) nodemsg.Fetched {
	return l.serveMember(ctx, peer, func(l *land) nodemsg.Fetched { return l.inspection.part(at, l.applied) })
}

// serveMember has the region answer another member.
func (l *Land) serveMember(ctx context.Context, peer string, serve func(*land) nodemsg.Fetched) nodemsg.Fetched {
	served, err := Ask(ctx, l.Actor, l.enqueue, func(l *land) nodemsg.Fetched {
		if !l.member(peer) {
			return nodemsg.Fetched{Error: "only members may ask"}
		}
		return serve(l)
	})
	if errors.Is(err, ErrNotHere) {
		return nodemsg.Fetched{Error: "the region has been closed here"}
	}
	if err != nil {
		return nodemsg.Fetched{Error: transport.Clip(err)}
	}
	return served
}

// Flush hands everything that is committed to the group to be stored, without waiting for the next tick.
func (l *Land) Flush() {
	l.enqueue(func(l *land) {
		l.deliver()
		l.report()
	})
}

// EndIfIdle ends the region at the end of this tick if it is idle. Least is the index that must have been applied. It
// returns an error if the region is in use.
func (l *Land) EndIfIdle(ctx context.Context, least uint64) error {
	refused, err := Ask(ctx, l.Actor, l.enqueue, func(l *land) error {
		l.deliver()
		l.report()
		switch {
		case l.hub.len() > 0, !l.unloadable():
			return errors.New("the region is in use")
		case l.raft.Status().Applied < least:
			return errors.New("this member lags behind")
		}
		l.hibernating = true
		return nil
	})
	if errors.Is(err, ErrNotHere) {
		return nil // it has ended
	}
	return cmp.Or(err, refused)
}
