package raftgroup

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/replica/raftframe"
	"github.com/voxelpopuli/voxeld/replica/raftlog"
)

// maxTermJump is how many elections a member may have missed.
const maxTermJump = 1 << 20

// Receive puts a message of a peer into the inbox; see Host.Receive.
func (g *Group) Receive(peer string, message []byte) error {
	roster := g.roster.Load()
	if peer == g.node.Self || !roster.includes(peer) {
		return raftlog.ErrNotMember
	}
	m, err := raftframe.Decode(message)
	if err != nil {
		return fmt.Errorf("%w: %w", raftframe.ErrImplausible, err)
	}
	if err := roster.check(peer, m.GetFrom(), m.GetTo()); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.messageSize+len(message) > g.node.Limits.Messages {
		return fmt.Errorf("%w: %d bytes of messages wait", ErrOverloaded, g.mu.messageSize)
	}
	g.mu.messageSize += len(message) + raftlog.EntryOverhead
	g.mu.inbox.messages = append(g.mu.inbox.messages, m)
	g.enqueue()
	return nil
}

// ReadSnapshot reads a snapshot that a peer sends; see Host.ReceiveSnapshot. Budget is called before n bytes are
// allocated. If the group has nothing yet, and its tables allow it, store stores the rows of a large snapshot in
// pieces.
func (g *Group) ReadSnapshot(peer string, r io.Reader, budget func(n int) error, store func(rows []kv.Write) error) (*IncomingSnapshot, error) {
	self := g.node.Self
	if peer == self || !g.roster.Load().includes(peer) {
		return nil, raftlog.ErrNotMember
	}
	if g.tables == nil {
		return nil, errors.New("the group has no tables for snapshots")
	}
	s := new(IncomingSnapshot)
	admit := func() error {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.mu.basicStatus.conflict {
			return errConflict // before all rows are sent, again and again
		}
		return g.roster.Load().check(peer, s.From, s.To)
	}
	addressed := func() error {
		if s.Conf.Peer(s.From) != peer || s.Conf.Peer(s.To) != self {
			return fmt.Errorf("%w: %q and %q are not replicas %d and %d of %v", raftframe.ErrImplausible, peer, self, s.From, s.To, s.Conf.All())
		}
		return nil
	}
	if raftlog.InPieces(g.tables) && g.HasNothing() {
		s.Piece = g.node.Limits.Piece
		s.Store = func(rows []kv.Write) error {
			if err := addressed(); err != nil {
				return err
			}
			return store(rows)
		}
	}
	err := s.Decode(r, g.tables, admit, budget)
	if err == nil {
		err = addressed()
	}
	return s, err
}

// HasNothing reports whether no entry and no snapshot was ever applied by this replica.
func (g *Group) HasNothing() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mu.delivered == 0
}

// messageCheck checks messages against the group's state, before they are passed to raft.
type messageCheck struct {
	// floor: raft's last index is at least this. It is exact when everything that raft has is stored.
	floor uint64
	// log is the replica's, for entries up to the commit index of the last finished Ready, which never change.
	log *raftlog.Log
	// conflict: the log of a leader conflicts with a committed entry. No snapshot is installed until a leader has what
	// is committed here: the next leader may lack the entry, too. It is kept after a restart.
	conflict, conflictStored bool
	told                     bool // that is logged
	// lost: the leader counts on entries that this member has acknowledged, and does not have.
	lost bool
}

// errConflict is why the messages of a leader are refused whose log conflicts with an entry that is committed here.
// Raft rules that out. So some member has forgotten what it had acknowledged, because its storage was put back to an
// earlier state that nobody noticed, and acknowledged entries are missing there. This copy has them, so it must not be
// changed.
var errConflict = errors.New("the leader's log conflicts with an entry that is committed here: acknowledged edits are missing there; " +
	"this copy is not changed")

// conflicts reports whether an append conflicts with a committed entry.
func (c *messageCheck) conflicts(m *raftpb.Message, commit uint64) bool {
	differs := func(index, term uint64) bool {
		own, err := c.log.Term(index)
		return index <= commit && err == nil && own != term
	}
	return differs(m.GetIndex(), m.GetLogTerm()) ||
		slices.ContainsFunc(m.GetEntries(), func(e *raftpb.Entry) bool { return differs(e.GetIndex(), e.GetTerm()) })
}

// admit checks a decoded message. Status is raft's at this moment, which may be newer than the log here: until a Ready
// is finished, the log may still have a tail that raft has replaced. Commit is as of the last finished Ready.
func (c *messageCheck) admit(m *raftpb.Message, status raft.BasicStatus, commit uint64, reads *reads) error {
	term := status.GetTerm()
	refuse := func(why string) error {
		return fmt.Errorf("%w: %v of replica %d, term %d, index %d, commit %d: %s",
			raftframe.ErrImplausible, m.GetType(), m.GetFrom(), m.GetTerm(), m.GetIndex(), m.GetCommit(), why)
	}
	if m.GetTerm() > term+maxTermJump {
		return refuse("term is too far ahead")
	}
	fromLeader := m.GetType() == raftpb.MsgApp || m.GetType() == raftpb.MsgHeartbeat || m.GetType() == raftpb.MsgSnap
	if fromLeader && m.GetTerm() == term && status.Lead != 0 && status.Lead != m.GetFrom() {
		return refuse("the term has another leader")
	}
	switch m.GetType() {
	case raftpb.MsgHeartbeat:
		// A leader announces to a member only commits that the member has acknowledged, and therefore stored.
		if m.GetTerm() >= term && m.GetCommit() > c.floor {
			led := m.GetTerm() == term && (status.Lead == 0 || status.Lead == m.GetFrom()) // others may claim any commit
			c.lost = c.lost || led && m.GetCommit() > c.log.Last
			return refuse("commit is beyond the log")
		}
	case raftpb.MsgAppResp:
		if m.GetTerm() == term && !m.GetReject() && m.GetIndex() > c.floor {
			return refuse("it acknowledges entries beyond the log") // a leader sends what it has stored
		}
	case raftpb.MsgHeartbeatResp:
		if m.GetTerm() == term && !reads.confirms(m) {
			return refuse("it confirms reads that were not asked for")
		}
	case raftpb.MsgApp:
		if m.GetTerm() >= term && c.conflicts(m, commit) {
			c.conflict = true
			return errConflict
		}
		if m.GetTerm() >= term && m.GetIndex() <= commit && commit <= m.GetIndex()+uint64(len(m.GetEntries())) {
			c.conflict = false // this leader has all that is committed here
		}
	case raftpb.MsgSnap:
		if c.conflict {
			return errConflict
		}
		c.floor = min(c.floor, m.GetSnapshot().GetMetadata().GetIndex()) // raft may replace its log by just this
	case raftpb.MsgTimeoutNow:
		if m.GetTerm() != term || status.Lead != m.GetFrom() {
			return refuse("it is not from the leader")
		}
	default: // votes, refusals: raft validates their contents
	}
	if m.GetType() == raftpb.MsgApp {
		c.floor = min(c.floor, m.GetIndex()+uint64(len(m.GetEntries()))) // raft may cut its log to just this
	}
	return nil
}
