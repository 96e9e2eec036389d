package chaos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/voxelpopuli/voxeld/test/chaos/history"
	"github.com/voxelpopuli/voxeld/test/chaos/machine"
	"github.com/voxelpopuli/voxeld/test/chaos/players"
)

// Options configure a run. The zero value of a field means its default.
type Options struct {
	Scenario string  // one of Scenarios, or strikes with + between them (required)
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

// driver is one run. Its methods run in one goroutine, except where one says otherwise.
type driver struct {
	*Cluster
	o        Options
	s        *scenario
	strikes  []strike // of the scenario, as far as this machine has what they need
	copies   int      // members that a region should have
	rng      *rand.Rand
	ledger   *history.Ledger
	writers  *players.Writers
	report   *Report
	logger   *slog.Logger
	spans    []span               // of the faults that lasted
	readings []history.Reading    // during edits
	calm     sync.Mutex           // is held by whoever splits or merges, or waits until nothing changes
	mayDie   atomic.Pointer[Node] // this node may exit by itself at the moment
}

// Run makes a run: it starts the daemons, lets players edit, injects the scenario's faults, lets the cluster recover,
// reads the land at all gateways, and checks the history. An error means that the run failed, not that it found a
// violation. With an error the report is valid as far as the run came.
func Run(ctx context.Context, o Options, logger *slog.Logger) (*Report, error) {
	s, err := find(o.Scenario)
	if err != nil {
		return nil, err
	}
	o = o.withDefaults(s.events)
	r := &Report{Scenario: o.Scenario, Seed: o.Seed, Command: o.Command, Out: o.Out, Faults: make(map[string]int)}
	has, strikes, possible := s.prepare(r)
	if !possible {
		return r, nil
	}
	if err := os.MkdirAll(o.Out, 0o755); err != nil {
		return r, fmt.Errorf("make output directory: %w", err)
	}
	slot, err := machine.TakeSlot()
	if err != nil {
		return r, err
	}
	d := &driver{o: o, s: s, strikes: strikes, copies: cmp.Or(s.copies, 3), rng: rand.New(rand.NewPCG(o.Seed, 7)), report: r, logger: logger}
	cluster := ClusterOptions{
		Binary: o.Binary, Nodes: o.Nodes, Disks: has&disks != 0, Networks: has&networks != 0,
		LogDir: filepath.Join(o.Out, "logs"), Args: s.flags(),
	}
	if o.Divide {
		cluster.Args = append(cluster.Args, divideArgs...)
	}
	if d.Cluster, err = NewCluster(slot, cluster, logger); err == nil {
		err = d.run(ctx)
	}
	if d.Cluster != nil {
		err = errors.Join(err, d.Stop())
	}
	err = errors.Join(err, slot.Close())
	if err != nil {
		r.Problem("the run ended early: %v", err)
	}
	r.Failed = r.Failed || err != nil || len(r.Problems) > 0 || r.Verdict != nil && r.Verdict.Bad()
	return r, errors.Join(err, r.Save(o.Out))
}

func (d *driver) run(ctx context.Context) (err error) {
	if d.ledger, err = history.OpenLedger(filepath.Join(d.o.Out, "ledger.jsonl")); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.ledger.Close()) }()
	if err = d.Found(ctx); err == nil && !d.s.alone() {
		err = d.startAll(ctx, d.Nodes[1:])
	}
	if err != nil {
		return err
	}
	d.logger.Info("world is up", "nodes", d.o.Nodes, "events", d.o.Events, "expected", d.s.expected(d.o.Events).Round(time.Minute))
	start := time.Now()
	d.writers = players.StartWriters(ctx, gatewaysOf(d.Nodes), d.ledger, players.WriterOptions{Rate: d.o.Rate, Seed: d.o.Seed}, d.logger)
	watch, stopWatch := context.WithCancel(ctx)
	var watcher sync.WaitGroup
	watcher.Go(func() { d.watch(watch) })
	for _, g := range gatewaysOf(d.Nodes) {
		watcher.Go(func() { d.joinRepeatedly(watch, g, d.s.judged()) })
	}
	err = d.inject(ctx)
	d.report.Took = time.Since(start)
	if err == nil {
		err = d.end(ctx)
	}
	d.writers.Stop()
	stopWatch()
	watcher.Wait()
	return errors.Join(err, d.lookForPanics())
}

// inject injects the faults, after the cluster is settled.
func (d *driver) inject(ctx context.Context) error {
	if !d.s.alone() {
		took, err := eventually(ctx, 60*time.Second, func() string { return d.missing(ctx) })
		if err != nil {
			return fmt.Errorf("wait for all regions before the first fault: %w", err)
		}
		d.logger.Info("all regions have their members", "after", took.Round(time.Millisecond))
	}
	mark := d.ledger.Count()
	if _, err := eventually(ctx, 60*time.Second, func() string { return d.missingEdits(mark) }); err != nil {
		return fmt.Errorf("wait for edits before the first fault: %w", err)
	}
	hit := d.strikeAll
	if d.s.run != nil {
		hit = func(ctx context.Context) error { return d.s.run(d, ctx) }
	}
	dividing, stop := context.WithCancel(ctx)
	defer stop()
	var divider sync.WaitGroup
	if d.o.Divide {
		divider.Go(func() { d.keepDividing(dividing) })
	}
	err := hit(ctx)
	stop()
	divider.Wait()
	if err != nil || !d.o.Divide && !slices.Contains(d.s.strikes, "divide") {
		return err
	}
	return d.examine(ctx)
}

// end lets the cluster recover, waits for outstanding answers, and checks the history.
func (d *driver) end(ctx context.Context) error {
	took, err := eventually(ctx, 90*time.Second, func() string { return d.missing(ctx) })
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		d.report.Problem("cluster did not recover after the last fault: %v", err)
	} else {
		d.logger.Info("all regions recovered", "after", took.Round(time.Millisecond))
	}
	d.writers.Quiet()
	if _, err = eventually(ctx, 60*time.Second, func() string {
		if n := d.writers.Open(); n > 0 {
			return fmt.Sprintf("%d edits are not answered", n)
		}
		return ""
	}); ctx.Err() != nil {
		return ctx.Err()
	} else if err != nil {
		d.report.Problem("after recovery: %v", err)
	}
	pause(ctx, time.Second) // the deltas of the last edits arrive everywhere
	readings, err := players.ReadAll(ctx, gatewaysOf(d.Nodes), d.ledger, players.ReadLimit)
	if err != nil {
		d.report.Problem("after recovery: %v", err)
	}
	d.writers.Stop()
	d.report.Count("sessions begun", "", int(d.writers.Begun.Load()))
	d.report.Count("sessions lost", "", int(d.writers.Lost.Load()))
	for _, e := range d.ledger.Since(0) {
		if e.Outcome == history.Acknowledged {
			d.report.Time("edit asked to acknowledged", "", e.Returned-e.Invoked)
		}
	}
	d.judgeWaits()
	d.logger.Info("checking the history", "edits", d.ledger.Count(), "sights", len(d.ledger.Sights()))
	for i := range readings {
		readings[i].Final = true
	}
	d.report.Verdict, err = history.Check(d.ledger, append(d.readings, readings...), d.o.Out)
	return err
}

// watch records nodes that exit by themselves, and syncs the ledger. It has a goroutine of its own.
func (d *driver) watch(ctx context.Context) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, n := range d.Nodes {
			if code, yes := n.exitedUnexpectedly(); yes && d.mayDie.Load() != n {
				d.report.Problem("node %d exited unexpectedly with code %d: %s", n.Number, code, n.logTail())
			}
		}
		if err := d.ledger.Sync(); err != nil {
			d.report.Problem("%v", err)
			return
		}
	}
}

func (d *driver) lookForPanics() error {
	found, err := d.panics()
	for _, line := range found {
		d.report.Problem("%s", line)
	}
	return err
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
