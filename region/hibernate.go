package region

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/integrity"
	"github.com/voxelpopuli/voxeld/region/placement"
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

const (
	// wakeHoldoff is how long a hibernating group is not woken by raft messages. Messages that were under way when it
	// closed are meaningless, and a member that wants to wake it retransmits.
	wakeHoldoff = time.Second
	// maxWaking bounds how many groups are opened at once because a member sent a message to them.
	maxWaking = 64
	// maxWakingPerPeer bounds how many of them one peer can cause.
	maxWakingPerPeer = 16
)

// hibernation makes the groups of idle regions hibernate: all members close them, so that they cost no ticks and no
// messages. They wake when a gateway subscribes, or when a member sends a message to them.
type hibernation struct {
	integrity.Node
	supervisor *placement.Supervisor
	facts      *integrity.Facts
	metrics    *metrics

	mu struct {
		sync.Mutex
		hibernating map[uint64]time.Time // groups that hibernate, and until when they are not woken
		waking      map[uint64]string    // groups that are being opened, and the member whose message caused it
	}
}

func newHibernation(n integrity.Node, sv *placement.Supervisor, f *integrity.Facts, m *metrics) *hibernation {
	b := &hibernation{Node: n, supervisor: sv, facts: f, metrics: m}
	b.mu.hibernating = make(map[uint64]time.Time)
	b.mu.waking = make(map[uint64]string)
	return b
}

// hibernate closes the group on all members, if all live members have applied as much as this node. It closes the group
// here and asks the others to do so. A member that refuses stands for election and so wakes all.
func (b *hibernation) hibernate(l *actor.Land) {
	b.Tasks.Start(func(ctx context.Context) {
		if !b.supervisor.BeginChange(l.ID()) {
			return
		}
		defer b.supervisor.EndChange(l.ID())
		ctx, cancel := context.WithTimeout(ctx, transport.AskTimeout)
		defer cancel()
		if err := b.hibernateNow(ctx, l); err != nil {
			b.Logger.Debug("region not hibernated", "region", l.ID(), "error", err)
		}
	})
}

func (b *hibernation) hibernateNow(ctx context.Context, l *actor.Land) error {
	status := l.Raft().Status()
	others, err := b.supervisor.UpToDate(ctx, placement.GroupOf(l), status)
	if err != nil {
		return err
	}
	if err := b.close(ctx, l, status.Last); err != nil {
		return err
	}
	for _, peer := range others {
		if _, err := b.Questions.Ask(ctx, peer, nodemsg.Question{Sleep: &nodemsg.Sleep{Group: l.ID(), Index: status.Last}}); err != nil {
			return fmt.Errorf("hibernate on member %s: %w", peer, err)
		}
	}
	return nil
}

// close ends a region that is idle, and waits for the end.
func (b *hibernation) close(ctx context.Context, l *actor.Land, least uint64) error {
	b.mu.Lock()
	b.mu.hibernating[l.ID()] = time.Now().Add(wakeHoldoff)
	b.mu.Unlock()
	err := l.EndIfIdle(ctx, least)
	if err != nil {
		b.mu.Lock()
		delete(b.mu.hibernating, l.ID())
		b.mu.Unlock()
		return err
	}
	select {
	case <-l.Done():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// accept closes a group because its leader, as this member knows it, has requested it.
func (b *hibernation) accept(ctx context.Context, peer string, s nodemsg.Sleep) error {
	l := b.Regions.Loaded(s.Group)
	if l == nil {
		return nil
	}
	if raft := l.Raft(); raft == nil || raft.Status().Leader != peer {
		return fmt.Errorf("hibernate region %d: %s does not lead it", s.Group, peer)
	}
	return b.close(ctx, l, s.Index)
}

// receive passes a message to its group. If the group is not open and the sender is a member of it, the group is opened
// beside the stream; messages that arrive meanwhile are dropped, since raft retransmits them. The same holds for a
// sender that the group does not know as a member yet. The message is valid until receive returns.
func (b *hibernation) receive(peer string, m nodemsg.RaftMessage) {
	err := b.Replicas.Receive(peer, m.Group, m.Data)
	if err == nil {
		return
	}
	var mend func(ctx context.Context, peer string, group uint64) error
	switch {
	case errors.Is(err, replica.ErrNotOpen):
		mend = b.wake
	case errors.Is(err, replica.ErrNotMember):
		mend = b.admitSender
	default:
		b.Logger.Debug("raft message refused", "peer", peer, "group", m.Group, "error", err)
		return
	}
	if !b.beginWaking(peer, m.Group) {
		return
	}
	m.Data = bytes.Clone(m.Data)
	started := b.Tasks.Start(func(ctx context.Context) {
		defer b.endWaking(m.Group)
		ctx, cancel := context.WithTimeout(ctx, transport.AskTimeout)
		defer cancel()
		err := mend(ctx, peer, m.Group)
		if err == nil {
			err = b.Replicas.Receive(peer, m.Group, m.Data)
		}
		if err != nil {
			b.Logger.Debug("raft message refused", "peer", peer, "group", m.Group, "error", err)
		}
	})
	if !started {
		b.endWaking(m.Group)
	}
}

// beginWaking reports whether the group may be woken now. It may not if it is being woken already, has just begun to
// hibernate, or too many groups are being woken, in total or by this peer.
func (b *hibernation) beginWaking(peer string, group uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if until, sleeps := b.mu.hibernating[group]; sleeps && time.Now().Before(until) {
		return false
	}
	delete(b.mu.hibernating, group)
	if _, under := b.mu.waking[group]; under || len(b.mu.waking) >= maxWaking {
		return false
	}
	fromPeer := 0
	for _, by := range b.mu.waking {
		if by == peer {
			fromPeer++
		}
	}
	if fromPeer >= maxWakingPerPeer {
		return false
	}
	b.mu.waking[group] = peer
	return true
}

func (b *hibernation) endWaking(group uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.mu.waking, group)
}

// admitSender makes an open group accept messages of members that are not in its log yet, if the catalog lists them:
// this node was away while they became members.
func (b *hibernation) admitSender(ctx context.Context, peer string, group uint64) error {
	l := b.Regions.Loaded(group)
	if l == nil {
		return actor.ErrNotHere // the catalog's own members are recorded only in its own log
	}
	info, err := b.Directory.ByID(ctx, group)
	if err != nil {
		return err
	}
	if !actor.HasMember(info, peer) {
		return fmt.Errorf("accept messages of %s: not a member of region %d", peer, group)
	}
	conf := actor.ConfigurationOf(info.Epoch)
	if conf.Recovered != l.Raft().Configuration().Recovered {
		return fmt.Errorf("accept messages of %s: the copy of region %d belongs to another group", peer, group)
	}
	for _, m := range info.Members {
		if m.Replica == 0 {
			return fmt.Errorf("accept messages of %s: the replicas of region %d are unknown", peer, group)
		}
		conf.Members = append(conf.Members, replica.Member{ID: m.Replica, Peer: m.Peer, Learner: m.Learner})
	}
	return l.Raft().TrustMembers(conf)
}

// wake opens a group because one of its members sent a message to it.
func (b *hibernation) wake(ctx context.Context, peer string, group uint64) error {
	if group == world.CatalogID {
		return actor.ErrNotHere // on its members it is always open
	}
	if err := b.facts.Err(group); err != nil {
		return err
	}
	info, err := b.Membership(ctx, group)
	if err != nil {
		return err
	}
	if !actor.HasMember(info, peer) { // it may have become a member while the group hibernated here
		if info, err = b.Directory.ByID(ctx, group); err != nil {
			return fmt.Errorf("wake region %d: %w", group, err)
		}
	}
	if !actor.HasMember(info, peer) {
		return fmt.Errorf("wake region %d: %s is not a member", group, peer)
	}
	if _, err = b.Regions.Open(ctx, group, info.Cell); err != nil {
		return err
	}
	b.metrics.woken.Inc()
	return nil
}
