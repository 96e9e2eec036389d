package placement

import (
	"context"
	"slices"

	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/region/membership"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// shouldCheckClosed reports whether the closed regions should be checked: what the last check found is done, and the
// set of nodes has changed since the last check that found nothing.
func (sv *Supervisor) shouldCheckClosed(round int) bool {
	if len(sv.closed.misplaced) > 0 {
		return false
	}
	nodes := sv.Detector.Summary()
	if nodes == sv.closed.nodes && round%maxSkippedChecks >= rowsEvery {
		return false
	}
	sv.closed.nodes = nodes
	return true
}

// checkClosed finds the closed regions that this node is responsible for and whose members are not the right ones.
func (sv *Supervisor) checkClosed(ctx context.Context) error {
	infos, err := sv.Registry.All()
	if err != nil {
		return err
	}
	peers := make(directory.Watched)
	for _, info := range infos {
		if sv.Regions.Loaded(info.ID) == nil && !sv.Failures.Closed(info.ID) && sv.Responsible(info) && sv.misplaced(info, peers) {
			sv.closed.misplaced = append(sv.closed.misplaced, info.ID)
		}
	}
	delete(peers, sv.Self)
	sv.Detector.Refresh(ctx, peers)
	if len(sv.closed.misplaced) > 0 {
		sv.closed.nodes = "" // some may fail: check again
	}
	return nil
}

// wakeMisplaced opens regions that checkClosed found, a few at a time. Once they are open, the supervisor changes their
// members.
func (sv *Supervisor) wakeMisplaced(ctx context.Context, round int) {
	peers := make(directory.Watched)
	for id, end := range sv.closed.moving {
		if info, err := sv.Registry.Region(id); err != nil || round >= end || !sv.misplaced(info, peers) {
			delete(sv.closed.moving, id)
		}
	}
	for len(sv.closed.misplaced) > 0 && len(sv.closed.moving) < maxMoving && ctx.Err() == nil {
		id := sv.closed.misplaced[0]
		sv.closed.misplaced = sv.closed.misplaced[1:]
		info, err := sv.Registry.Region(id)
		if err != nil || sv.Regions.Loaded(id) != nil || !sv.Responsible(info) || !sv.misplaced(info, peers) {
			continue // no longer
		}
		l, err := sv.Regions.Open(ctx, id, info.Cell)
		if err != nil {
			sv.Logger.Debug("region not opened", "cell", info.Cell.String(), "error", err)
			continue
		}
		sv.closed.moving[id] = round + movingRounds
		l.Raft().Campaign()
	}
	delete(peers, sv.Self)
	if len(peers) > 0 {
		sv.Detector.Refresh(ctx, peers)
	}
}

// Responsible reports whether this node is responsible for the closed region: the last leader is, or else the first
// member that is not gone.
func (sv *Supervisor) Responsible(info nodemsg.Region) bool {
	if info.Leader == sv.Self {
		return true
	}
	if info.Leader != "" && !sv.Detector.Gone(info.Leader) {
		return false
	}
	for _, m := range info.Members {
		if m.Peer == sv.Self {
			return true
		}
		if !sv.Detector.Gone(m.Peer) {
			return false
		}
	}
	return false
}

// misplaced reports whether a live node that should be a member is not one, a member is gone and can be replaced or
// leave, or there are too many. It adds the nodes whose state it needs to peers.
func (sv *Supervisor) misplaced(info nodemsg.Region, peers directory.Watched) bool {
	members, voters := make([]string, len(info.Members)), make([]string, 0, len(info.Members))
	states := make([]membership.Member, len(info.Members))
	for i, m := range info.Members {
		peers.Add(m.Peer, sv.Detector.Every)
		members[i] = m.Peer
		states[i] = membership.Member{
			Peer: m.Peer, Learner: m.Learner, CaughtUp: true,
			Gone: m.Peer != sv.Self && sv.Detector.Gone(m.Peer), Lost: m.Peer != sv.Self && sv.Detector.Lost(m.Peer),
		}
		if !m.Learner {
			voters = append(voters, m.Peer)
		}
	}
	nearest := sv.Records.NearestKnown(sv.Directory.Key(info.Cell), directory.Candidates, members...)
	nearest = slices.DeleteFunc(nearest, func(peer string) bool {
		peers.Add(peer, sv.Detector.StrangerEvery)
		if peer == sv.Self {
			return false
		}
		_, lives := sv.Detector.Alive(peer)
		if actor.HasMember(info, peer) {
			return !lives && sv.Detector.Gone(peer)
		}
		return !lives || sv.avoids(info.ID, peer) || sv.outdated(peer)
	})
	size, nearest := membership.Choose(sv.Copies, voters, nearest, sv.Records.Operator)
	target := nearest[:min(size, len(nearest))]
	return len(voters) > size || membership.Departing(states, target, size) != "" ||
		slices.ContainsFunc(target, func(peer string) bool { return !actor.HasMember(info, peer) })
}
