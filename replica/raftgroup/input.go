package raftgroup

import (
	"errors"
	"fmt"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/replica/raftframe"
)

// Tick advances raft's clock, or stops it if the replica leads alone with nothing to do.
func (r *Replica) Tick() error {
	if r.members.alone() && r.lastLeadership.Self && r.proposals.empty() {
		r.publishProgress() // a delivery just taken must not remain
		r.effects.Clock = ClockStop
		return nil
	}
	return r.guard("tick", func() error {
		r.ticks++
		r.announcements.tick()
		r.snapshots.retry(r.raw, r.ticks)
		r.raw.Tick()
		if r.lastLeadership.Self {
			r.propose()
		}
		r.publishProgress()
		return nil
	})
}

// ProcessInput processes what the group's inbox holds.
func (r *Replica) ProcessInput() error {
	err := r.guard("take", func() error { return r.processInbox(r.handle.empty()) })
	if !r.proposals.empty() {
		r.effects.Clock = ClockStart
	}
	return err
}

// processInbox processes the input of owner and network for the group.
func (r *Replica) processInbox(in inbox) error {
	if c := in.trusted; c != nil && (c.Index == 0 || r.log.Conf.Index < c.Index) {
		r.members.trusted = c
		r.publishRoster()
	}
	if in.reported > r.reported || len(in.writes) > 0 {
		r.recordApplied(in.reported, in.writes)
	}
	if in.refill {
		if err := r.deliverEntries(nil); err != nil {
			return err
		}
	}
	if r.raw == nil || !r.lastLeadership.Self {
		answerAll(in.reads, ErrNotLeader)
		in.reads = nil
	}
	if r.raw == nil || r.members.removed {
		return nil // stalled: messages are lost, as on a network; pushLeadership has dropped the proposals
	}
	return r.guard("step", func() error {
		for _, m := range in.messages {
			if err := r.check.admit(m, r.raw.BasicStatus(), r.commit, &r.reads); err != nil {
				r.node.Rejected.Inc()
				log := r.logger.Debug
				if errors.Is(err, errConflict) && !r.check.told {
					log, r.check.told = r.logger.Error, true
				}
				log("message refused", "error", err)
				r.publishStatus()
				continue
			}
			if err := r.raw.Step(m); err != nil {
				r.logger.Debug("message ignored", "error", err) // raft's error for a message that it ignores for now
			}
			r.contact.record(m.GetFrom())
			if err := r.campaignIfAhead(m); err != nil {
				return err
			}
		}
		if r.check.conflict != r.check.conflictStored {
			r.effects.StoreLater, r.effects.StoreNow = true, true
		}
		if err := r.processRequests(in); err != nil {
			return err
		}
		r.reads.ask(r.raw, in.reads)
		if r.lastLeadership.Self {
			r.proposals.entries = append(r.proposals.entries, in.proposals...)
			r.propose()
		}
		return nil
	})
}

// recordApplied records what the owner has applied.
func (r *Replica) recordApplied(index uint64, writes []kv.Write) {
	r.unstored.add(writes)
	r.reported = index
	r.raiseApplied()
	r.effects.StoreLater = true
	if r.unstored.size > r.node.Limits.Pending {
		r.effects.StoreNow = true
	}
}

func (r *Replica) propose() {
	if r.proposals.pass(r.raw, &r.id) {
		r.announcements.entries++
	}
}

// campaignIfAhead campaigns when a member asks for a vote that it cannot get, because it lacks entries that this node
// has, and there is no leader. So the member opened first need not be the one with the whole log, and no timeout
// passes.
func (r *Replica) campaignIfAhead(m *raftpb.Message) error {
	if m.GetType() != raftpb.MsgPreVote {
		return nil
	}
	s := r.raw.BasicStatus()
	if s.Lead != 0 || s.RaftState != raft.StateFollower || !r.members.votes() {
		return nil
	}
	term, err := r.log.Term(r.log.Last)
	if err != nil {
		return err
	}
	if term > m.GetLogTerm() || term == m.GetLogTerm() && r.log.Last > m.GetIndex() {
		return r.raw.Campaign()
	}
	return nil
}

// processRequests processes the owner's requests other than entries: changes, transfers, elections.
func (r *Replica) processRequests(in inbox) error {
	if in.campaign && r.leader == 0 && !r.leading && r.members.votes() {
		return r.raw.Campaign()
	}
	if !r.lastLeadership.Self {
		return nil
	}
	if in.change != nil {
		r.proposals.change = in.change
	}
	if in.transfer != 0 && r.raw.BasicStatus().RaftState == raft.StateLeader { // else raft would ask its new leader
		r.raw.TransferLeader(in.transfer)
	}
	return nil
}

// Install passes a snapshot to raft, which decides whether the group needs it; act continues from there.
func (r *Replica) Install(s *IncomingSnapshot) error {
	if r.incoming.snapshot != nil {
		s.Reply(fmt.Errorf("%w: another snapshot is being installed", ErrOverloaded))
		return nil
	}
	m := s.message()
	err := r.members.roster.check(r.members.roster.peer(s.From), s.From, s.To)
	if err == nil {
		err = r.check.admit(m, r.raw.BasicStatus(), r.commit, &r.reads)
	}
	if err != nil {
		s.Reply(err)
		return nil
	}
	before, after := uint64(0), uint64(0)
	err = r.guard("step", func() error {
		before = r.raw.BasicStatus().GetCommit()
		err := r.raw.Step(m)
		after = r.raw.BasicStatus().GetCommit()
		return err
	})
	switch {
	case err != nil:
		s.Reply(err)
		return err
	case before >= s.Index:
		s.Reply(nil) // raft reports this node's position to the leader
	case after < s.Index:
		s.Reply(fmt.Errorf("%w: raft refused it", raftframe.ErrImplausible))
	default:
		r.incoming.snapshot = s
	}
	return nil
}
