package placement

import (
	"context"

	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/region/failuredetector"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// wakeMisplaced opens some of the closed regions that this node is responsible for and whose members are not the right ones. Once
// they are open, the supervisor changes their members.
func (sv *Supervisor) wakeMisplaced(ctx context.Context) error {
	var wrong []nodemsg.Region
	peers := make(failuredetector.Watched)
	infos, err := sv.Registry.All()
	if err != nil {
		return err
	}
	for _, info := range infos {
		if sv.Regions.Loaded(info.ID) == nil && !sv.Failures.Quarantined(info.ID) && sv.Responsible(info) && sv.misplaced(info, peers) && len(wrong) < maxWokenPerCheck {
			wrong = append(wrong, info)
		}
	}
	delete(peers, sv.Self)
	sv.Detector.Refresh(ctx, peers)
	if len(wrong) > 0 {
		sv.checkedNodes = "" // there may be more
	}
	for _, info := range wrong {
		l, err := sv.Regions.Open(ctx, info.ID, info.Cell)
		if err != nil {
			sv.Logger.Debug("region not opened", "cell", info.Cell.String(), "error", err)
			continue
		}
		l.Raft().Campaign()
	}
	return nil
}

// Responsible reports whether this node is responsible for the closed region: the last leader is, or else the first member that
// is not gone.
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

// misplaced reports whether a live node that should be a member is not one, or a member is gone and can be replaced. It adds the
// nodes whose state it needs to peers.
func (sv *Supervisor) misplaced(info nodemsg.Region, peers failuredetector.Watched) bool {
	members := make([]string, len(info.Members))
	for i, m := range info.Members {
		peers.Add(m.Peer, sv.Detector.Every)
		members[i] = m.Peer
	}
	wanted := 0
	for _, peer := range sv.Records.NearestKnown(sv.Directory.Key(info.Cell), directory.Candidates, members...) {
		peers.Add(peer, sv.Detector.StrangerEvery)
		_, lives := sv.Detector.Alive(peer)
		if peer != sv.Self && !lives && (!actor.HasMember(info, peer) || sv.Detector.Gone(peer)) {
			continue
		}
		if !actor.HasMember(info, peer) {
			return true
		}
		if wanted++; wanted == sv.Copies {
			break
		}
	}
	return false
}
