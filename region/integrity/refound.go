package integrity

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/copies"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/region/placement"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// This file founds a region again of which no copy is left: from its terrain, or with land from a backup
// (docs/adr/0025). The node that leads the catalog does it, or one that the catalog lists as a member, because no other
// can enter the region's new member there.

// Refounder founds lost regions again.
type Refounder struct {
	Node

	Executor    *Executor
	Evicted     *Evicted
	AskStatuses AskStatuses
	LastHeard   func(peer string) time.Time // when a node was last heard from
}

// RefoundedLand is the land that a region is to have. The zero value is none: its terrain.
type RefoundedLand struct {
	From replica.Origin
	Rows []kv.Write // of the land table, of a region with any id, in the order of their keys
}

// RefoundPlan is what is known of a region that is to be founded again.
type RefoundPlan struct {
	Region nodemsg.Region
	// Members are the states of the members, for people, in the order of the catalog.
	Members []string
	// Refused is why it cannot be founded again on this node, and what to do; empty if it can.
	Refused string
}

// Plan examines the members of the cell's region. It changes nothing.
func (r *Refounder) Plan(ctx context.Context, cell grid.Cell) (RefoundPlan, error) {
	info, err := r.find(ctx, cell)
	if err != nil {
		return RefoundPlan{}, err
	}
	p := RefoundPlan{Region: info}
	want := make(map[string][]uint64)
	for _, m := range info.Members {
		want[m.Peer] = append(want[m.Peer], info.ID)
	}
	s := PollStatuses(ctx, r.AskStatuses, want, true)
	copies := 0
	for _, m := range info.Members {
		status, answered := s.Of(m.Peer, info.ID)
		heard := r.LastHeard(m.Peer)
		state := "answers, and has no copy"
		switch {
		case status.Outdated && status.State == nodemsg.StateFailed:
			state = "has an old copy, because its data was put back to an earlier state; on that node, voxeld region recover uses it"
		case m.Peer == r.Self.Peer && r.unusable(info.ID):
			state = "this node: its copy is damaged"
		case !answered && !heard.IsZero() && time.Since(heard) < r.SilentAfter():
			state = "does not answer"
			p.Refused = fmt.Sprintf("%s was last heard from less than %v ago: wait to see whether it comes back", m.Peer, r.SilentAfter())
		case !answered:
			state = "does not answer"
		case status.State == nodemsg.StateFailed:
			state = "its copy is of no use: " + status.Why
		case status.State != nodemsg.StateNone && info.Split != 0: // without land
			state = "has a copy"
			if copies++; 2*copies > len(info.Members) {
				p.Refused = "most of its members are alive, so it is not lost"
			}
		case status.State != nodemsg.StateNone:
			state = "has a copy"
			p.Refused = fmt.Sprintf("%s has a copy: on that node, run voxeld region recover %s", m.Peer, Name(info))
		case info.Epoch == actor.FirstEpoch && !status.Forgotten:
			state = "has never opened it"
		}
		p.Members = append(p.Members, m.Peer+": "+state)
	}
	if len(info.Members) == 1 && strings.HasSuffix(p.Members[0], "has never opened it") {
		p.Refused = "it was never opened, so nothing is lost"
	}
	return p, nil
}

// unusable reports whether the copy here cannot be read, or is gone. One that only failed, or is only old, has the
// land.
func (r *Refounder) unusable(id uint64) bool {
	stored := r.Executor.Facts.Stored(id)
	return stored == copies.Unreadable || stored == copies.Missing
}

// find returns the region as the catalog has it, if this node may enter another member there.
func (r *Refounder) find(ctx context.Context, cell grid.Cell) (nodemsg.Region, error) {
	if c := r.Regions.Catalog(); c != nil && c.Raft().Status().Self {
		info, err := c.At(ctx, cell)
		if err != nil {
			return nodemsg.Region{}, fmt.Errorf("region %v: %w", cell, err)
		}
		return info, nil
	}
	all, err := r.Registry.All()
	if err != nil {
		return nodemsg.Region{}, err
	}
	for _, info := range all {
		if info.Cell != cell {
			continue
		}
		if now, err := r.Directory.ByID(ctx, info.ID); err == nil && actor.HasMember(now, r.Self.Peer) {
			return now, nil
		}
	}
	leader := r.Directory.CatalogLeader(ctx)
	if leader == "" {
		return nodemsg.Region{}, errors.New("the catalog has no leader: recover the catalog first (voxeld doctor)")
	}
	return nodemsg.Region{}, fmt.Errorf("run this on the node that leads the catalog, %s", leader)
}

// Refound makes this node the only member of the cell's region, with the land. Other nodes become members afterwards,
// as in any region.
func (r *Refounder) Refound(ctx context.Context, cell grid.Cell, land RefoundedLand) error {
	p, err := r.Plan(ctx, cell)
	if err != nil {
		return err
	}
	if p.Refused != "" {
		return fmt.Errorf("replace %v: %s", cell, p.Refused)
	}
	info := p.Region
	if info.Split != 0 && len(land.Rows) > 0 {
		return fmt.Errorf("replace %v: it is split, and its parts have its land: use --anew, and put back its parts if they are lost", cell)
	}
	from := land.From
	known := actor.ConfigurationOf(info.Epoch)
	from.Index = max(from.Index, known.Index, info.Split, info.Merged)
	structure, err := r.structure(ctx, info, from)
	if err != nil {
		return fmt.Errorf("replace %v: %w", cell, err)
	}
	rows, err := r.rows(info, land.Rows, structure)
	if err != nil {
		return err
	}
	before := info
	before.Members = slices.DeleteFunc(slices.Clone(info.Members), func(m nodemsg.Member) bool { return m.Peer == r.Self.Peer })
	if before.Leader == r.Self.Peer {
		before.Leader = "" // it is none of them
	}
	if err := r.Evicted.Keep(before); err != nil {
		return err
	}
	if err := r.close(ctx, info.ID); err != nil {
		return err
	}
	from.Term, from.Recovered = max(from.Term, info.Term), max(from.Recovered, known.Recovered)
	from.Next = max(from.Next, 1)
	for _, m := range info.Members {
		from.Next = max(from.Next, m.Replica+1)
	}
	now := info
	now.Leader, now.Members = "", []nodemsg.Member{r.Self}
	row, err := nodemsg.EncodeRegion(now)
	if err != nil {
		return err
	}
	writes, err := r.Registry.Deletion(info.ID)
	if err != nil {
		return err
	}
	writes = append(append(writes, kv.Write{Table: directory.Table, Key: directory.Key(info.ID), Value: row}), rows...)
	if err := r.Replicas.Restore(info.ID, from, writes...); err != nil {
		return err
	}
	r.Executor.Facts.Clear(info.ID)
	r.Directory.Invalidate(info)
	r.Logger.Warn("region founded again on this node", "region", info.ID, "cell", cell.String(), "rows", len(rows))
	return r.open(ctx, info)
}

// structure returns the structure that a region is to have that continues from the origin, as the catalog lists it.
func (r *Refounder) structure(ctx context.Context, info nodemsg.Region, from replica.Origin) (world.Structure, error) {
	s := world.Structure{Split: info.Split, Merged: info.Merged}
	if s.Split != 0 || s.Merged != 0 {
		s.Attempt = from.Index + 1<<32 // beyond all attempts until now: each was an entry
	}
	if info.Cell.Label.Len() <= grid.FoundingLabel {
		return s, nil
	}
	parent, err := r.Directory.Exactly(ctx, info.Cell.Parent())
	if children := world.ChildrenOf(parent); err == nil && children[0].ID != info.ID && children[1].ID != info.ID {
		err = fmt.Errorf("it is no part of region %d any more", parent.ID)
	}
	s.Parent, s.ParentSplit = parent.ID, parent.Split
	return s, err
}

// rows checks the rows, and returns them as rows of the region with the structure.
func (r *Refounder) rows(info nodemsg.Region, rows []kv.Write, structure world.Structure) ([]kv.Write, error) {
	land := world.NewLand(info.ID, info.Cell, r.Height)
	var own []kv.Write
	for _, row := range rows {
		if len(row.Key) < 8 {
			return nil, fmt.Errorf("replace %v: a row has no region", info.Cell)
		}
		key := append(directory.Key(info.ID), row.Key[8:]...)
		if err := land.Load(key, row.Value); err != nil {
			return nil, fmt.Errorf("replace %v: %w", info.Cell, err)
		}
		if !world.IsStructure(key) {
			own = append(own, kv.Write{Table: world.LandTable, Key: key, Value: bytes.Clone(row.Value)})
		}
	}
	if land.Structure().Split != 0 {
		return nil, fmt.Errorf("replace %v: the backup was made while it was split, and has its land in parts: take another one", info.Cell)
	}
	structure.Edited = land.Structure().Edited
	if structure != (world.Structure{}) {
		own = append(own, world.StructureRow(info.ID, structure))
	}
	return own, nil
}

// close ends what is open of the region here.
func (r *Refounder) close(ctx context.Context, id uint64) error {
	r.Executor.ReleaseHere(id)
	l := r.Regions.Loaded(id)
	if l == nil {
		return nil
	}
	l.Close("the region is being replaced")
	select {
	case <-l.Done():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// open opens the region and enters this node as its member into the catalog.
func (r *Refounder) open(ctx context.Context, info nodemsg.Region) error {
	l, err := r.Regions.Open(ctx, info.ID, info.Cell)
	if err != nil {
		return err
	}
	if err := placement.AwaitGroup(ctx, func() bool { return l.Raft().Status().Self }); err != nil {
		return err
	}
	now, err := l.Info(ctx)
	if err == nil {
		_, err = r.Directory.ReportMoved(ctx, now)
	}
	if err != nil {
		return fmt.Errorf("enter the region into the catalog: %w", err)
	}
	return nil
}
