package replica

import (
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/replica/raftgroup"
)

// Options configure a Host. Storage and Self are required.
type Options struct {
	Storage Storage
	Self    string // this node's peer id
	// Send passes a message to the network, for Receive of the peer's host. It must not block, and may drop messages.
	// Nil if this node is alone: groups then have one member.
	Send func(peer string, group uint64, message []byte)
	// SendSnapshot makes the transport open a stream to the peer, run write on it in a goroutine of its own, and call
	// done once, with nil if everything was sent (better: if ReceiveSnapshot returned nil there). It must not block.
	// Without done, that member is never caught up. Nil: no snapshots are sent.
	SendSnapshot func(peer string, group uint64, write func(w io.Writer) error, done func(error))
	Logger       *slog.Logger          // nil: none
	Registerer   prometheus.Registerer // nil: metrics are not registered
	// TickEvery is the unit of raft's clock; 0 means 100 ms. A leader sends heartbeats every tick.
	TickEvery time.Duration
	// ElectionTicks: members that receive nothing for this many ticks, up to twice as many, elect a new leader. 0 means
	// 8, so that a dead leader is replaced after 0.8 to 1.6 s, rarely 3 s. At least 3. It should be the same on all
	// members.
	ElectionTicks int
}

// Host runs all groups of one node. See the package documentation.
type Host struct {
	node      *raftgroup.Node
	metrics   *metrics
	tickEvery time.Duration
	receiving receiving
	fills     sync.Map // group → *filling
	input     input
	started   atomic.Bool
	stopped   chan struct{} // closed when Run has ended

	// Owned by Run.
	groups    openGroups
	committer committer
	closing   []closing
}

type closing struct {
	r     *hosted
	reply chan<- error
}

// Promised counts the commits after which others rely on what this node stores: entries, votes and terms. It grows only
// when there was one. Any goroutine may call it.
func (h *Host) Promised() uint64 { return h.committer.promised.Load() }
