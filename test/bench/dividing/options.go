package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/voxelpopuli/voxeld/test/testkit/daemon"
	"github.com/voxelpopuli/voxeld/test/testkit/figure"
	"github.com/voxelpopuli/voxeld/test/testkit/process"
)

// options are the flags.
type options struct {
	binary  string
	docs    string // directory of docs/ into which plots and tables are written; empty: none
	dir     string // of the data, removed at the end
	changes int
	players int
	limit   int
	stay    time.Duration
	kills   int
}

// nodes is the number of daemons with players. If daemons are killed, there are as many without.
const nodes = 3

// start starts a world of n daemons, with further flags.
func (o options) start(ctx context.Context, n int, flags ...string) ([]*daemon.Daemon, error) {
	return daemon.Network(ctx, daemon.Options{Binary: o.binary, Dir: o.dir, Args: flags}, n, 1, nil)
}

// publish inserts a result into docs/scale.md.
func (o options) publish(name, text string) error {
	return figure.Insert(filepath.Join(o.docs, "scale.md"), name, fmt.Sprintf("%s\n\n`make %s`, %s, %s.", text, name, process.Machine(), runtime.Version()))
}

func logf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
