package region

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/background"
	"github.com/voxelpopuli/voxeld/region/failuredetector"
	"github.com/voxelpopuli/voxeld/region/membership"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

const (
	// superviseEvery is how often a leader checks whether its groups have the right members.
	superviseEvery = 2 * time.Second
	// settleTime bounds how long a leader waits for one change of members before it checks again, and settlePoll is the interval
	// of its checks meanwhile.
	settleTime = 3 * time.Second
	settlePoll = 50 * time.Millisecond
	// maxReconciles bounds how many groups are changed at the same time.
	maxReconciles = 8
	// nearlyAll is how many entries a member may lack and still count as caught up.
	nearlyAll = 64
	// neighbours is how many nodes are watched in any case.
	neighbours = 16
	// rowsEvery is the number of rounds between two checks of the closed groups.
	rowsEvery = 5
	// maxWokenPerCheck bounds how many closed groups are opened in one check.
	maxWokenPerCheck = 8
	// maxSkippedChecks is the number of rounds after which the closed groups are checked even if nothing seems to have changed
	// among the nodes.
	maxSkippedChecks = 150
)

// ledGroup is a group that this node leads and whose members the supervisor maintains.
type ledGroup struct {
	id     uint64
	key    string // in the DHT: its members are the nodes nearest to it
	copies int    // number of members that it should have
	group  *replica.Group
	// info returns the region as its owner has it; known passes it a node's address.
	info  func(context.Context) (nodemsg.Region, error)
	known func(nodemsg.Member)
}

// supervise makes the members of the groups that this node leads follow their keys, until the node is about to stop.
func (h *Host) supervise(ctx context.Context) {
	every := time.NewTicker(failuredetector.RoundEvery)
	defer every.Stop()
	for round := 0; ; round++ {
		select {
		case <-h.leaving:
			return
		case <-every.C:
		}
		h.superviseOnce(ctx)
		h.notifyEvicted(ctx)
		if round%rowsEvery == rowsEvery-1 && h.shouldCheckClosed(round) {
			if err := h.wakeMisplaced(ctx); err != nil {
				h.Logger.Warn("check closed regions", "error", err)
			}
			h.detector.Forget()
		}
	}
}

// superviseOnce updates the state of the known nodes, and then reconciles every group that is led here.
func (h *Host) superviseOnce(ctx context.Context) {
	groups := h.ledGroups()
	peers := make(failuredetector.Watched)
	for _, peer := range h.Records.NearestKnown(grid.CatalogKey, neighbours) {
		peers.Add(peer, h.detector.StrangerEvery)
	}
	under, members := 0, 0
	for _, w := range groups {
		for _, peer := range h.Records.NearestKnown(w.key, candidates) {
			peers.Add(peer, h.detector.StrangerEvery)
		}
		status := w.group.Status()
		h.ledFor(w.id, status.Term)
		voters := 0
		for _, m := range status.Members {
			peers.Add(m.Peer, h.detector.Every)
			if !m.Learner && m.Active {
				voters++
			}
		}
		members += voters
		if voters < w.copies {
			under++
		}
	}
	h.metrics.led.Set(float64(len(groups)))
	h.metrics.members.Set(float64(members))
	h.metrics.under.Set(float64(under))
	delete(peers, h.Self.Peer)
	h.detector.Refresh(ctx, peers)
	for _, w := range groups {
		if !h.beginReconcile(w.id) {
			continue
		}
		started := h.start(func(ctx context.Context) {
			defer h.endReconcile(w.id)
			ctx, cancel := context.WithTimeout(ctx, background.AttemptTime)
			defer cancel()
			h.reconcile(ctx, w)
		})
		if !started {
			h.endReconcile(w.id)
		}
	}
}

// shouldCheckClosed reports whether the closed regions should be checked: the set of nodes has changed since the last check that
// found nothing wrong.
func (h *Host) shouldCheckClosed(round int) bool {
	nodes := h.detector.Summary()
	if nodes == h.checkedNodes && round%maxSkippedChecks >= rowsEvery {
		return false
	}
	h.checkedNodes = nodes
	return true
}

// ledGroups lists the groups that this node leads.
func (h *Host) ledGroups() []ledGroup {
	h.mu.Lock()
	loops := make([]*loop, 0, len(h.mu.loops))
	for _, l := range h.mu.loops {
		loops = append(loops, l)
	}
	h.mu.Unlock()
	var led []ledGroup
	if c := h.root(); c != nil && c.group.Status().Self {
		led = append(led, h.catalogGroup(c))
	}
	for _, l := range loops {
		if l.raft.Status().Self {
			led = append(led, h.groupOf(l))
		}
	}
	return led
}

func (h *Host) groupOf(l *loop) ledGroup {
	return ledGroup{
		id: l.info.ID, key: h.Directory.key(l.info.Cell), copies: h.Copies, group: l.raft,
		info: l.ask,
		known: func(m nodemsg.Member) {
			l.inbox.Put(func() { l.addMember(m) })
		},
	}
}

// beginReconcile reports whether the group may be reconciled now: it may not if it is being reconciled already, or too many
// others are.
func (h *Host) beginReconcile(id uint64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, under := h.mu.reconciling[id]; under || len(h.mu.reconciling) >= maxReconciles {
		return false
	}
	h.mu.reconciling[id] = struct{}{}
	return true
}

func (h *Host) endReconcile(id uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.mu.reconciling, id)
}

// reconcile takes one step after the other until the group's members are right, or a step fails; a later round then tries again.
func (h *Host) reconcile(ctx context.Context, w ledGroup) {
	for ctx.Err() == nil && !h.leaves() {
		status := w.group.Status()
		if !status.Self {
			return
		}
		next := membership.Next(h.Self.Peer, h.memberStates(w, status), h.nearestOf(w, status), w.copies)
		if next.Kind == membership.Stay && len(status.Members) < 2 && w.group.Configuration().Recovered == 0 {
			return
		}
		if err := h.ensureMembersKnown(ctx, w); err != nil {
			h.Logger.Debug("members not announced", "group", w.id, "error", err)
			return
		}
		if next.Kind == membership.Stay {
			return
		}
		err := h.executeStep(ctx, w, next)
		if err != nil {
			h.Logger.Debug("change of members postponed", "group", w.id, "peer", next.Peer, "kind", int(next.Kind), "error", err)
			return
		}
	}
}

// memberStates returns the members as the leader sees them.
func (h *Host) memberStates(w ledGroup, s replica.Status) []membership.Member {
	states := make([]membership.Member, len(s.Members))
	struck := h.failures.failedPeers(w.id)
	for i, m := range s.Members {
		self := m.Peer == h.Self.Peer
		states[i] = membership.Member{
			Peer: m.Peer, Learner: m.Learner,
			CaughtUp: self || m.Active && !m.Snapshotting && m.Match+nearlyAll >= s.Last,
			Leaving:  h.detector.Leaving(m.Peer),
			Gone:     !self && !m.Active && h.detector.Gone(m.Peer),
			Struck:   struck[m.Peer],
		}
	}
	return states
}

// nearestOf lists the nodes nearest to the group's key that can be members: live nodes, and members whose grace period is not
// over.
func (h *Host) nearestOf(w ledGroup, s replica.Status) []string {
	members := make([]string, len(s.Members))
	for i, m := range s.Members {
		members[i] = m.Peer
	}
	nearest := h.Records.NearestKnown(w.key, candidates, members...)
	return slices.DeleteFunc(nearest, func(peer string) bool {
		if peer == h.Self.Peer {
			return false
		}
		i := slices.IndexFunc(s.Members, func(m replica.Progress) bool { return m.Peer == peer })
		if i >= 0 && (s.Members[i].Active || !h.detector.Gone(peer)) {
			return false
		}
		_, lives := h.detector.Alive(peer)
		return !lives
	})
}

// ensureMembersKnown ensures that the catalog has all members before the next step is taken. It accepts changes only from members
// that it knows, so a later leader that it did not know could not report one.
func (h *Host) ensureMembersKnown(ctx context.Context, w ledGroup) error {
	info, err := w.info(ctx)
	if err != nil {
		return err
	}
	conf := w.group.Configuration()
	for _, m := range conf.Members {
		if hasMember(info, m.Peer) {
			continue
		}
		member, ok := h.detector.Alive(m.Peer)
		if !ok {
			return fmt.Errorf("the address of %s is not known", m.Peer)
		}
		w.known(member)
	}
	if info, err = w.info(ctx); err != nil {
		return err
	}
	if info.Epoch < epochOf(conf) || len(info.Members) != len(conf.Members) {
		return errors.New("the region has not applied its members yet")
	}
	return h.announce(ctx, info)
}

// announce reports the region's members to the catalog, unless it has them.
func (h *Host) announce(ctx context.Context, info nodemsg.Region) error {
	h.mu.Lock()
	told := h.mu.announced[info.ID]
	h.mu.Unlock()
	if info.Epoch == firstEpoch || told >= info.Epoch || info.ID == world.CatalogID {
		return nil
	}
	known, err := h.Directory.reportMoved(ctx, info)
	if err != nil {
		return fmt.Errorf("report to the catalog: %w", err)
	}
	if known.Epoch < info.Epoch {
		return fmt.Errorf("the catalog did not accept epoch %d of region %d", info.Epoch, info.ID)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.announced[info.ID] = known.Epoch
	return nil
}

// executeStep executes a step and waits until it is done.
func (h *Host) executeStep(ctx context.Context, w ledGroup, next membership.Step) error {
	switch next.Kind {
	case membership.Add:
		// The node was alive some seconds ago. Check again: a dead learner would be in the way.
		member, err := h.detector.Check(ctx, next.Peer)
		if err != nil {
			return fmt.Errorf("the node to be added does not answer: %w", err)
		}
		w.known(member)
		return h.change(ctx, w, "add", next.Peer, w.group.AddLearner)
	case membership.Wait:
		return h.inviteLearners(ctx, w)
	case membership.Promote:
		return h.change(ctx, w, "promote", next.Peer, w.group.Promote)
	case membership.Remove:
		return h.change(ctx, w, "remove", next.Peer, w.group.Remove)
	case membership.Transfer:
		if status := w.group.Status(); h.ledFor(w.id, status.Term) < minLeaderTime {
			return errors.New("this node has only just become leader")
		}
		h.metrics.changes.WithLabelValues("transfer").Inc()
		if err := w.group.Transfer(next.Peer); err != nil {
			return err
		}
		return h.awaitGroup(ctx, func() bool { return !w.group.Status().Self })
	case membership.Stay:
	}
	return nil
}

// change begins a change of members and waits until it is committed.
func (h *Host) change(ctx context.Context, w ledGroup, kind, peer string, begin func(string) error) error {
	before := w.group.Configuration().Index
	if err := begin(peer); err != nil {
		return err
	}
	done := func() bool {
		conf := w.group.Configuration()
		return conf.Index > before && hasMembers(w.group.Status(), conf)
	}
	if err := h.awaitGroup(ctx, done); err != nil {
		return err
	}
	h.metrics.changes.WithLabelValues(kind).Inc()
	h.Logger.Info("region's members are being changed", "group", w.id, "change", kind, "peer", peer)
	return nil
}

// hasMembers reports whether the status, which is as of the group's last tick, has these members already.
func hasMembers(s replica.Status, conf replica.Configured) bool {
	return slices.EqualFunc(s.Members, conf.Members, func(p replica.Progress, m replica.Member) bool { return p.Member == m })
}

var errUnsettled = errors.New("timed out")

// awaitGroup waits for a condition that the group brings about.
func (h *Host) awaitGroup(ctx context.Context, done func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	poll := time.NewTicker(settlePoll)
	defer poll.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			return errUnsettled
		case <-poll.C:
		}
	}
	return nil
}

// inviteLearners asks those learners to join that do not take part yet, and waits until all have caught up. A learner that had
// its replica id before, or a later one, can never join under it: it is removed, and the next step adds it under a new id.
func (h *Host) inviteLearners(ctx context.Context, w ledGroup) error {
	info, err := w.info(ctx)
	if err != nil {
		return err
	}
	invite := nodemsg.Invite{Region: info}
	for _, m := range w.group.Configuration().Members {
		invite.Voters = append(invite.Voters, nodemsg.Replica{ID: m.ID, Peer: m.Peer, Learner: m.Learner})
	}
	for _, m := range w.group.Status().Members {
		if !m.Learner || m.Active && m.Match > 0 {
			continue
		}
		invite.Replica = m.ID
		answer, err := h.questions.Ask(ctx, m.Peer, nodemsg.Question{Invite: &invite})
		if err != nil && answer.Replica == m.ID {
			h.Logger.Info("learner had its replica id before", "group", w.id, "peer", m.Peer, "replica", m.ID)
			return h.change(ctx, w, "remove", m.Peer, w.group.Remove)
		}
		if err != nil {
			return fmt.Errorf("invite %s: %w", m.Peer, err)
		}
	}
	return h.awaitGroup(ctx, func() bool {
		return !slices.ContainsFunc(h.memberStates(w, w.group.Status()), func(m membership.Member) bool { return m.Learner && !m.CaughtUp })
	})
}
