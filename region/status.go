package region

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/copies"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/region/integrity"
	"github.com/voxelpopuli/voxeld/region/split"
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// This file reports the status of regions on this node, to operators and to nodes that ask on their behalf.

// maxReason bounds the reason in a status, in bytes, so that many fit into an answer.
const maxReason = 300

// reporter reports the status of the copies on this node, and asks other nodes for theirs. Any goroutine may call its
// methods.
type reporter struct {
	self         string
	regions      *regions
	storage      integrity.Storage
	replicas     *replica.Host
	questions    transport.Questions
	facts        *integrity.Facts
	incarnations incarnations
	issuers      *integrity.Issuers
	loads        *split.Loads
}

// statuses answers nodemsg.StatusRequest.
func (r *reporter) statuses(q nodemsg.StatusRequest) []nodemsg.RegionStatus {
	all := make([]nodemsg.RegionStatus, len(q.Regions))
	for i, id := range q.Regions {
		all[i] = r.status(id, q.Log)
		if q.Stored {
			if err := r.loads.FillStored(&all[i], r.storage); err != nil {
				all[i].State, all[i].Why = nodemsg.StateFailed, wire.ErrorText(err)
			}
		}
	}
	return all
}

// catalog returns the status of the catalog here.
func (r *reporter) catalog() nodemsg.RegionStatus { return r.status(world.CatalogID, false) }

// status returns the status of a region here. With log it also reads the position of the stored copy.
func (r *reporter) status(id uint64, log bool) nodemsg.RegionStatus {
	s := nodemsg.RegionStatus{Region: id}
	var group *replica.Group
	if l := r.regions.Loaded(id); l != nil {
		group = l.Raft()
	} else if c := r.regions.Catalog(); c != nil && id == world.CatalogID {
		group = c.Raft()
	}
	has, err := r.replicas.Has(id)
	d, why := r.facts.Status(id)
	switch {
	case d.Reason == copies.Quarantined:
		s.State, s.Why = nodemsg.StateQuarantined, why
	case group != nil:
		s.State = nodemsg.StateOpen
		fillFromGroup(r.self, group, &s)
		if id == world.CatalogID {
			r.issuers.Vouch(&s)
		}
		r.loads.Fill(&s)
	case err != nil:
		s.State, s.Why = nodemsg.StateFailed, wire.ErrorText(err)
	case !has:
		s.Outdated = r.facts.Stored(id) == copies.Missing
		s.Forgotten = log && r.forgotten(id)
		return s
	case why != "":
		s.State, s.Why = nodemsg.StateFailed, why
		if s.Outdated = r.facts.Stored(id) == copies.Earlier; s.Outdated && !r.incarnations.rolledBackTo().IsZero() {
			s.Until = r.incarnations.rolledBackTo().Unix()
		}
	default:
		s.State = nodemsg.StateClosed
	}
	if log || s.State == nodemsg.StateQuarantined {
		fillFromDisk(r.replicas, &s)
	}
	if log && id != world.CatalogID {
		if structure, err := world.StructureIn(r.storage.Get, id); err == nil {
			s.Structure = &nodemsg.Structure{Split: structure.Split, Merged: structure.Merged, Vacated: structure.Vacated}
		}
	}
	for _, text := range []*string{&s.Why, &s.Undivided} {
		*text = strings.ToValidUTF8((*text)[:min(len(*text), maxReason)], "")
	}
	return s
}

// forgotten reports whether this node may have voted in a group of which it stores nothing.
func (r *reporter) forgotten(id uint64) bool {
	if r.facts.Stored(id) != copies.Sound || r.incarnations.unlisted() {
		return true
	}
	_, err := r.replicas.Position(id)
	return !errors.Is(err, replica.ErrNotOpen)
}

// fillFromGroup fills in the status from an open group.
func fillFromGroup(self string, g *replica.Group, s *nodemsg.RegionStatus) {
	status, conf := g.Status(), g.Configuration()
	s.Leader, s.Term, s.Last, s.Applied = status.Leader, status.Term, status.Last, status.Applied
	s.Epoch, s.Recovered = actor.EpochOf(conf), conf.Recovered
	for _, m := range conf.Members { // those of the epoch; the status may be a tick older
		c := nodemsg.MemberStatus{Replica: nodemsg.Replica{ID: m.ID, Peer: m.Peer, Learner: m.Learner}}
		i := slices.IndexFunc(status.Members, func(p replica.Progress) bool { return p.ID == m.ID })
		if m.Peer == self {
			s.Replica = m.ID
		} else if status.Self && i >= 0 {
			c.Silent, c.Behind = !status.Members[i].Active, status.Last-min(status.Last, status.Members[i].Match)
		}
		s.Members = append(s.Members, c)
	}
}

// fillFromDisk fills in the position that is stored.
func fillFromDisk(replicas *replica.Host, s *nodemsg.RegionStatus) {
	p, err := replicas.Position(s.Region)
	if err != nil {
		if !errors.Is(err, replica.ErrNotOpen) && !errors.Is(err, replica.ErrTombstone) {
			s.State, s.Why = nodemsg.StateFailed, wire.ErrorText(err)
		}
		return
	}
	s.Last, s.LastTerm, s.Applied, s.Replica = p.Last, p.LastTerm, p.Applied, p.Replica
	s.Epoch, s.Recovered = actor.EpochOf(p.Members), p.Members.Recovered
	if len(s.Members) > 0 {
		return
	}
	for _, m := range p.Members.Members {
		s.Members = append(s.Members, nodemsg.MemberStatus{Replica: nodemsg.Replica{ID: m.ID, Peer: m.Peer, Learner: m.Learner}})
	}
}

// ask asks a node for the status of regions; for this node no message is sent. Skew is how far the node's clock
// is ahead of this one's, or 0 if the round trip took too long to measure it.
func (r *reporter) ask(ctx context.Context, peer string, q nodemsg.StatusRequest) (statuses []nodemsg.RegionStatus, skew time.Duration, err error) {
	if peer == r.self {
		return r.statuses(q), 0, nil
	}
	start := time.Now()
	answer, err := r.questions.Ask(ctx, peer, nodemsg.Question{Status: &q})
	if err != nil {
		return nil, 0, err
	}
	if len(answer.Statuses) != len(q.Regions) || !slices.EqualFunc(answer.Statuses, q.Regions, func(s nodemsg.RegionStatus, id uint64) bool { return s.Region == id }) {
		return nil, 0, fmt.Errorf("%s: reply does not match the request", peer)
	}
	return answer.Statuses, directory.Skew(answer.Clock, start, time.Since(start)), nil
}
