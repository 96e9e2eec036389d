package replica

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/kv"
	"github.com/voxelpopuli/voxeld/replica/raftgroup"
)

// Options configure a Host. Storage and Self are required.
type Options struct {
	Storage Storage
	Self    string // this node's peer id
	// Send passes a message to the network, for Receive of the peer's host. It must not block, and may drop messages. Nil
	// if this node is alone: groups then have one member.
	Send func(peer string, group uint64, message []byte)
	// SendSnapshot makes the carrier open a stream to the peer, run write on it in a goroutine of the carrier, and call
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
	receiving atomic.Int64          // bytes of snapshots that are being received
	stalled   atomic.Pointer[error] // stall, published for Stalled
	input     input
	started   atomic.Bool
	stopped   chan struct{} // closed when Run has ended

	// Owned by Run.
	replicas  map[uint64]*hosted
	ticking   clock       // replicas that need it: all but leaders without followers
	dirty     []*hosted   // replicas for which raft may have work
	batch     []*hosted   // replicas with a Ready that must be stored
	lazy      []*hosted   // replicas with data to store that can wait
	founding  []*founding // groups to be created with the next commit
	closing   []closing
	flush     alarm // set while lazy is not empty: when it must be stored
	flushDue  bool
	sentAhead bool       // entries of the batch were sent before they are stored
	writes    []kv.Write // of a commit: the memory is reused
	retry     alarm      // set while stalled
	stall     error      // why storage refuses writes; nil if it does not
	leaders   int
	lag       uint64 // entries, over all groups
}

// hosted is an open replica, with what the host records of it. Owned by Host.Run.
type hosted struct {
	*raftgroup.Replica
	dirty, lazy bool // in Host.dirty, in Host.lazy
	ended       bool // closed or failed
	tickingAt   int  // its index in Host.ticking, from 1; 0: none
	leads       bool // counted in Host.leaders
	lag         uint64
}

// electionTicks is the default of Options.ElectionTicks.
const electionTicks = 8

// NewHost returns a host, which does nothing before Run is called.
func NewHost(o Options) (*Host, error) {
	if o.Storage == nil || o.Self == "" {
		return nil, errors.New("make replication host: storage and own peer id are required")
	}
	if o.TickEvery == 0 {
		o.TickEvery = 100 * time.Millisecond
	}
	if o.ElectionTicks == 0 {
		o.ElectionTicks = electionTicks
	}
	if o.TickEvery < 0 || o.ElectionTicks < 3 {
		return nil, fmt.Errorf("make replication host: elections after %d ticks of %v", o.ElectionTicks, o.TickEvery)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	m, err := newMetrics(o.Registerer)
	if err != nil {
		return nil, fmt.Errorf("make replication host: %w", err)
	}
	h := &Host{
		metrics: m, tickEvery: o.TickEvery, stopped: make(chan struct{}),
		replicas: make(map[uint64]*hosted),
		flush:    stoppedTimer(), retry: stoppedTimer(),
	}
	h.input.wake, h.input.mu.open = make(chan struct{}, 1), make(map[uint64]*Group)
	h.node = &raftgroup.Node{
		Self: o.Self, Storage: o.Storage, Send: o.Send, SendSnapshot: o.SendSnapshot, Logger: o.Logger,
		ElectionTicks: o.ElectionTicks, Limits: raftgroup.DefaultLimits,
		Enqueue: h.input.enqueue, Call: h.callFor, Close: h.closeAndWait, Stopped: h.stopped,
		Proposals: m.proposals, Refused: m.refused, Rejected: m.rejected, Delivered: m.delivered,
	}
	return h, nil
}

// Run runs the host until the context ends; it must be called once. Before it returns it stores what owners have applied,
// and delivers Failed with ErrStopped to every group that is still open. It returns an error if that last commit failed.
func (h *Host) Run(ctx context.Context) error {
	if h.started.Swap(true) {
		return errors.New("run replication host: it was run before")
	}
	defer close(h.stopped)
	ticker := time.NewTicker(h.tickEvery)
	defer ticker.Stop()
	flush, retry := stoppedTimer(), stoppedTimer()
	defer flush.Stop()
	defer retry.Stop()
	h.flush, h.retry = flush, retry
	resting := false // no group needs ticks, so the ticker is stopped
	for {
		what := woken
		select {
		case <-ctx.Done():
			return h.shutDown()
		case <-h.input.wake:
		case <-ticker.C:
			what = ticked
		case <-flush.C:
			what = flushed
		case <-retry.C:
			what = retried
		}
		if h.step(what) {
			h.input.signal()
		}
		if none := len(h.ticking) == 0; none != resting {
			if resting = none; resting {
				ticker.Stop()
			} else {
				ticker.Reset(h.tickEvery)
			}
		}
	}
}

// event is the cause of a step of the host's loop.
type event int

const (
	woken   event = iota // input arrived, or work is left
	ticked               // TickEvery has passed
	flushed              // the alarm flush rang
	retried              // the alarm retry rang
)

// alarm is a timer of the host's loop; a *time.Timer, but in the simulation.
type alarm interface {
	Reset(d time.Duration) bool
	Stop() bool
}

// step runs one iteration of the loop. It uses no clock and starts no goroutine: with the same storage, the same events
// and the same input it does the same again (given raft's random election timeouts). It reports whether there is work
// left without new input.
func (h *Host) step(what event) (more bool) {
	switch what {
	case ticked:
		h.tick()
	case flushed:
		h.flushDue = true
	case retried:
		h.retryStorage()
	case woken:
	}
	h.processInput()
	h.commitRound()
	return h.busy()
}

// busy reports whether there is work left without new input.
func (h *Host) busy() bool {
	return h.stall == nil && (len(h.dirty)+len(h.batch)+len(h.founding) > 0 || h.flushDue && len(h.lazy) > 0)
}

func stoppedTimer() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

// processInput processes new input. Inboxes go before commands, so that a Close finds what was applied before it.
func (h *Host) processInput() {
	queue, commands := h.input.drain()
	for _, g := range queue {
		if r := h.hosted(g); r != nil {
			h.try(r, r.ProcessInput)
		}
	}
	for _, command := range commands {
		command()
	}
}

// hosted returns the replica of a group, nil if it is not open any more.
func (h *Host) hosted(g *Group) *hosted {
	if r := h.replicas[g.ID()]; r != nil && r.Group() == g {
		return r
	}
	return nil
}

// try calls f for the replica, and ends the replica if that fails.
func (h *Host) try(r *hosted, f func() error) {
	if err := f(); err != nil {
		h.fail(r, err)
		return
	}
	h.settle(r)
	h.markDirty(r)
}

// settle carries out what a replica requires after a call.
func (h *Host) settle(r *hosted) {
	e := r.TakeEffects()
	switch e.Clock {
	case raftgroup.ClockStart:
		h.ticking.start(r)
	case raftgroup.ClockStop:
		h.ticking.stop(r)
	case raftgroup.ClockKeep:
	}
	h.flushDue, h.sentAhead = h.flushDue || e.StoreNow, h.sentAhead || e.SentAhead
	if e.StoreLater {
		h.storeLater(r)
	}
	if e.Leads != r.leads {
		h.countLeader(r, e.Leads)
	}
	h.countLag(r, e.Lag)
}

// callFor makes Run call f for a group's replica. F is called even if the group is no longer open.
func (h *Host) callFor(g *Group, f func() error) {
	h.input.post(func() {
		if r := h.hosted(g); r != nil {
			h.try(r, f)
		} else {
			_ = f() // it has nothing to end
		}
	})
}

// tick advances the clocks of the groups that need one.
func (h *Host) tick() {
	if h.stall != nil {
		return
	}
	for i := len(h.ticking) - 1; i >= 0; i-- { // backwards: a replica may stop its clock
		h.try(h.ticking[i], h.ticking[i].Tick)
	}
}

// clock is the list of the replicas with ticks. It is a list because a map's order would differ from run to run.
type clock []*hosted

func (c *clock) start(r *hosted) {
	if r.tickingAt == 0 {
		*c = append(*c, r)
		r.tickingAt = len(*c)
	}
}

func (c *clock) stop(r *hosted) {
	if r.tickingAt == 0 {
		return
	}
	last := len(*c) - 1
	moved := (*c)[last]
	(*c)[r.tickingAt-1], moved.tickingAt = moved, r.tickingAt
	(*c)[last], r.tickingAt = nil, 0
	*c = (*c)[:last]
}

// markDirty marks the replica as one for which raft may have work.
func (h *Host) markDirty(r *hosted) {
	if !r.dirty && !r.ended {
		r.dirty = true
		h.dirty = append(h.dirty, r)
	}
}

// storeLater marks the replica as one with data to store that can wait for others.
func (h *Host) storeLater(r *hosted) {
	if r.lazy || r.ended {
		return
	}
	r.lazy = true
	h.lazy = append(h.lazy, r)
	if len(h.lazy) == 1 {
		h.flush.Reset(h.node.Limits.FlushAfter)
	}
}

// sortedReplicas returns the open replicas by their groups' numbers, so that the same schedule has the same result.
func (h *Host) sortedReplicas() []*hosted {
	all := make([]*hosted, 0, len(h.replicas))
	for _, group := range slices.Sorted(maps.Keys(h.replicas)) {
		all = append(all, h.replicas[group])
	}
	return all
}

func (h *Host) countLeader(r *hosted, leads bool) {
	if r.leads = leads; leads {
		h.leaders++
	} else {
		h.leaders--
	}
	h.metrics.leaders.Set(float64(h.leaders))
}

func (h *Host) countLag(r *hosted, lag uint64) {
	h.lag += lag - r.lag
	r.lag = lag
}

// fail ends a group on this node: its owner gets Failed. Other groups are not affected.
func (h *Host) fail(r *hosted, err error) {
	h.node.Logger.Error("group failed", "group", r.Group().ID(), "error", err, "state", r.String())
	h.drop(r, err, err)
}

// drop removes a replica from memory. A nil failure is not delivered.
func (h *Host) drop(r *hosted, refusal, failure error) {
	if r.ended {
		return
	}
	r.ended = true
	if r.leads {
		h.countLeader(r, false)
	}
	h.countLag(r, 0)
	delete(h.replicas, r.Group().ID())
	h.ticking.stop(r)
	gone := func(other *hosted) bool { return other == r }
	h.batch, h.lazy = slices.DeleteFunc(h.batch, gone), slices.DeleteFunc(h.lazy, gone)
	h.input.setOpen(r.Group().ID(), nil)
	h.metrics.groups.Set(float64(len(h.replicas)))
	r.End(refusal, failure)
}

// shutDown stores what is left to store and ends all groups.
func (h *Host) shutDown() error {
	h.processInput()
	h.retryStorage()
	for range 4 { // proposals that arrived before the end may still be committed: entry, applied
		h.flushDue = true
		h.commitRound()
		h.processInput()
	}
	var err error
	if h.stall != nil {
		err = fmt.Errorf("stop replication host: %w", h.stall)
	}
	for _, r := range h.sortedReplicas() {
		h.drop(r, ErrStopped, ErrStopped)
	}
	return err
}
