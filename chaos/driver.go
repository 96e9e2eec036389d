package chaos

import (
	"context"
	"sync/atomic"
	"time"
)

// Options configure a run. The zero value of a field means its default.
type Options struct {
	Scenario string        // one of Scenarios
	Events   int           // faults; default the scenario's
	Seed     uint64        // of all random choices of the driver; default 1
	Nodes    int           // default 5
	Rate     float64       // edits a second; default 200
	Binary   string        // voxeld
	Out      string        // directory for ledger, logs, report and histories; must not contain a run yet
	LogLevel string        // of the daemons; default info
	Divide   bool          // regions split and merge during the whole run
	Limit    time.Duration // faults end after that, whatever their number; default none
	Command  string        // for the report: the command that repeats the run
}

// withDefaults returns the options of a scenario that makes that many events by default.
func (o Options) withDefaults(events int) Options {
	if o.Events == 0 {
		o.Events = events
	}
	if o.Seed == 0 {
		o.Seed = 1
	}
	if o.Nodes == 0 {
		o.Nodes = 5
	}
	if o.Rate == 0 {
		o.Rate = 200
	}
	return o
}

// driver is one run. Scenarios are its methods; they run in one goroutine.
type driver struct {
	o Options
	*faults
	until time.Time // the end of Limit; zero if there is none

	mayDie atomic.Pointer[Node] // this node may exit by itself at the moment
}

// more reports whether to make another event.
func (d *driver) more(ctx context.Context, event int) bool {
	if ctx.Err() != nil || event >= d.o.Events || !d.until.IsZero() && time.Now().After(d.until) {
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
