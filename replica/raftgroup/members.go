package raftgroup

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/voxelpopuli/voxeld/replica/raftframe"
	"github.com/voxelpopuli/voxeld/replica/raftlog"
)

// roster determines whose messages are accepted: those of the members, of members added by a change in this node's log
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

// membership is who belongs to a replica's group. The configuration in force is log.Conf. Owned by Host.Run.
type membership struct {
	self     string       // this node's peer id
	id       uint64       // this node's replica id
	log      *raftlog.Log // contains the changes that are not in force
	roster   *roster
	unstored []*raftlog.Configuration // in force since entries that the stored state does not contain yet, ascending
	trusted  *Configured              // set by the owner; nil once a configuration of this index is in force
	removed  bool                     // the owner has been informed that this node is no longer a member
}

// alone reports whether this node is the only member, and needs no clock to lead.
func (m *membership) alone() bool { return m.onlyVoter() && len(m.log.Conf.Learners) == 0 }

// onlyVoter reports whether this node is the only voter.
func (m *membership) onlyVoter() bool { return m.votes() && len(m.log.Conf.Voters) == 1 }

// votes reports whether this node may campaign.
func (m *membership) votes() bool { return m.log.Conf.Index > 0 && m.log.Conf.IsVoter(m.id) }

// peer returns the peer with a replica id, "" if there is none.
func (m *membership) peer(id uint64) string {
	if id == m.id {
		return m.self
	}
	return m.roster.peer(id)
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

// updateRoster makes a new roster of the configuration, the log and the trusted members.
func (m *membership) updateRoster() {
	conf := m.log.Conf
	ros := &roster{own: m.id}
	add := func(id uint64, peer string) {
		if member := (raftlog.Member{ID: id, Peer: peer}); id != m.id && peer != m.self && !slices.Contains(ros.members, member) {
			ros.members = append(ros.members, member)
		}
	}
	if conf.Index == 0 || conf.ID(m.self) == m.id {
		for _, member := range conf.All() {
			add(member.ID, member.Peer)
		}
		for _, c := range m.log.Changes {
			if c.Peer != "" {
				add(c.ID, c.Peer)
			}
		}
		if m.trusted != nil {
			for _, member := range m.trusted.Members {
				add(member.ID, member.Peer)
			}
		}
	}
	m.roster = ros
}

// next returns the change in a committed entry and the configuration that it makes. After an error the change has no
// effect.
func (m *membership) next(entry *raftpb.Entry) (c raftlog.Change, conf *raftlog.Configuration, err error) {
	index := entry.GetIndex()
	m.log.Changes = slices.DeleteFunc(m.log.Changes, func(c raftlog.LoggedChange) bool { return c.Index <= index })
	c, err = raftlog.DecodeChange(entry.GetData())
	switch {
	case err != nil:
		return c, nil, err
	case m.log.Conf.Index >= index:
		return c, nil, errors.New("it is in force already")
	}
	conf, err = m.log.Conf.Apply(index, c)
	if err == nil && conf.ID(m.self) == 0 {
		conf.Own = m.id // the tombstone needs this replica's id
	}
	return c, conf, err
}

// enter puts a configuration into force.
func (m *membership) enter(c *raftlog.Configuration) {
	m.log.Conf = c
	if m.trusted != nil && m.trusted.Index <= c.Index {
		m.trusted = nil
	}
}

// removalNotices returns the messages that announce the commit index to a removed member: raft sends it nothing any
// more. (A removed leader informs all members, because none of them may have the commit index yet.) They carry nothing
// that a heartbeat of raft could not carry. If one is lost, the removed member's owner has to find out by asking an
// authority.
func (m *membership) removalNotices(status raft.Status, term, removed, index uint64) (notices []*raftpb.Message) {
	for _, to := range slices.Sorted(maps.Keys(status.Progress)) {
		if to == m.id || to != removed && removed != m.id {
			continue
		}
		notices = append(notices, &raftpb.Message{
			Type: raftpb.MsgHeartbeat.Enum(), From: new(m.id), To: new(to), Term: new(term),
			Commit: new(min(status.Progress[to].Match, index)),
		})
	}
	return notices
}
