package raftgroup

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/voxelpopuli/voxeld/replica/raftframe"
	"github.com/voxelpopuli/voxeld/replica/raftlog"
)

// NewestID returns the highest replica id that the group has ever given to a member, as far as this node can tell.
func (g *Group) NewestID() uint64 { return g.conf.Load().Next - 1 }

// roster determines whose messages the gate admits: those of the members, of members added by a change in this node's log
// that is not yet known to be committed, and of those that the owner trusts. Immutable.
type roster struct {
	own     uint64 // replica id of this node
	members []raftlog.Member
}

func (ros *roster) includes(peer string) bool {
	return slices.ContainsFunc(ros.members, func(m raftlog.Member) bool { return m.Peer == peer })
}

func (ros *roster) admits(peer string, id uint64) bool {
	return slices.Contains(ros.members, raftlog.Member{ID: id, Peer: peer})
}

func (ros *roster) peer(id uint64) string {
	for _, m := range ros.members {
		if m.ID == id {
			return m.Peer
		}
	}
	return ""
}

// check validates the replica ids of a message from peer.
func (ros *roster) check(peer string, from, to uint64) error {
	switch {
	case !ros.includes(peer):
		return raftlog.ErrNotMember
	case !ros.admits(peer, from):
		return fmt.Errorf("%w: %q is not replica %d", raftframe.ErrImplausible, peer, from)
	case to > ros.own:
		return fmt.Errorf("%w: %w: to replica %d, this is %d", raftframe.ErrImplausible, ErrReplaced, to, ros.own)
	case to != ros.own:
		return fmt.Errorf("%w: to replica %d, this is %d", raftframe.ErrImplausible, to, ros.own)
	}
	return nil
}

// membership holds a replica's configurations other than the one in force.
type membership struct {
	unstored []*raftlog.Configuration // in force since entries that the stored state does not contain yet, ascending
	trusted  *Configured              // set by the owner; nil once a configuration of this index is in force
	change   *raftlog.Change          // proposed by the owner, not yet taken by raft
	removed  bool                     // the owner has been informed that this node is no longer a member
	roster   *roster
}

// at returns the configuration made by entry index, nil if that entry made none.
func (m *membership) at(index uint64) *raftlog.Configuration {
	for _, c := range m.unstored {
		if c.Index == index {
			return c
		}
	}
	return nil
}

// upTo returns the newest configuration to be stored together with an applied index, nil if there is none.
func (m *membership) upTo(applied uint64) *raftlog.Configuration {
	var newest *raftlog.Configuration
	for _, c := range m.unstored {
		if c.Index <= applied {
			newest = c
		}
	}
	return newest
}

func (m *membership) stored(applied uint64) {
	m.unstored = slices.DeleteFunc(m.unstored, func(c *raftlog.Configuration) bool { return c.Index <= applied })
}

// publishRoster updates the gate's roster from the configuration, the log and the trusted members.
func (r *Replica) publishRoster() {
	ros := &roster{own: r.id}
	add := func(id uint64, peer string) {
		if m := (raftlog.Member{ID: id, Peer: peer}); id != r.id && peer != r.node.Self && !slices.Contains(ros.members, m) {
			ros.members = append(ros.members, m)
		}
	}
	if r.conf.Index == 0 || r.conf.ID(r.node.Self) == r.id {
		for _, m := range r.conf.All() {
			add(m.ID, m.Peer)
		}
		for _, c := range r.log.Changes {
			if c.Peer != "" {
				add(c.ID, c.Peer)
			}
		}
		if r.members.trusted != nil {
			for _, m := range r.members.trusted.Members {
				add(m.ID, m.Peer)
			}
		}
	}
	r.members.roster = ros
	r.handle.conf.Store(r.conf)
	r.handle.roster.Store(ros)
}

// reconfigure puts a committed change into force.
func (r *Replica) reconfigure(entry *raftpb.Entry) {
	index := entry.GetIndex()
	c, err := raftlog.DecodeChange(entry.GetData())
	if err == nil && r.conf.Index >= index {
		err = errors.New("it is in force already")
	}
	var next *raftlog.Configuration
	if err == nil {
		next, err = r.conf.Apply(index, c)
	}
	r.log.Changes = slices.DeleteFunc(r.log.Changes, func(c raftlog.LoggedChange) bool { return c.Index <= index })
	if err != nil {
		r.logger.Warn("configuration change refused", "index", index, "error", err)
		r.publishRoster()
		return
	}
	if c.Kind == raftpb.ConfChangeRemoveNode {
		r.announceRemoval(c.ID, index)
	}
	r.raw.ApplyConfChange(c.Raft())
	if next.ID(r.node.Self) == 0 {
		next.Own = r.id // the tombstone needs this replica's id
	}
	r.conf, r.log.Conf = next, next
	r.members.unstored = append(r.members.unstored, next)
	if v := r.members.trusted; v != nil && v.Index <= index {
		r.members.trusted = nil
	}
	r.publishRoster()
	r.effects.Clock = ClockStart
	r.effects.StoreNow = true // snapshots wait for it
	r.logger.Info("configuration changed", "index", index, "members", next.All())
}

// announceRemoval announces the commit to removed members: raft sends them nothing any more. (A removed leader informs all
// members, because none of them may have the commit index yet.) The message carries nothing that a heartbeat of raft
// could not carry. If it is lost, the removed member's owner has to find out by asking an authority.
func (r *Replica) announceRemoval(id, index uint64) {
	if !r.leading || r.node.Send == nil {
		return
	}
	status := r.raw.Status()
	for _, to := range slices.Sorted(maps.Keys(status.Progress)) {
		progress := status.Progress[to]
		if to == r.id || to != id && id != r.id {
			continue
		}
		m := &raftpb.Message{
			Type: raftpb.MsgHeartbeat.Enum(), From: new(r.id), To: new(to), Term: new(r.term),
			Commit: new(min(progress.Match, index)),
		}
		encoded, err := raftframe.Encode(m)
		if peer := r.members.roster.peer(to); err == nil && peer != "" {
			r.node.Send(peer, r.group, encoded)
		}
	}
}

// deliverConfiguration delivers the configuration that entry index made, if it made one.
func (r *Replica) deliverConfiguration(index uint64) {
	c := r.members.at(index)
	if c == nil {
		r.handle.pushConfigured(nil)
		return
	}
	r.handle.pushConfigured(new(NewConfigured(c)))
	if c.ID(r.node.Self) != r.id && !r.members.removed {
		r.members.removed = true
		r.effects.Clock = ClockStop
		r.handle.pushRemoved()
	}
}
