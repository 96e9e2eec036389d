package placement

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/membership"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// reconcile takes one step after the other until the group's members are right, or a step fails; a later round then
// tries again.
func (sv *Supervisor) reconcile(ctx context.Context, w Group) {
	for ctx.Err() == nil && !sv.Leaves() {
		status := w.Raft.Status()
		if !status.Self {
			return
		}
		next := sv.next(w, status)
		if err := sv.ensureMembersKnown(ctx, w); err != nil {
			sv.Logger.Debug("members not announced", "group", w.ID, "error", err)
			return
		}
		if next.Kind == membership.Stay {
			return
		}
		err := sv.executeStep(ctx, w, next)
		if err != nil {
			sv.Logger.Debug("change of members postponed", "group", w.ID, "peer", next.Peer, "kind", int(next.Kind), "error", err)
			return
		}
	}
}

// ensureMembersKnown ensures that the catalog has all members before the next step is taken. It accepts changes only
// from members that it knows, so a later leader that it did not know could not report one.
func (sv *Supervisor) ensureMembersKnown(ctx context.Context, w Group) error {
	info, err := w.Actor.Info(ctx)
	if err != nil {
		return err
	}
	conf := w.Raft.Configuration()
	for _, m := range conf.Members {
		if actor.HasMember(info, m.Peer) {
			continue
		}
		member, ok := sv.Detector.Known(m.Peer)
		if !ok {
			return fmt.Errorf("the address of %s is not known", m.Peer)
		}
		w.Actor.AddMember(member)
	}
	if info, err = w.Actor.Info(ctx); err != nil {
		return err
	}
	if info.Epoch < actor.EpochOf(conf) || len(info.Members) != len(conf.Members) {
		return errors.New("the region has not applied its members yet")
	}
	return sv.Announce(ctx, info)
}

// executeStep executes a step and waits until it is done.
func (sv *Supervisor) executeStep(ctx context.Context, w Group, next membership.Step) error {
	switch next.Kind {
	case membership.Add:
		// The node was alive some seconds ago. Check again: a dead learner would be in the way.
		member, err := sv.Detector.Check(ctx, next.Peer)
		if err != nil {
			return fmt.Errorf("the node to be added does not answer: %w", err)
		}
		if sv.outdated(next.Peer) {
			return errors.New("the node to be added runs an older version of voxeld, which does not understand the region's log")
		}
		w.Actor.AddMember(member)
		sv.forgetRefusal(w.ID, next.Peer) // what it refused before does not count
		return sv.Change(ctx, w, "add", next.Peer, w.Raft.AddLearner)
	case membership.Wait:
		return sv.inviteLearners(ctx, w)
	case membership.Promote:
		return sv.Change(ctx, w, "promote", next.Peer, w.Raft.Promote)
	case membership.Remove:
		return sv.Change(ctx, w, "remove", next.Peer, w.Raft.Remove)
	case membership.Transfer:
		if status := w.Raft.Status(); !sv.Slow() && sv.ledFor(w.ID, status.Term) < minLeaderTime {
			return errors.New("this node has only just become leader")
		}
		return sv.Transfer(ctx, w, next.Peer)
	case membership.Stay:
	}
	return nil
}

// inviteLearners asks those learners to join that do not take part yet, and waits until all have caught up. A learner
// that had its replica id before, or a later one, can never join under it: it is removed, and the next step adds it
// under a new id. Without learners the step waits until a member can lead, or be spared, which is seen in the next
// round.
func (sv *Supervisor) inviteLearners(ctx context.Context, w Group) error {
	info, err := w.Actor.Info(ctx)
	if err != nil {
		return err
	}
	members := w.Raft.Status().Members
	if !slices.ContainsFunc(members, func(m replica.Progress) bool { return m.Learner }) {
		return errors.New("too few other members have all of the log yet")
	}
	invite := nodemsg.Invite{Region: info}
	for _, m := range w.Raft.Configuration().Members {
		invite.Voters = append(invite.Voters, nodemsg.Replica{ID: m.ID, Peer: m.Peer, Learner: m.Learner})
	}
	for _, m := range members {
		if !m.Learner || m.Active && m.Match > 0 {
			continue
		}
		invite.Replica = m.ID
		answer, err := sv.Questions.Ask(ctx, m.Peer, nodemsg.Question{Invite: &invite})
		if err != nil && answer.Replica == m.ID {
			sv.Logger.Info("learner had its replica id before", "group", w.ID, "peer", m.Peer, "replica", m.ID)
			return sv.Change(ctx, w, "remove", m.Peer, w.Raft.Remove)
		}
		if _, lives := sv.Detector.Alive(m.Peer); err == nil || !lives {
			sv.forgetRefusal(w.ID, m.Peer)
		} else if sv.noteRefusal(w.ID, m.Peer) > patience && sv.passOver(w, m.Peer) {
			sv.Logger.Warn("node cannot take a copy of the region: another one gets it", "group", w.ID, "peer", m.Peer, "error", err)
			return sv.Change(ctx, w, "remove", m.Peer, w.Raft.Remove)
		}
		if err != nil {
			return fmt.Errorf("invite %s: %w", m.Peer, err)
		}
	}
	return AwaitGroup(ctx, func() bool {
		return !slices.ContainsFunc(sv.memberStates(w, w.Raft.Status()), func(m membership.Member) bool { return m.Learner && !m.CaughtUp })
	})
}
