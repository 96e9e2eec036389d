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
	"strings"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/test/chaos/history"
	"github.com/voxelpopuli/voxeld/test/chaos/machine"
	"github.com/voxelpopuli/voxeld/test/chaos/players"
	"github.com/voxelpopuli/voxeld/test/chaos/report"
)

// Run makes a run: it starts the daemons, lets players edit, injects the scenario's faults, lets the cluster recover,
// reads the land at all gateways, and checks the history. An error means that the run failed, not that it found a
// violation. With an error the report is valid as far as the run came.
func Run(ctx context.Context, o Options, logger *slog.Logger) (*report.Report, error) {
	s := find(o.Scenario)
	if s == nil {
		return nil, fmt.Errorf("unknown scenario %q; known are: %s", o.Scenario, strings.Join(Scenarios(), ", "))
	}
	o = o.withDefaults(s.events)
	r := &report.Report{Scenario: o.Scenario, Seed: o.Seed, Command: o.Command, Out: o.Out, Faults: make(map[string]int)}
	has, kinds, possible := s.prepare(r)
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
	d := &driver{o: o, kinds: kinds, faults: &faults{
		observer: &observer{report: r, logger: logger, copies: cmp.Or(s.copies, 3)}, rng: rand.New(rand.NewPCG(o.Seed, 7)),
	}}
	cluster := ClusterOptions{
		Binary: o.Binary, Nodes: o.Nodes, Disks: has&disks != 0, Networks: has&networks != 0,
		LogDir: filepath.Join(o.Out, "logs"), Args: s.args,
	}
	if o.Divide {
		cluster.Args = append(slices.Clone(s.args), divideArgs...)
	}
	if d.Cluster, err = NewCluster(slot, cluster, logger); err == nil {
		err = d.run(ctx, s)
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

func (d *driver) run(ctx context.Context, s *scenario) (err error) {
	if d.ledger, err = history.OpenLedger(filepath.Join(d.o.Out, "ledger.jsonl")); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.ledger.Close()) }()
	if s.alone {
		err = d.Found(ctx)
	} else {
		err = d.Start(ctx)
	}
	if err != nil {
		return err
	}
	d.logger.Info("world is up", "nodes", d.o.Nodes, "events", d.o.Events, "expected", s.expected(d.o.Events).Round(time.Minute))
	start := time.Now()
	d.writers = players.StartWriters(ctx, gatewaysOf(d.Nodes), d.ledger, players.WriterOptions{Rate: d.o.Rate, Seed: d.o.Seed}, d.logger)
	watch, stopWatch := context.WithCancel(ctx)
	var watcher sync.WaitGroup
	watcher.Go(func() { d.watch(watch) })
	for _, g := range gatewaysOf(d.Nodes) {
		watcher.Go(func() { d.joinRepeatedly(watch, g, s.settle) })
	}
	err = d.inject(ctx, s)
	d.report.Took = time.Since(start)
	if err == nil {
		err = d.end(ctx, s)
	}
	d.writers.Stop()
	stopWatch()
	watcher.Wait()
	return errors.Join(err, d.lookForPanics())
}

// inject is the scenario's part of the run, after the cluster is settled.
func (d *driver) inject(ctx context.Context, s *scenario) error {
	if !s.alone {
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
	if !d.o.Divide {
		return d.hit(ctx, s)
	}
	dividing, stop := context.WithCancel(ctx)
	var divider sync.WaitGroup
	divider.Go(func() { d.keepDividing(dividing) })
	err := d.hit(ctx, s)
	stop()
	divider.Wait()
	return cmp.Or(err, d.examine(ctx))
}

func (d *driver) hit(ctx context.Context, s *scenario) error {
	if s.run != nil {
		return s.run(d, ctx)
	}
	return d.strike(ctx, s)
}

// end lets the cluster recover, waits for outstanding answers, and checks the history.
func (d *driver) end(ctx context.Context, s *scenario) error {
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
	d.measureLatency()
	d.judgeWaits(s)
	d.logger.Info("checking the history", "edits", d.ledger.Count(), "sights", len(d.ledger.Sights()))
	for i := range readings {
		readings[i].Final = true
	}
	d.report.Verdict, err = history.Check(d.ledger, append(d.readings, readings...), d.o.Out)
	return err
}

func (d *driver) measureLatency() {
	m := d.report.Measure("edit asked to acknowledged", "")
	for _, e := range d.ledger.Since(0) {
		if e.Outcome == history.Acknowledged {
			m.Times = append(m.Times, e.Returned-e.Invoked)
		}
	}
}

// watch records nodes that exit by themselves, and syncs the ledger.
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
