package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/bits"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"

	"github.com/voxelpopuli/voxeld/internal/kv"
)

// Format is the version of the file's layout that this program writes and reads.
// Version 3 is that of 0.1.0.
const Format = 3

var formatKey = []byte("format")

const (
	// growth is by how many bytes the file grows at a time. Growing costs an fsync.
	growth = 1 << 20
	// mapSize is the address space (not memory) that the file is mapped to from the start, in bytes. While the file is
	// smaller, it grows without waiting for readers. 32-bit machines have none to spare.
	mapSize = 1 << 30 * (bits.UintSize / 64)
)

// opening is the file while it is opened.
type opening struct {
	*tables
	lockTimeout time.Duration
	maxSize     int64 // bound of the file in bytes; 0: none
}

// open opens the file, and creates it first if it is missing.
func (t opening) open() error {
	for {
		err := t.openExisting()
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := t.refuseLoss(); err != nil {
			return err
		}
		if err := t.create(); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
}

func (t opening) openExisting() error {
	file, err := os.OpenFile(t.path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := t.openLocked(file, false); err != nil {
		return err
	}
	if err := t.checkFormat(); err != nil {
		return errors.Join(err, t.close())
	}
	return nil
}

// openLocked locks the file, checks that bbolt can open it safely, and opens it. On error it closes the file. Only a
// new file may be empty.
func (t opening) openLocked(file *os.File, isNew bool) error {
	err := lock(file, t.lockTimeout)
	if errors.Is(err, ErrInUse) {
		err = fmt.Errorf("%w: %s is locked; stop the voxeld that runs there, "+
			"or give this one a directory of its own with --data-dir", ErrInUse, t.path)
	} else if err != nil {
		err = fmt.Errorf("lock %s: %w", t.path, err)
	}
	if err == nil {
		err = t.inspect(file, isNew)
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	err = guard(func() error {
		var err error
		t.bolt, err = bbolt.Open(t.path, 0o600, &bbolt.Options{
			OpenFile:        func(string, int, fs.FileMode) (*os.File, error) { return file, nil },
			FreelistType:    bbolt.FreelistMapType,
			InitialMmapSize: mapSize,
			MaxSize:         int(t.maxSize),
			Timeout:         time.Millisecond, // this process already holds the lock
			NoStatistics:    true,
		})
		return err
	})
	if err != nil {
		if file.Fd() != ^uintptr(0) { // bbolt panicked; otherwise it has closed the file
			err = errors.Join(err, release(file))
		}
		return t.explain(err)
	}
	t.bolt.AllocSize = growth
	t.file = file
	return nil
}

// inspect checks the file. bbolt reads through a memory map: a short file or a bad pointer would end the process.
func (t opening) inspect(file *os.File, isNew bool) error {
	info, err := file.Stat()
	if err != nil || isNew && info.Size() == 0 {
		return err
	}
	stale, corrupt, err := inspect(file, info.Size())
	if err != nil {
		return t.explain(err)
	}
	if stale {
		// The older state lacks the newest commits. After a crash the journal has them; after a clean stop nothing has.
		if journal, err := findJournal(t.path); err != nil {
			return err
		} else if journal == "" {
			return t.explain(damaged("one of its two meta pages is invalid, and there is no journal"))
		}
		t.log.Warn("one of the two meta pages is invalid, as after a power cut: using the other one", "path", t.path)
	}
	t.corrupt, t.stale = corrupt, stale
	return nil
}

// create writes the file under a temporary name and renames it when it is complete and synced, so that a crash leaves
// either nothing under its path or a valid store. It holds the file's lock meanwhile. It fails with fs.ErrExist if
// another process was faster, so that no process ever replaces a store in use.
func (t opening) create() error {
	unfinished := t.path + ".new"
	file, err := os.OpenFile(unfinished, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := t.openLocked(file, true); errors.Is(err, kv.ErrDamaged) {
		// A crash interrupted an earlier creation. Nothing in it was ever acknowledged.
		t.log.Warn("removing an incomplete store", "path", unfinished)
		if err := os.Remove(unfinished); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return fs.ErrExist // begin again
	} else if err != nil {
		return err
	}
	return errors.Join(t.finish(unfinished), t.close())
}

// refuseLoss fails with kv.ErrDamaged if the path is a link to a file that is missing, or if there is a journal without
// its file. A new store in its place would hide the loss of the old one, and its data would be created anew with
// different contents.
func (t opening) refuseLoss() error {
	if target, err := os.Readlink(t.path); err == nil {
		if _, err := os.Stat(t.path); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w: %s is a link to %s, which is missing; mount the disk that has it, or remove the link "+
				"if the file is gone for good", kv.ErrDamaged, t.path, target)
		}
	}
	journal, err := findJournal(t.path)
	if err != nil || journal == "" {
		return err
	}
	if _, err := os.Stat(t.path); err == nil {
		return nil // another process has just created it
	}
	return fmt.Errorf("%w: %s is gone, but its journal %s is here; put the file back, or keep a copy of the "+
		"directory, empty it, and start with --join: a new node then, to which the others bring what they have",
		kv.ErrDamaged, t.path, journal)
}

// finish moves a new file to its path.
func (t opening) finish(unfinished string) error {
	ours, err := t.file.Stat()
	if err != nil {
		return err
	}
	named, err := os.Stat(unfinished)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(ours, named) {
		return fs.ErrExist // its creator renamed it while this process waited for the lock
	} else if err != nil {
		return err
	}
	if _, err := os.Lstat(t.path); err == nil { // also a link whose target is missing
		return errors.Join(fs.ErrExist, os.Remove(unfinished))
	}
	if err := t.update(func(tx *bbolt.Tx) error { return putMark(tx, mark{0, newSalts()}) }); err != nil {
		return fmt.Errorf("write format: %w", err)
	}
	if err := t.file.Sync(); err != nil {
		return err
	}
	if err := os.Rename(unfinished, t.path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(t.path))
}

func (t opening) checkFormat() error {
	value, err := t.get(metaTable, formatKey)
	if err != nil {
		return err
	}
	if len(value) != 4 {
		return fmt.Errorf("%s: %w: it has no format entry, so voxeld did not write it; choose another --data-dir",
			t.path, ErrFormat)
	}
	if v := binary.BigEndian.Uint32(value); v != Format {
		return fmt.Errorf("%s: %w %d, this voxeld supports %d; make a backup with the version that wrote it, and restore that with this one",
			t.path, ErrFormat, v, Format)
	}
	return nil
}
