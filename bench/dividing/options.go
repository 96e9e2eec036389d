package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/voxelpopuli/voxeld/testkit/daemon"
)

// options are the flags.
type options struct {
	binary  string
	docs    string // directory of docs/ into which plots and tables are written; empty: none
	dir     string // of the data, removed at the end
	rate    float64
	changes int
	every   time.Duration
	players int
	limit   int
	stay    time.Duration
	kills   int
}

// nodes is the number of daemons.
const nodes = 3

// start starts a world of daemons, with further flags, whose regions have three members once they are founded.
func (o options) start(ctx context.Context, flags ...string) ([]*daemon.Daemon, error) {
	return daemon.Network(ctx, daemon.Options{Binary: o.binary, Dir: o.dir, Args: flags}, nodes, 1, nil)
}

func logf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// pause waits, and reports whether ctx has not ended.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
