package replica_test

import (
	"errors"
	"os"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/internal/kv"
)

// disk is a node's storage: a successful Commit survives a crash, as a whole or not at all.
type disk struct {
	node   *machine
	tables kv.Tables
	undo   [][]kv.Write // seeded bug: a crash takes these back, the newest first
}

var (
	errDiskFull = errors.New("simulated disk is full")
	errCrash    = errors.New("simulated crash")
)

func (d *disk) Get(table string, key []byte) ([]byte, error) { return d.tables.Get(table, key) }

func (d *disk) Scan(table string, prefix []byte, visit func(key, value []byte) error) error {
	return d.tables.Scan(table, prefix, visit)
}

func (d *disk) View(read func(
	get func(table string, key []byte) ([]byte, error),
	scan func(table string, prefix []byte, visit func(key, value []byte) error) error,
) error,
) error {
	return read(d.Get, d.Scan)
}

// Commit takes time, which the node spends waiting. A node that is due to crash does so here: before the writes are
// durable, or after, but before anything is reported.
func (d *disk) Commit(writes []kv.Write) error {
	n := d.node
	n.sim.count("commits")
	n.waitForDisk(n.sim.between(n.fsync/2, n.fsync))
	if n.crashPoint == crashBefore {
		n.dying = true
		panic(errCrash)
	}
	if n.crashPoint == crashNone && n.sim.chance(n.flaky) {
		n.crashPoint = crashAfter
	}
	if n.full && !n.torn {
		n.sim.count("commits refused")
		return errDiskFull
	}
	if os.Getenv("VOXELD_MUTATION") == "simulated-disk-without-sync" {
		var undo []kv.Write
		for _, w := range writes {
			undo = append(undo, kv.Write{Table: w.Table, Key: w.Key, Value: d.tables[w.Table][string(w.Key)]})
		}
		d.undo = append(d.undo, undo)
		d.undo = d.undo[max(0, len(d.undo)-8):]
	}
	if err := d.tables.Commit(writes); err != nil {
		return err
	}
	if n.crashPoint == crashAfter {
		n.dying = true
		panic(errCrash)
	}
	if n.full {
		n.sim.count("commits refused, stored all the same")
		return errDiskFull
	}
	return nil
}

// powerCut applies a crash to the disk: no effect, since everything was synced.
func (d *disk) powerCut() {
	for _, undo := range slices.Backward(d.undo) {
		slices.Reverse(undo)  // of two writes to a key the first has the original value
		d.tables.Commit(undo) //nolint:errcheck // it has no error
	}
	d.undo = nil
}

const usualFsync = 2 * time.Millisecond
