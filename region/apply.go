package region

import (
	"slices"

	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// This file applies to the loop what its group has committed. Everything here runs in the loop's goroutine.

// deliver applies what the group has committed.
func (l *loop) deliver() {
	if l.fault != nil {
		return // stop: the entry may have been applied in part
	}
	all := l.deliveries()
	for i, d := range all {
		if l.failed {
			return // stop: the land in memory is not the state that the next entries apply to
		}
		if l.mending != nil {
			l.heldDeliveries = all[i:]
			return
		}
		switch d := d.(type) {
		case replica.Committed:
			l.apply(d)
		case replica.Leadership:
			l.lead(d)
		case replica.Configured:
			l.configured(d)
		case replica.Restored:
			l.restored(d)
		case replica.Removed:
			l.removed = true
		case replica.Failed:
			l.logger.Error("region failed", "region", l.info.ID, "cell", l.info.Cell, "error", d.Err)
			l.fail(d.Err)
		}
	}
}

func (l *loop) apply(c replica.Committed) {
	if l.careful {
		l.report()
	}
	l.applying = c.Index
	if l.probe != nil {
		l.probe(l, c.Entry)
	}
	outcome, err := l.land.Apply(c.Index, c.Entry)
	l.applying = 0
	if err != nil {
		// Every replica refuses the same entry, so the states stay equal.
		l.logger.Error("log entry refused", "region", l.info.ID, "error", err)
	}
	own := c.Term == l.term && l.inFlight > 0
	if own {
		l.inFlight--
	}
	l.applied = c.Index
	if outcome.Barrier != nil {
		l.beginLook(c.Index, *outcome.Barrier)
		return
	}
	l.pinned(basesOf(outcome.Pins))
	for _, p := range outcome.Pins {
		l.crowd.Pinned(p)
	}
	for _, change := range outcome.Changes {
		l.crowd.Changed(change)
		delete(l.bases, change.Chunk) // pinned now
	}
	for _, result := range outcome.Results {
		key := edit{result.Player, result.Seq}
		l.sendResult(key, result)
		// Usually the first one: entries are committed in the order in which they were proposed.
		i := slices.IndexFunc(l.proposed, func(e nodemsg.Intent) bool { return edit{e.Player, e.Seq} == key })
		switch {
		case i == 0:
			l.proposed = l.proposed[1:]
		case i > 0:
			l.proposed = slices.Delete(l.proposed, i, i+1)
		}
	}
	if own {
		l.expected = len(outcome.Results) + len(l.waiting)
	}
	l.metrics.edits.Add(float64(len(outcome.Changes)))
}

// report hands the applied rows to the group to be stored. It does not do so after every entry, so that a row that changes often
// is written once.
func (l *loop) report() {
	if l.applied > l.reported {
		l.group.ReportApplied(l.applied, l.land.Writes())
		l.reported = l.applied
	}
}
