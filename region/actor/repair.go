package actor

import (
	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/world"
)

// This file repairs a damaged copy. A barrier in the log orders the repair. The sources retain their parts as of the
// barrier. The damaged member applies nothing beyond the barrier until it has fetched these parts, or given up. So the
// fetched part is exactly what the member's own part should have been at the barrier, and every later entry is applied
// to it: no acknowledged edit is lost, and none is undone. Memory and disk are repaired together. The disk is written
// by the node's one committer, in order with all other writes.

// applyBarrier starts a scrub or a repair. A repair of this member's copy pauses the region until the right parts are
// fetched.
func (l *land) applyBarrier(index uint64, barrier world.Barrier) {
	l.report() // brings the disk up to the barrier; a part that is replaced must have no unreported rows
	repairs := l.inspection.apply(index, barrier)
	if len(repairs) == 0 {
		return
	}
	l.paused = true
	l.Logger.Warn("this node's copy is damaged and is being repaired", "region", l.info.ID, "cell", l.info.Cell.String(),
		"parts", len(repairs), "first", repairs[0].Part.String(), "entry", index)
	l.FetchParts(RepairRequest{Region: l.info, Index: index, Repairs: repairs, Need: barrier.Need}, func(all []FetchedPart) {
		l.handle.enqueue(func(l *land) { l.endRepair(index, all) })
	})
}

// endRepair replaces the damaged parts with the fetched ones, and resumes.
func (l *land) endRepair(index uint64, all []FetchedPart) {
	if l.inspection.repairing != index {
		return
	}
	l.inspection.repairing = 0
	var writes []kv.Write
	for _, m := range all {
		part, err := l.contents.land.Replace(m.Part, m.Rows, m.Stored)
		if err != nil {
			l.Logger.Error("part not repaired", "region", l.info.ID, "part", m.Part.String(), "error", err)
			continue
		}
		writes = append(writes, part...)
		l.Metrics.repaired.Inc()
		l.Logger.Info("part repaired from the other members", "region", l.info.ID, "part", m.Part.String(), "rows", len(m.Rows))
		delete(l.edits.bases, m.Part.Chunk)
		l.hub.showAgain(m.Part.Chunk)
	}
	l.splitter.takeOver() // it may have been part of the damage
	l.group.ReportApplied(index, writes)
	l.resume()
	if l.leading {
		l.confirmAll() // those whose check ended during the pause
	}
}
