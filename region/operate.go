package region

import (
	"context"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/backups"
	"github.com/voxelpopuli/voxeld/region/health"
	"github.com/voxelpopuli/voxeld/region/integrity"
	"github.com/voxelpopuli/voxeld/region/rollback"
	"github.com/voxelpopuli/voxeld/region/split"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// This file is the part of the Host that operators use.

// Scrubbed is the result of the scrub of one region.
type Scrubbed = integrity.Scrubbed

// Health is the result of an examination of the world.
type Health = health.Health

// Finding is a problem of the world.
type Finding = health.Finding

// Damage is a copy that is known to be damaged and is not repaired.
type Damage = integrity.Damage

// RecoveryPlan is the plan for recovering a region.
type RecoveryPlan = integrity.RecoveryPlan

// Damaged lists the damage that this node knows of and that is not repaired: in regions that it led when they were
// scrubbed last, and in its own unusable copies.
func (h *Host) Damaged() []Damage { return h.Examiner.Damages() }

// Scrub scrubs the region of a cell now, if this node leads it, or if it is a member and the region is closed.
func (h *Host) Scrub(ctx context.Context, cell grid.Cell) Scrubbed {
	return h.scrubber.Scrub(ctx, cell)
}

// ScrubAll scrubs all regions that this node leads, and the closed ones that it is responsible for.
func (h *Host) ScrubAll(ctx context.Context) []Scrubbed { return h.scrubber.ScrubAll(ctx) }

// RangeQuery is what is asked of a rectangle of the world.
type RangeQuery = rollback.RangeQuery

// RangeResult is what is in it.
type RangeResult = rollback.RangeResult

// MissingRange is a part of it of which nothing is known.
type MissingRange = rollback.Missing

// CheckRange returns an error if a range query of the area is not allowed.
func CheckRange(area grid.Area) error { return nodemsg.RectangleOf(area).Valid() }

// BackupOptions are what a backup is to have.
type BackupOptions = backups.ExportOptions

// KnownGroup is a group as an earlier backup has it.
type KnownGroup = backups.Known

// PlanRecovery examines the regions, all of which this node must be a member of, and returns how each could be
// recovered. It changes nothing.
func (h *Host) PlanRecovery(ctx context.Context, ids []uint64) ([]RecoveryPlan, error) {
	return h.recovery.Plan(ctx, ids)
}

// Recover makes this node the only member of a region that has lost the majority of its members, and serves it. It
// fails unless a new plan allows it. If only an old copy is left, it also fails unless old is set.
func (h *Host) Recover(ctx context.Context, id uint64, old bool) error {
	return h.recovery.Recover(ctx, id, old)
}

// Release ends the quarantine of a region on this node, which must be one of its members, and on those other members
// that can be reached. It returns the peers that were informed and those that were missed.
func (h *Host) Release(ctx context.Context, id uint64) (informed, missed []string, err error) {
	return h.executor.Release(ctx, id)
}

// Memberships lists the regions that this node stores a copy of, the catalog first.
func (h *Host) Memberships() ([]nodemsg.Region, error) { return h.regions.memberships() }

// Name returns the name of a region for people: its cell, or "catalog".
func Name(info nodemsg.Region) string { return integrity.Name(info) }

// Concerned returns the groups to which a damaged row may belong that was found in a table under the first of the keys,
// next to the others. Ok is false if the table holds no rows of single groups. Group 1 is the catalog.
func Concerned(table string, keys [][]byte) (groups []uint64, ok bool) {
	return integrity.Concerned(table, keys)
}

// SplitTriggers lists what regions are split because of, as voxeld_region_splits_total names it.
func SplitTriggers() []string {
	var names []string
	for _, kind := range split.LoadKinds() {
		names = append(names, kind.String())
	}
	return append(names, "manual")
}
