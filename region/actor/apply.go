package actor

import (
	"errors"
	"time"

	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

func (l *land) apply(c replica.Committed) {
	if l.careful {
		l.report()
	}
	l.applying = c.Index
	if l.Probe != nil {
		l.Probe(Tx{l}, c.Entry)
	}
	before := l.contents.land.Structure()
	var outcome world.Outcome
	var err error
	if l.edits.newest.is(c.Entry) {
		outcome = l.contents.land.ApplyProven(c.Index, l.edits.newest.batch)
		l.edits.newest = proposal{}
	} else {
		outcome, err = l.contents.land.Apply(c.Index, c.Entry)
	}
	l.applying = 0
	if errors.Is(err, world.ErrOldBatch) {
		panic(&Fault{Kind: Broken, Cause: err})
	}
	if err != nil {
		// Every replica refuses the same entry, so the states stay equal.
		l.Logger.Error("log entry refused", "region", l.info.ID, "error", err)
	}
	own := world.IsBatch(c.Entry) && l.edits.countCommitted(c.Term)
	if outcome.Step == world.Splits {
		l.splitter.begin(c)
		return
	}
	l.applied = c.Index
	if outcome.Step != world.NoStep {
		l.splitter.applied(outcome.Step, before)
		return
	}
	l.splitter.refuseAwaited() // it may have been meant to be a step
	if outcome.Barrier != nil {
		l.applyBarrier(c.Index, *outcome.Barrier)
		return
	}
	if outcome.Marks {
		l.marks.proposed = time.Time{} // if more are missing, they come next
	}
	l.Pinned(BasesOf(outcome.Pins))
	for _, p := range outcome.Pins {
		l.contents.crowd.Pinned(p)
	}
	for _, change := range outcome.Changes {
		l.contents.crowd.Changed(change)
		l.changed[change.Chunk]++
	}
	l.edits.committed(outcome, own)
	l.mods.applied(outcome)
	l.Metrics.edits.Add(float64(len(outcome.Changes)))
}

// restore replaces the land after a snapshot was installed.
func (l *land) restore(index uint64) error {
	l.applied, l.reported = index, index // unreported rows of the old land must not overwrite the new rows
	land, err := l.Reload(l.info)
	if err != nil {
		return err
	}
	land.Proofs = l.Proofs
	l.contents.land, l.inspection.current = land, nil
	l.splitter.takeOver()
	l.Pinned(BasesOf(land.Pins()))
	clear(l.edits.bases)
	l.Logger.Debug("region restored", "region", l.info.ID, "index", index, "edits", land.Edits())
	return nil
}

// BasesOf returns the bases of pins.
func BasesOf(pins []world.Pin) []nodemsg.BaseOf {
	all := make([]nodemsg.BaseOf, len(pins))
	for i, p := range pins {
		all[i] = nodemsg.BaseOf{Chunk: p.Chunk, Hash: p.Base}
	}
	return all
}
