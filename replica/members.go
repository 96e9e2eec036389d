package replica

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/voxelpopuli/voxeld/kv"
)

// Member is one replica of a group.
type Member struct {
	ID      uint64 // replica id: used once, ever, within its group
	Peer    string
	Learner bool // receives everything, is not counted for majorities, never leads
}

// maxPeer bounds the length of a peer id, in bytes.
const maxPeer = 256

// all returns voters and learners by ascending replica id.
func (c *configuration) all() []Member {
	members := make([]Member, 0, len(c.Members)+len(c.Learners))
	for _, m := range c.Members {
		members = append(members, Member{ID: m.ID, Peer: m.Peer})
	}
	for _, m := range c.Learners {
		members = append(members, Member{ID: m.ID, Peer: m.Peer, Learner: true})
	}
	slices.SortFunc(members, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	return members
}

// NewestID returns the highest replica id that the group has ever given to a member, as far as this node can tell.
func (g *Group) NewestID() uint64 { return g.conf.Load().Next - 1 }

// voter reports whether the replica has a vote.
func (c *configuration) voter(id uint64) bool {
	return slices.ContainsFunc(c.Members, func(m member) bool { return m.ID == id })
}

// own returns the replica id of the node that stores this configuration, even if it is no longer a member.
func (c *configuration) own(self string) uint64 {
	if c.Own != 0 {
		return c.Own
	}
	return c.id(self)
}

// change is the step from one configuration to the next. Each affects one replica, so that the majorities before and
// after it always overlap (raft dissertation, §4.1).
type change struct {
	kind raftpb.ConfChangeType // add a learner, add (promote) a voter, remove
	id   uint64
	peer string // of a new learner, otherwise ""
}

func (c change) raft() *raftpb.ConfChange {
	cc := &raftpb.ConfChange{Type: c.kind.Enum(), NodeId: &c.id}
	if c.peer != "" {
		cc.Context = []byte(c.peer)
	}
	return cc
}

func (c change) entry() (*raftpb.Entry, error) {
	data, err := proto.Marshal(c.raft())
	if err != nil {
		return nil, fmt.Errorf("encode configuration change: %w", err)
	}
	return &raftpb.Entry{Type: raftpb.EntryConfChange.Enum(), Data: data}, nil
}

// decodeChange decodes the data of a log entry of type EntryConfChange.
func decodeChange(data []byte) (change, error) {
	var cc raftpb.ConfChange
	if len(data) > 2*maxPeer {
		return change{}, fmt.Errorf("configuration change of %d bytes", len(data))
	}
	if err := proto.Unmarshal(data, &cc); err != nil {
		return change{}, fmt.Errorf("configuration change: %w", err)
	}
	c := change{kind: cc.GetType(), id: cc.GetNodeId(), peer: string(cc.GetContext())}
	switch {
	case len(cc.ProtoReflect().GetUnknown()) > 0 || cc.Id != nil || c.id == 0 || c.id > maxNumber || len(c.peer) > maxPeer:
	case c.kind == raftpb.ConfChangeAddLearnerNode && c.peer != "":
		return c, nil
	case (c.kind == raftpb.ConfChangeAddNode || c.kind == raftpb.ConfChangeRemoveNode) && c.peer == "":
		return c, nil
	}
	return change{}, fmt.Errorf("configuration change %v of replica %d, peer %.20q", c.kind, c.id, c.peer)
}

// apply returns the configuration after the change at the given index of the log. All members alike refuse a change that
// does not fit; the configuration then stays the same.
func (c *configuration) apply(index uint64, ch change) (*configuration, error) {
	next := &configuration{Index: index, Next: c.Next, Own: c.Own, Recovered: c.Recovered, Members: slices.Clone(c.Members), Learners: slices.Clone(c.Learners)}
	find := func(list []member) int {
		return slices.IndexFunc(list, func(m member) bool { return m.ID == ch.id })
	}
	voter, learner := find(c.Members), find(c.Learners)
	switch {
	case ch.kind == raftpb.ConfChangeAddLearnerNode:
		if ch.id < c.Next {
			return nil, fmt.Errorf("replica id %d was used before", ch.id)
		}
		next.Learners = append(next.Learners, member{ID: ch.id, Peer: ch.peer})
		slices.SortFunc(next.Learners, func(a, b member) int { return cmp.Compare(a.ID, b.ID) })
		next.Next = max(next.Next, ch.id+1)
	case ch.kind == raftpb.ConfChangeAddNode && learner >= 0:
		next.Members = append(next.Members, next.Learners[learner])
		next.Learners = slices.Delete(next.Learners, learner, learner+1)
		slices.SortFunc(next.Members, func(a, b member) int { return cmp.Compare(a.ID, b.ID) })
	case ch.kind == raftpb.ConfChangeRemoveNode && voter >= 0:
		next.Members = slices.Delete(next.Members, voter, voter+1)
	case ch.kind == raftpb.ConfChangeRemoveNode && learner >= 0:
		next.Learners = slices.Delete(next.Learners, learner, learner+1)
	default:
		return nil, fmt.Errorf("%v does not fit replica %d", ch.kind, ch.id)
	}
	if len(next.Learners) == 0 {
		next.Learners = nil
	}
	return next, next.check()
}

// roster determines whose messages the gate admits: those of the members, of members added by a change in this node's log
// that is not yet known to be committed, and of those that the owner trusts. Immutable.
type roster struct {
	own     uint64 // replica id of this node
	members []member
}

func (ros *roster) includes(peer string) bool {
	return slices.ContainsFunc(ros.members, func(m member) bool { return m.Peer == peer })
}

func (ros *roster) admits(peer string, id uint64) bool {
	return slices.Contains(ros.members, member{ID: id, Peer: peer})
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
		return ErrNotMember
	case !ros.admits(peer, from):
		return fmt.Errorf("%w: %q is not replica %d", ErrImplausible, peer, from)
	case to > ros.own:
		return fmt.Errorf("%w: %w: to replica %d, this is %d", ErrImplausible, ErrReplaced, to, ros.own)
	case to != ros.own:
		return fmt.Errorf("%w: to replica %d, this is %d", ErrImplausible, to, ros.own)
	}
	return nil
}

// membership holds a replica's configurations other than the one in force.
type membership struct {
	unstored []*configuration // in force since entries that the stored state does not contain yet, ascending
	trusted  *Configured      // set by the owner; nil once a configuration of this index is in force
	change   *change          // proposed by the owner, not yet taken by raft
	removed  bool             // the owner has been informed that this node is no longer a member
	roster   *roster
}

// at returns the configuration made by entry index, nil if that entry made none.
func (m *membership) at(index uint64) *configuration {
	for _, c := range m.unstored {
		if c.Index == index {
			return c
		}
	}
	return nil
}

// upTo returns the newest configuration to be stored together with an applied index, nil if there is none.
func (m *membership) upTo(applied uint64) *configuration {
	var newest *configuration
	for _, c := range m.unstored {
		if c.Index <= applied {
			newest = c
		}
	}
	return newest
}

func (m *membership) stored(applied uint64) {
	m.unstored = slices.DeleteFunc(m.unstored, func(c *configuration) bool { return c.Index <= applied })
}

func (r *replica) confWrite(c *configuration) kv.Write {
	encoded, err := encodeConfiguration(c)
	if err != nil {
		panic(err) // integers and strings can be encoded
	}
	return kv.Write{Table: tableState, Key: stateKey(r.group, kindConfig), Value: encoded}
}

// publishRoster updates the gate's roster from the configuration, the log and the trusted members.
func (r *replica) publishRoster() {
	ros := &roster{own: r.id}
	add := func(id uint64, peer string) {
		if m := (member{ID: id, Peer: peer}); id != r.id && peer != r.host.self && !slices.Contains(ros.members, m) {
			ros.members = append(ros.members, m)
		}
	}
	if r.conf.Index == 0 || r.conf.id(r.host.self) == r.id {
		for _, m := range r.conf.all() {
			add(m.ID, m.Peer)
		}
		for _, c := range r.log.changes {
			if c.peer != "" {
				add(c.id, c.peer)
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
func (r *replica) reconfigure(entry *raftpb.Entry) {
	index := entry.GetIndex()
	c, err := decodeChange(entry.GetData())
	if err == nil && r.conf.Index >= index {
		err = errors.New("it is in force already")
	}
	var next *configuration
	if err == nil {
		next, err = r.conf.apply(index, c)
	}
	r.log.changes = slices.DeleteFunc(r.log.changes, func(c logged) bool { return c.index <= index })
	if err != nil {
		r.logger.Warn("configuration change refused", "index", index, "error", err)
		r.publishRoster()
		return
	}
	if c.kind == raftpb.ConfChangeRemoveNode {
		r.announceRemoval(c.id, index)
	}
	r.node.ApplyConfChange(c.raft())
	if next.id(r.host.self) == 0 {
		next.Own = r.id // the tombstone needs this replica's id
	}
	r.conf, r.log.conf = next, next
	r.members.unstored = append(r.members.unstored, next)
	if v := r.members.trusted; v != nil && v.Index <= index {
		r.members.trusted = nil
	}
	r.publishRoster()
	r.host.ticking.start(r)
	r.host.flushDue = true // snapshots wait for it
	r.logger.Info("configuration changed", "index", index, "members", next.all())
}

// announceRemoval announces the commit to removed members: raft sends them nothing any more. (A removed leader informs all
// members, because none of them may have the commit index yet.) The message carries nothing that a heartbeat of raft
// could not carry. If it is lost, the removed member's owner has to find out by asking an authority.
func (r *replica) announceRemoval(id, index uint64) {
	if !r.leading || r.host.send == nil {
		return
	}
	status := r.node.Status()
	for _, to := range slices.Sorted(maps.Keys(status.Progress)) {
		progress := status.Progress[to]
		if to == r.id || to != id && id != r.id {
			continue
		}
		m := &raftpb.Message{
			Type: raftpb.MsgHeartbeat.Enum(), From: new(r.id), To: new(to), Term: new(r.term),
			Commit: new(min(progress.Match, index)),
		}
		encoded, err := encodeMessage(m)
		if peer := r.members.roster.peer(to); err == nil && peer != "" {
			r.host.send(peer, r.group, encoded)
		}
	}
}

// deliverConfiguration delivers the configuration that entry index made, if it made one.
func (r *replica) deliverConfiguration(index uint64) {
	c := r.members.at(index)
	if c == nil {
		r.handle.pushConfigured(nil)
		return
	}
	r.handle.pushConfigured(&Configured{Index: index, Members: c.all(), Recovered: c.Recovered})
	if c.id(r.host.self) != r.id && !r.members.removed {
		r.members.removed = true
		r.host.ticking.stop(r)
		r.handle.pushRemoved()
	}
}
