// Command durable measures how many edits a second three nodes on this machine acknowledge, durably on a majority. It
// compares that with a three-member etcd in the same run, on the same disk, with as many writers.
//
// Every writer is a closed loop: it has one write under way, and begins the next when that one is acknowledged. The
// systems take turns within each round, so that other load on the machine affects them alike; ratios compare
// measurements of the same round. Two layers of voxeld are measured:
//
//   - player: three voxeld daemons; each writer is a player with their own TCP session in CBOR, who edits blocks
//     within reach, on the node that leads their region.
//   - region: three processes with all of a daemon but its gateway (store, libp2p, DHT, raft, catalog, region loops);
//     the writers are in these processes and use the regions as gateways do.
//
// `durable idle` measures what unused regions cost, and how fast they wake (idle.go).
//
// It starts processes on loopback addresses from 127.180.0.1 on, with their data in the working directory, and needs
// etcd (Debian's etcd-server) and the go command. `make bench-durable` runs it; docs/performance-durable.md has
// results.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "node" {
		exit(runNode(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == "idle" {
		exit(runIdle(os.Args[2:]))
	}
	var o options
	systems := flag.String("systems", "etcd,region,player", "which of etcd, region and player, in this order in each round")
	writers := flag.String("writers", "512,1", "numbers of writers")
	flag.IntVar(&o.rounds, "rounds", 3, "rounds")
	flag.DurationVar(&o.duration, "duration", 8*time.Second, "time of each measuring")
	flag.Float64Var(&o.rate, "rate", 0, "writes a second of all writers together; 0: unlimited; not for etcd")
	flag.BoolVar(&o.keys, "keys", false, "writers are players with keys, who sign their edits; not for etcd")
	flag.Parse()
	o.systems = strings.Split(*systems, ",")
	for text := range strings.SplitSeq(*writers, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			exit(fmt.Errorf("-writers: %q is not a number of writers", text))
		}
		o.writers = append(o.writers, n)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	exit(run(ctx, o))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "durable:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func run(ctx context.Context, o options) error {
	dir, remove, err := workDir("durable")
	if err != nil {
		return err
	}
	defer remove()
	o.dir = dir
	systems := make(map[string]system)
	defer func() {
		for _, s := range systems {
			s.stop()
		}
	}()
	for i, name := range o.systems {
		begin := map[string]func(context.Context, options, int) (system, error){
			"etcd": startEtcd, "region": startRegions, "player": startPlayers,
		}[name]
		if begin == nil {
			return fmt.Errorf("-systems: %q is not one of etcd, region, player", name)
		}
		fmt.Fprintf(os.Stderr, "starting %s\n", name)
		s, err := begin(ctx, o, 180+5*i)
		if err != nil {
			return fmt.Errorf("start %s: %w", name, err)
		}
		systems[name] = s
	}
	var rows []row
	for round := range o.rounds {
		for _, writers := range o.writers {
			for _, name := range o.systems {
				r, err := measure(ctx, o, name, systems[name], writers)
				if err != nil {
					return fmt.Errorf("%s, %d writers: %w", name, writers, err)
				}
				r.round = round + 1
				rows = append(rows, r)
				fmt.Fprintf(os.Stderr, "round %d  %-7s %4d writers  %8.0f/s  p50 %6.2f ms  p99 %6.2f ms\n",
					r.round, name, writers, r.rate(), float64(r.P50)/1000, float64(r.P99)/1000)
			}
		}
	}
	report(os.Stdout, o, rows)
	return nil
}

func measure(ctx context.Context, o options, name string, s system, writers int) (row, error) {
	before, err := s.usage()
	if err != nil {
		return row{}, err
	}
	began := time.Now()
	r, err := s.load(ctx, writers, 2*time.Second, o.duration)
	if err != nil {
		return row{}, err
	}
	share := r.Seconds / time.Since(began).Seconds() // usage includes the warm-up
	after, err := s.usage()
	if err != nil {
		return row{}, err
	}
	used := usage{
		cpu:    time.Duration(float64(after.cpu-before.cpu) * share),
		client: time.Duration(float64(after.client-before.client) * share),
		fsyncs: (after.fsyncs - before.fsyncs) * share,
	}
	return row{system: name, writers: writers, result: r, usage: used}, nil
}
