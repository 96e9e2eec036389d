package replica

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/voxelpopuli/voxeld/replica/raftgroup"
)

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
	h := &Host{tickEvery: o.TickEvery, stopped: make(chan struct{})}
	m, err := newMetrics(o.Registerer, h.Stalled)
	if err != nil {
		return nil, fmt.Errorf("make replication host: %w", err)
	}
	h.metrics = m
	h.input.wake, h.input.mu.open = make(chan struct{}, 1), make(map[uint64]*Group)
	h.node = &raftgroup.Node{
		Self: o.Self, Storage: o.Storage, Send: o.Send, SendSnapshot: o.SendSnapshot, Logger: o.Logger,
		ElectionTicks: o.ElectionTicks, Limits: raftgroup.DefaultLimits,
		Enqueue: h.input.enqueue, Hung: h.Hung, Call: h.callFor, Close: h.closeAndWait, Stopped: h.stopped,
		Proposals: m.proposals, Refused: m.refused, Rejected: m.rejected, Delivered: m.delivered,
	}
	h.groups = openGroups{input: &h.input, metrics: m, replicas: make(map[uint64]*hosted)}
	h.committer.node, h.committer.metrics, h.committer.groups = h.node, m, &h.groups
	h.committer.flush, h.committer.retry = stoppedTimer(), stoppedTimer()
	return h, nil
}

// Run runs the host until the context ends; it must be called once. Before it returns it stores what owners have
// applied, and delivers Failed with ErrStopped to every group that is still open. It returns an error if that last
// commit failed.
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
	h.committer.flush, h.committer.retry = flush, retry
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
		if none := len(h.groups.ticking) == 0; none != resting {
			if resting = none; resting {
				ticker.Stop()
			} else {
				ticker.Reset(h.tickEvery)
			}
		}
	}
}

func stoppedTimer() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

// event is the cause of a step of the host's loop.
type event int

const (
	woken   event = iota // input arrived, or work is left
	ticked               // TickEvery has passed
	flushed              // the alarm flush rang
	retried              // the alarm retry rang
)

// step runs one iteration of the loop. It uses no clock and starts no goroutine: with the same storage, the same events
// and the same input it does the same again (given raft's random election timeouts). It reports whether there is work
// left without new input.
func (h *Host) step(what event) (more bool) {
	switch what {
	case ticked:
		h.tick()
	case flushed:
		h.committer.flushDue = true
	case retried:
		h.committer.retryStorage()
	case woken:
	}
	h.processInput()
	h.commitRound()
	return h.committer.busy()
}

func (h *Host) commitRound() {
	h.committer.round()
	h.finishClosing()
}

// processInput processes new input. Inboxes go before commands, so that a Close finds what was applied before it.
func (h *Host) processInput() {
	queue, commands := h.input.drain()
	for _, g := range queue {
		if r := h.groups.get(g); r != nil {
			h.committer.try(r, r.ProcessInput)
		}
	}
	for _, command := range commands {
		command()
	}
}

// callFor makes Run call f for a group's replica. F is called even if the group is no longer open.
func (h *Host) callFor(g *Group, f func() error) {
	h.input.post(func() {
		if r := h.groups.get(g); r != nil {
			h.committer.try(r, f)
		} else {
			_ = f() // it has nothing to end
		}
	})
}

// tick advances the clocks of the groups that need one.
func (h *Host) tick() {
	if h.committer.stall != nil {
		return
	}
	for i := len(h.groups.ticking) - 1; i >= 0; i-- { // backwards: a replica may stop its clock
		h.committer.try(h.groups.ticking[i], h.groups.ticking[i].Tick)
	}
}

// shutDown stores what is left to store and ends all groups.
func (h *Host) shutDown() error {
	h.processInput()
	h.committer.retryStorage()
	for range 4 { // proposals that arrived before the end may still be committed: entry, applied
		h.committer.flushDue = true
		h.commitRound()
		h.processInput()
	}
	var err error
	if h.committer.stall != nil {
		err = fmt.Errorf("stop replication host: %w", h.committer.stall)
	}
	for _, r := range h.groups.sorted() {
		h.committer.drop(r, ErrStopped, ErrStopped)
	}
	return err
}
