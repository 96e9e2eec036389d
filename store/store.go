package store

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/bits"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.etcd.io/bbolt"

	"github.com/voxelpopuli/voxeld/kv"
)

// Errors that callers branch on. Each is wrapped in a message that says what to do.
var (
	// ErrInUse: another process holds the file.
	ErrInUse = errors.New("the data directory is in use by another process")
	// ErrFormat: the file is sound, but this program does not support its format.
	ErrFormat = errors.New("unknown format version")
	// ErrFull: the disk, or the MaxSize of the file, has no room for this commit. Nothing of it was written. Reads
	// continue to work, and so do commits that delete.
	ErrFull = errors.New("no space left for the store")
	// ErrClosed: the store is closing or closed. Nothing of the commit was written.
	ErrClosed = errors.New("the store is closed")
)

// Options of a store. The zero value of each field but Path means its default.
type Options struct {
	// Path of the file. It is created if it is missing; its directory must exist.
	Path string
	// LockTimeout is how long to wait for another process to release the file. Default 2 s.
	LockTimeout time.Duration
	// MaxSize bounds the file in bytes; commits that would need more fail with ErrFull. Default: no bound.
	MaxSize int64
	// Logger receives damage, fallbacks and failed commits. Default: discarded.
	Logger *slog.Logger
	// Registerer receives the metrics of metrics.go until Close. Default: none are kept.
	Registerer prometheus.Registerer
}

// DB is an open store. Commits wait until Run runs.
type DB struct {
	path    string
	bolt    *bbolt.DB
	file    *os.File // the file under bolt, which carries the lock
	log     *slog.Logger
	metrics *metrics

	wake   chan struct{} // 1 pending signal: the queue has work
	stop   chan struct{} // closed by Close: ends Run
	done   chan struct{} // closed when Run has ended
	damage []Damage      // found when it was opened

	overlay        overlay         // committed, and not in the tables yet
	writer         writerState     // locked by the writer
	checkpointDone chan struct{}   // 1 pending signal: a checkpoint has ended
	flushes        chan chan error // requests for Run to flush
	maxSize        int64

	// mu is locked after writer.
	mu struct {
		sync.Mutex
		queue     []*request
		running   bool  // Run was called
		rejection error // why commits are refused; nil while they are accepted
		panicked  bool  // bbolt panicked while it wrote: its locks may be held forever
		closed    bool
	}
}

// Open opens the store at o.Path, or creates it. It fails with ErrInUse, kv.ErrDamaged or ErrFormat.
func Open(o Options) (*DB, error) {
	if o.LockTimeout == 0 {
		o.LockTimeout = 2 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	db := &DB{
		path: o.Path,
		log:  o.Logger,
		wake: make(chan struct{}, 1),
		stop: make(chan struct{}),
		done: make(chan struct{}),

		checkpointDone: make(chan struct{}, 1),
		flushes:        make(chan chan error),
		maxSize:        o.MaxSize,
	}
	db.overlay.active = make(layer)
	db.writer.checkpointTimer = time.NewTimer(time.Hour)
	db.writer.checkpointTimer.Stop()
	if err := db.open(o); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	var err error
	if db.metrics, err = newMetrics(o.Registerer, db.Size); err != nil {
		return nil, errors.Join(fmt.Errorf("open store: register metrics: %w", err), db.Close())
	}
	if err := db.recoverJournal(); err != nil {
		return nil, errors.Join(fmt.Errorf("open store: %w", err), db.Close())
	}
	return db, nil
}

// open opens the file, and creates it first if it is missing.
func (db *DB) open(o Options) error {
	for {
		err := db.openExisting(o)
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := refuseOrphans(o.Path); err != nil {
			return err
		}
		if err := db.create(o); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
}

func (db *DB) openExisting(o Options) error {
	file, err := os.OpenFile(o.Path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := db.openLocked(file, o, false); err != nil {
		return err
	}
	if err := db.checkFormat(); err != nil {
		return errors.Join(err, db.closeFile())
	}
	return nil
}

// openLocked locks the file, checks that bbolt can open it safely, and opens it. On error it closes the file. Only a new file
// may be empty.
func (db *DB) openLocked(file *os.File, o Options, isNew bool) error {
	err := lock(file, o.LockTimeout)
	if err != nil {
		if errors.Is(err, ErrInUse) {
			err = fmt.Errorf("%w: %s is locked; stop the voxeld that runs there, "+
				"or give this one a directory of its own with --data-dir", ErrInUse, o.Path)
		} else {
			err = fmt.Errorf("lock %s: %w", o.Path, err)
		}
		return errors.Join(err, file.Close())
	}
	info, err := file.Stat()
	if err != nil {
		return errors.Join(err, file.Close())
	}
	if !isNew || info.Size() > 0 {
		// bbolt reads through a memory map: a short file or a bad pointer would kill the process.
		mended, err := repairMetas(file)
		if err != nil {
			return errors.Join(db.explain(err), file.Close())
		}
		if mended {
			db.log.Error("flipped bit in a meta page corrected: check the disk", "path", o.Path)
		}
		var stale bool
		stale, db.damage, err = inspect(file, info.Size())
		if err != nil {
			return errors.Join(db.explain(err), file.Close())
		}
		if stale {
			db.log.Warn("one of the two meta pages is invalid, as after a power cut: using the other one", "path", o.Path)
		}
	}
	err = guard(func() error {
		var err error
		db.bolt, err = bbolt.Open(o.Path, 0o600, &bbolt.Options{
			OpenFile:        func(string, int, fs.FileMode) (*os.File, error) { return file, nil },
			FreelistType:    bbolt.FreelistMapType,
			InitialMmapSize: mapSize,
			MaxSize:         int(o.MaxSize),
			Timeout:         time.Millisecond, // this process already holds the lock
			NoStatistics:    true,
		})
		return err
	})
	if err != nil {
		if file.Fd() != ^uintptr(0) { // bbolt panicked; otherwise it has closed the file
			err = errors.Join(err, release(file))
		}
		return db.explain(err)
	}
	db.bolt.AllocSize = growth
	db.file = file
	return nil
}

// growth is by how many bytes the file grows at a time. Growing costs an fsync.
const growth = 1 << 20

// mapSize is the address space (not memory) that the file is mapped to from the start, in bytes. While the file is
// smaller, it grows without waiting for readers. 32-bit machines have none to spare.
const mapSize = 1 << 30 * (bits.UintSize / 64)

// explain converts the error of opening the file to one that says what to do.
func (db *DB) explain(err error) error {
	if !errors.Is(err, kv.ErrDamaged) {
		return err
	}
	return fmt.Errorf("%s: %w; keep a copy of it, and put a backup in its place (a copy "+
		"that was made while the node was stopped); without one, what only this node held is lost", db.path, err)
}

// Close ends Run if it runs (queued commits still complete), fails the remaining waiters with ErrClosed, and closes the
// file. It waits for open Scans and Backups. Further calls do nothing.
func (db *DB) Close() error {
	db.mu.Lock()
	if db.mu.closed {
		db.mu.Unlock()
		return nil
	}
	db.mu.closed = true
	running := db.mu.running
	db.mu.Unlock()

	close(db.stop)
	if running {
		<-db.done
	} else {
		answer(db.rejectAll(ErrClosed), ErrClosed)
	}
	db.metrics.unregister()
	db.writer.Lock() // a caller waiting in awaitFlush may still write
	defer db.writer.Unlock()
	if err := errors.Join(db.closeJournal(), db.closeFile()); err != nil {
		return fmt.Errorf("close store %s: %w", db.path, err)
	}
	return nil
}

// closeJournal removes the journal's files if the tables contain all of their records.
func (db *DB) closeJournal() error {
	if db.writer.journal.paths[0] != "" && db.overlay.flushing == nil && len(db.overlay.active) == 0 {
		return db.writer.journal.remove()
	}
	return db.writer.journal.close()
}

func (db *DB) closeFile() error {
	db.mu.Lock()
	wrecked := db.mu.panicked
	db.mu.Unlock()
	if wrecked {
		return release(db.file) // bbolt's own Close could block forever
	}
	return guard(db.bolt.Close)
}
