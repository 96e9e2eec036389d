package raftgroup

import (
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/replica/raftframe"
	"github.com/voxelpopuli/voxeld/replica/raftlog"
)

// Node is what the groups of a node share.
type Node struct {
	Self          string // this node's peer id
	Storage       raftlog.Storage
	Send          func(peer string, group uint64, message []byte) // nil if this node is alone
	SendSnapshot  func(peer string, group uint64, write func(w io.Writer) error, done func(error))
	Logger        *slog.Logger
	ElectionTicks int
	Limits        Limits
	Sending       int // snapshots that are being sent; owned by the host's goroutine

	Enqueue func(g *Group)                 // makes the host process the group's inbox
	Call    func(g *Group, f func() error) // makes the host call f for the group's replica, and end it if f fails
	Close   func(g *Group) error
	Hung    func() bool     // whether the disk does not answer: until it does, the host does nothing
	Stopped <-chan struct{} // closed when the host has stopped

	Proposals, Refused, Rejected, Delivered prometheus.Counter
}

// Limits bound memory. They are fields so that tests can lower them.
type Limits struct {
	Outstanding int           // bytes proposed in one group and not yet committed
	Mailbox     int           // bytes of committed entries that wait for a group's owner; beyond it they stay in the log
	Pending     int           // bytes of applied writes of one group; above this they are stored at once
	Messages    int           // bytes of received messages that wait in one group
	Snapshot    int           // bytes of the rows of one snapshot in memory; one peer may send as many, all peers twice as many at a time
	Piece       int           // bytes of rows that are stored at a time, if a snapshot is stored in pieces
	KeepEntries uint64        // entries kept below the stored applied index
	FlushAfter  time.Duration // the longest time that an applied write waits for others
	RetryAfter  time.Duration // between attempts while storage refuses writes
}

// DefaultLimits are those of a daemon.
var DefaultLimits = Limits{
	Outstanding: 4 << 20,
	Mailbox:     8 << 20,
	Pending:     4 << 20,
	Messages:    8 << 20,
	Snapshot:    256 << 20,
	Piece:       8 << 20,
	KeepEntries: 1000,
	FlushAfter:  50 * time.Millisecond,
	RetryAfter:  500 * time.Millisecond,
}

// Group is an open raft group, used by its owner. Its methods may be called concurrently; none but Close blocks. No
// goroutine owns it: all of its state is guarded by mu (locked before Host.mu, never after).
type Group struct {
	node    *Node
	id      uint64
	applied uint64     // AppliedIndex
	opened  Configured // AppliedConfiguration
	ready   chan struct{}

	conf   atomic.Pointer[raftlog.Configuration] // the committed one
	roster atomic.Pointer[roster]                // whose messages Receive accepts
	tables []raftlog.TablePrefix

	mu struct {
		sync.Mutex
		queued bool // in Host.mu.queue

		// towards the host
		inbox       inbox
		leading     bool  // Leadership{Self: true} is the newest Leadership in the mailbox or taken from it
		refusal     error // if not nil, why Propose takes nothing: the group is closed, failed or stalled
		ended       bool  // closed or failed, for good
		outstanding int   // cost of the proposals of this term that are not yet delivered as Committed, bytes
		reported    uint64
		messageSize int    // bytes
		restored    uint64 // index of the newest Restored: what was applied before it is dropped
		changing    bool   // a change was accepted and has not been delivered; inbox.change is nil once the host has it

		// towards the owner
		mailbox     []Delivery
		mailboxSize int    // bytes
		delivered   uint64 // index of the last Committed put into the mailbox, or applied at the start
		backlog     bool   // the mailbox was full: the host holds more and waits for Dequeue

		// for Status
		basicStatus basicStatus
		progress    []Progress // nil if this node has not led since Open
	}
}

func newGroup(node *Node, id, applied uint64, conf *raftlog.Configuration, tables []raftlog.TablePrefix) *Group {
	g := &Group{node: node, id: id, applied: applied, opened: NewConfigured(conf), tables: tables, ready: make(chan struct{}, 1)}
	g.conf.Store(conf)
	g.roster.Store(&roster{})
	g.mu.delivered, g.mu.reported = applied, applied
	return g
}

// Tables returns the owner's tables.
func (g *Group) Tables() []raftlog.TablePrefix { return g.tables }

// ID returns the group's number.
func (g *Group) ID() uint64 { return g.id }

// AppliedIndex returns the index up to which the owner's stored tables contained the entries when the group was opened:
// 1 if the group was founded just now. Committed entries are delivered from the next index on.
func (g *Group) AppliedIndex() uint64 { return g.applied }

// AppliedConfiguration returns the configuration as of AppliedIndex. Those that followed are delivered in their place
// among the entries; Configuration may be ahead of them.
func (g *Group) AppliedConfiguration() Configured { return g.opened }

// Members returns the peers of the committed configuration, including learners, in the order of their replica ids.
func (g *Group) Members() []string {
	members := g.conf.Load().All()
	peers := make([]string, len(members))
	for i, m := range members {
		peers[i] = m.Peer
	}
	return peers
}

// Status may be called from any goroutine, and costs a lock.
func (g *Group) Status() Status {
	g.mu.Lock()
	defer g.mu.Unlock()
	v := g.mu.basicStatus
	s := Status{Term: v.term, Leader: v.leader, Self: g.mu.leading, Last: v.last, Commit: v.commit, Applied: v.applied, Lost: v.lost}
	if g.mu.leading {
		s.Members = slices.Clone(g.mu.progress)
	}
	if s.Members == nil {
		for _, m := range g.conf.Load().All() {
			s.Members = append(s.Members, Progress{Member: m})
		}
	}
	return s
}

// Propose submits an entry, to be delivered as Committed once it is safe. It keeps the slice and never blocks. If it
// returns an error, nothing was proposed. The error is ErrNotLeader, ErrOverloaded (too many bytes are in flight; retry
// after the next Committed), ErrTooLarge, ErrStorage with the storage's reason, ErrClosed, or that of a Failed. Empty
// entries are not allowed.
func (g *Group) Propose(entry []byte) error {
	if err := g.propose(entry); err != nil {
		g.node.Refused.Inc()
		return fmt.Errorf("propose: %w", err)
	}
	g.node.Proposals.Inc()
	return nil
}

func (g *Group) propose(entry []byte) error {
	if len(entry) == 0 || len(entry) > raftframe.MaxEntry {
		return fmt.Errorf("%w: %d bytes, 1 to %d are allowed", ErrTooLarge, len(entry), raftframe.MaxEntry)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.refusal != nil {
		return g.mu.refusal
	}
	if !g.mu.leading {
		return ErrNotLeader
	}
	limits := &g.node.Limits
	cost := len(entry) + raftlog.EntryOverhead
	if g.mu.outstanding > 0 && g.mu.outstanding+cost > limits.Outstanding || g.mu.mailboxSize > limits.Mailbox {
		return fmt.Errorf("%w: %d bytes are in flight, %d wait for the owner",
			ErrOverloaded, g.mu.outstanding, g.mu.mailboxSize)
	}
	g.mu.outstanding += cost
	g.mu.inbox.proposals = append(g.mu.inbox.proposals, entry)
	g.enqueue()
	return nil
}

// Hung reports whether the disk of this node does not answer. Until it does, nothing of the group is sent, received or
// delivered here, so that another member may lead it unnoticed.
func (g *Group) Hung() bool { return g.node.Hung() }

// Ready signals that Dequeue has deliveries. One signal may stand for many deliveries.
func (g *Group) Ready() <-chan struct{} { return g.ready }

// Dequeue removes and returns all waiting deliveries, in order; nil if there are none. Only the owner calls it.
func (g *Group) Dequeue() []Delivery {
	g.mu.Lock()
	defer g.mu.Unlock()
	taken := g.mu.mailbox
	g.mu.mailbox, g.mu.mailboxSize = nil, 0
	if g.mu.backlog {
		g.enqueue()
	}
	return taken
}

// ReportApplied reports to the host that the owner has applied the entries up to index, with the resulting writes to
// the owner's tables. The host stores both in one transaction: with the next fsync, after 50 ms at the latest. It keeps
// the writes, including keys and values. Index must not decrease, nor be beyond the last Committed that was delivered;
// otherwise ReportApplied panics, because the owner has broken an invariant. Writes that a snapshot has made void are
// dropped.
func (g *Group) ReportApplied(index uint64, writes []kv.Write) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if index < g.mu.restored {
		return // the owner has not yet taken the Restored in its mailbox
	}
	if index < g.mu.reported || index > g.mu.delivered {
		panic(fmt.Sprintf("group %d: applied %d is not between the last report %d and the last delivery %d",
			g.id, index, g.mu.reported, g.mu.delivered))
	}
	g.mu.reported = index
	if g.mu.ended {
		return // what was applied is delivered again after the next Open
	}
	g.mu.inbox.writes = append(g.mu.inbox.writes, writes...)
	g.enqueue()
}

// Close stores durably what was passed to ReportApplied, and closes the group. The outcome of proposals in flight is
// unknown. It blocks for the next commit, so Run must run. If storage refuses, the group is closed all the same and
// Close returns the error: what was applied and not stored is delivered again after the next Open. Closing a group that
// is closed or failed does nothing.
func (g *Group) Close() error { return g.node.Close(g) }

// enqueue notifies the host that the group's inbox is not empty. The caller holds mu.
func (g *Group) enqueue() {
	if !g.mu.queued {
		g.mu.queued = true
		g.node.Enqueue(g)
	}
}

// inbox holds the input of the owner and of the network to the host.
type inbox struct {
	proposals [][]byte
	reported  uint64
	writes    []kv.Write
	messages  []*raftpb.Message
	refill    bool // the mailbox was full and has been emptied
	change    *raftlog.Change
	transfer  uint64 // replica id
	campaign  bool
	reads     []chan<- ReadAnswer
	trusted   *Configured
}

func (g *Group) empty() inbox {
	g.mu.Lock()
	defer g.mu.Unlock()
	in := g.mu.inbox
	in.reported, in.refill = g.mu.reported, g.mu.backlog
	g.mu.inbox, g.mu.backlog, g.mu.messageSize, g.mu.queued = inbox{}, false, 0, false
	return in
}

// pushEntry puts a committed entry into the mailbox, unless it is full.
func (g *Group) pushEntry(c Committed, limit int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.mailboxSize > limit {
		g.mu.backlog = true
		return false
	}
	cost := len(c.Entry) + raftlog.EntryOverhead
	if g.mu.leading {
		g.mu.outstanding = max(0, g.mu.outstanding-cost)
	}
	g.mu.delivered = c.Index
	g.mu.mailboxSize += cost
	g.push(c)
	return true
}

// pushLeadership delivers a change of leadership. It drops proposals that the host has not yet taken.
func (g *Group) pushLeadership(l Leadership) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.leading = l.Self
	g.mu.refusal = l.Cause
	g.mu.inbox.proposals, g.mu.outstanding = nil, 0
	g.mu.inbox.change, g.mu.changing, g.mu.inbox.transfer = nil, false, 0
	g.push(l)
}

// end refuses all further calls. A nil failure means that the owner closed the group and wants no delivery.
func (g *Group) end(refusal, failure error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.leading, g.mu.backlog = false, false
	g.mu.refusal, g.mu.ended = refusal, true
	g.mu.inbox.proposals, g.mu.inbox.writes, g.mu.inbox.messages, g.mu.messageSize = nil, nil, nil, 0
	answerAll(g.mu.inbox.reads, refusal)
	g.mu.inbox.change, g.mu.inbox.reads = nil, nil
	if failure != nil {
		g.push(Failed{Err: failure})
	}
}

func (g *Group) push(d Delivery) {
	g.mu.mailbox = append(g.mu.mailbox, d)
	select {
	case g.ready <- struct{}{}:
	default:
	}
}
