package chaos

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"
)

// Options configure a run. The zero value of a field means its default.
type Options struct {
	Scenario string  // one of Scenarios
	Events   int     // faults; default the scenario's
	Seed     uint64  // of all random choices of the driver; default 1
	Nodes    int     // default 5
	Rate     float64 // edits a second; default 200
	Binary   string  // voxeld
	Out      string  // directory for ledger, logs, report and histories; must not contain a run yet
	Divide   bool    // regions split and merge during the whole run
	Command  string  // for the report: the command that repeats the run
}

// withDefaults returns the options of a scenario that makes that many events by default.
func (o Options) withDefaults(events int) Options {
	o.Events, o.Seed, o.Nodes, o.Rate = cmp.Or(o.Events, events), cmp.Or(o.Seed, 1), cmp.Or(o.Nodes, 5), cmp.Or(o.Rate, 200)
	return o
}

// driver is one run. Scenarios are its methods; they run in one goroutine.
type driver struct {
	o Options
	*faults

	kinds  []strike             // of the scenario, as far as this machine has what they need
	mayDie atomic.Pointer[Node] // this node may exit by itself at the moment
}

// more reports whether to make another event.
func (d *driver) more(ctx context.Context, event int) bool {
	if ctx.Err() != nil || event >= d.o.Events {
		return false
	}
	d.report.Events = event + 1
	return true
}

// pause waits, unless ctx ends before.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
