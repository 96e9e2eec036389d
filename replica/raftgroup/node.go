package raftgroup

import (
	"io"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

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
	Stopped <-chan struct{} // closed when the host has stopped

	Proposals, Refused, Rejected, Delivered prometheus.Counter
}

// Limits bound memory. They are fields so that tests can lower them.
type Limits struct {
	Outstanding int           // bytes proposed in one group and not yet committed
	Mailbox     int           // bytes of committed entries that wait for a group's owner; beyond it they stay in the log
	Pending     int           // bytes of applied writes of one group; above this they are stored at once
	Messages    int           // bytes of received messages that wait in one group
	Snapshot    int           // bytes of the rows of one snapshot; twice as many may be received at a time
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
	KeepEntries: 1000,
	FlushAfter:  50 * time.Millisecond,
	RetryAfter:  500 * time.Millisecond,
}
