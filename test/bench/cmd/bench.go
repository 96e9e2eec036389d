package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/voxelpopuli/voxeld/test/testkit/daemon"
	"github.com/voxelpopuli/voxeld/test/testkit/figure"
	"github.com/voxelpopuli/voxeld/test/testkit/process"
	"github.com/voxelpopuli/voxeld/test/testkit/sessionclient"
)

// bench is what all figures share.
type bench struct {
	binary string
	cores  cores
	warm   time.Duration // 0: the figure's own
	length time.Duration // 0: the figure's own
	write  bool
	docs   string
	memory int64 // MiB
	nice   int
	// carrier is what carries the players' sessions.
	carrier string

	dir string // for data directories; removed at the end
	run int    // counts data directories
}

// What carries sessions: WebSockets, as those of pages, the same over TLS, or TCP.
const (
	carrierWebSocket = "websocket"
	carrierTLS       = "tls"
	carrierTCP       = "tcp"
)

// daemons starts a world of n fresh daemons, with further flags.
func (b *bench) daemons(ctx context.Context, n int, flags ...string) ([]*daemon.Daemon, error) {
	return b.daemonsOf(ctx, n, daemon.Options{Args: flags})
}

// daemonsOf starts a world of n fresh daemons, with the options' flags.
func (b *bench) daemonsOf(ctx context.Context, n int, o daemon.Options) ([]*daemon.Daemon, error) {
	dir, err := b.freshDir()
	if err != nil {
		return nil, err
	}
	began, reported := time.Now(), time.Now()
	o.Binary, o.Dir, o.Options = b.binary, dir, b.conditions()
	if b.carrier == carrierTLS {
		certificate, key, err := b.certificate()
		if err != nil {
			return nil, err
		}
		o.Args = append(o.Args, "--tls-cert", certificate, "--tls-key", key)
	}
	return daemon.Network(ctx, o, n, 1, func(started int) {
		if time.Since(reported) > progressEvery || started == n && n > manyDaemons {
			reported = time.Now()
			logf("%d of %d daemons serve after %.0f s", started, n, time.Since(began).Seconds())
		}
	})
}

// freshDir makes a directory for the daemons of one measurement.
func (b *bench) freshDir() (string, error) {
	b.run++
	dir := filepath.Join(b.dir, fmt.Sprintf("run-%d", b.run))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make directory: %w", err)
	}
	return dir, nil
}

const (
	// progressEvery is the interval between progress messages of a long step.
	progressEvery = 5 * time.Second
	// manyDaemons is the number of daemons up to which their start is not reported.
	manyDaemons = 8
)

// conditions returns the cores and the priority of what is measured.
func (b *bench) conditions() process.Options {
	o := process.Options{CPUs: b.cores.Servers, Procs: 1, Nice: b.nice}
	if b.cores.Shared() {
		o.Nice += playerPriority
	}
	return o
}

// playerPriority is added to the daemons' niceness if they share cores with the players: players without processor time
// do not move, and a server with idle players has less work.
const playerPriority = 5

// seconds are the warm-up and the length of a measurement.
type seconds struct{ warm, length float64 }

// times returns the warm-up and the length of a measurement: the figure's own, unless flags set them.
func (b *bench) times(own seconds) (warm, length time.Duration) {
	duration := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	return cmp.Or(b.warm, duration(own.warm)), cmp.Or(b.length, duration(own.length))
}

func targetsOf(daemons []*daemon.Daemon) []target {
	var all []target
	for _, d := range daemons {
		all = append(all, d)
	}
	return all
}

// address returns where the players of a daemon connect, for package sessionclient.
func (b *bench) address(d *daemon.Daemon) string {
	switch b.carrier {
	case carrierTCP:
		return d.Game
	case carrierTLS:
		return "wss://" + d.HTTP + "/ws"
	}
	return sessionclient.Page(d.HTTP)
}

func (b *bench) addresses(daemons []*daemon.Daemon) []string {
	var all []string
	for _, d := range daemons {
		all = append(all, b.address(d))
	}
	return all
}

// logf prints a progress message to the terminal.
func logf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// publish prints a figure's text, and inserts it into the page. Plots and CSV files are written already.
func (b *bench) publish(name, text string) error { return b.publishIn("performance.md", name, text) }

// publishIn publishes on another page of the docs.
func (b *bench) publishIn(page, name, text string) error {
	text = fmt.Sprintf("%s\n\n`make bench BENCH_ARGS=%q`, %s, %s.\n", strings.TrimSpace(text), arguments(os.Args[1:], name), process.Machine(), runtime.Version())
	fmt.Println(text)
	if !b.write {
		return nil
	}
	return figure.Insert(filepath.Join(b.docs, page), name, text)
}

// arguments returns the command line that measures a figure again: that of this run, without the options that concern
// all figures, and without paths on this machine.
func arguments(args []string, name string) string {
	var kept []string
	for i, arg := range args {
		if i > 0 && args[i-1] == "--binary" {
			continue
		}
		switch arg {
		case "--write": // make bench adds it
		case "--binary":
		case "all":
			kept = append(kept, name)
		default:
			kept = append(kept, arg)
		}
	}
	return strings.Join(kept, " ")
}

// file returns the path of a file that belongs to a figure. Without --write it is a temporary one.
func (b *bench) file(name string) string {
	if !b.write {
		return filepath.Join(b.dir, name)
	}
	return filepath.Join(b.docs, "performance", name)
}

// percent returns a share in per cent.
func percent(share float64) float64 { return 100 * share }

// ratio returns a/b, or NaN if that is undefined.
func ratio(a, b float64) float64 {
	if b == 0 {
		return math.NaN()
	}
	return a / b
}
