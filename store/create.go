package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"

	"github.com/voxelpopuli/voxeld/kv"
)

// Format is the version of the file's layout that this program writes and reads.
//
// Version 1 had no journal; Open converts it to version 2.
const Format = 2

// metaTable belongs to the store; callers cannot write to it.
const metaTable = "meta"

var formatKey = []byte("format")

// create writes the file under a temporary name and renames it when it is complete and synced, so that a crash leaves
// either nothing under o.Path or a valid store. It holds the file's lock meanwhile. It fails with fs.ErrExist if another
// process was faster, so that no process ever replaces a store in use.
func (db *DB) create(o Options) error {
	unfinished := o.Path + ".new"
	file, err := os.OpenFile(unfinished, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := db.openLocked(file, o, true); errors.Is(err, kv.ErrDamaged) {
		// A crash interrupted an earlier creation. Nothing in it was ever acknowledged.
		db.log.Warn("removing an incomplete store", "path", unfinished)
		if err := os.Remove(unfinished); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return fs.ErrExist // begin again
	} else if err != nil {
		return err
	}
	return errors.Join(db.finish(unfinished, o.Path), db.closeFile())
}

// refuseOrphans fails with kv.ErrDamaged if there is a journal without its file. A new store beside it would hide the loss
// of the old one, and its data would be created anew with different contents.
func refuseOrphans(path string) error {
	for _, journal := range journalPaths(path) {
		if _, err := os.Stat(journal); errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return fmt.Errorf("look for a journal: %w", err)
		}
		if _, err := os.Stat(path); err == nil {
			return nil // another process has just created it
		}
		return fmt.Errorf("%w: %s is gone, but its journal %s is here; put the file back, or keep a copy of the "+
			"directory, empty it, and start with --join: a new node then, to which the others bring what they have",
			kv.ErrDamaged, path, journal)
	}
	return nil
}

func (db *DB) finish(unfinished, path string) error {
	ours, err := db.file.Stat()
	if err != nil {
		return err
	}
	named, err := os.Stat(unfinished)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(ours, named) {
		return fs.ErrExist // its creator renamed it while this process waited for the lock
	} else if err != nil {
		return err
	}
	if _, err := os.Stat(path); err == nil && path != unfinished {
		return errors.Join(fs.ErrExist, os.Remove(unfinished))
	}
	err = guard(func() error { return db.bolt.Update(writeFormat) })
	if err != nil {
		return fmt.Errorf("write format: %w", err)
	}
	if err := db.file.Sync(); err != nil {
		return err
	}
	if err := os.Rename(unfinished, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes a rename in the directory durable.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func (db *DB) checkFormat() error {
	value, err := db.get(metaTable, formatKey)
	if err != nil {
		return db.explain(err)
	}
	if len(value) != 4 {
		return fmt.Errorf("%s: %w: it has no format entry, so voxeld did not write it; choose another --data-dir",
			db.path, ErrFormat)
	}
	switch v := binary.BigEndian.Uint32(value); v {
	case Format:
		return nil
	case 1:
		// From now on some commits may be in the journal alone, which version 1 would not read.
		err := guard(func() error { return db.bolt.Update(writeFormat) })
		if errors.Is(err, ErrFull) {
			return nil // works without the journal while there is no space
		}
		return err
	default:
		return fmt.Errorf("%s: %w %d, this voxeld supports %d; run the version that wrote it, "+
			"or restore a backup that this one made", db.path, ErrFormat, v, Format)
	}
}

func writeFormat(tx *bbolt.Tx) error {
	meta, err := tx.CreateBucketIfNotExists([]byte(metaTable))
	if err != nil {
		return err
	}
	return meta.Put(formatKey, seal(metaTable, formatKey, binary.BigEndian.AppendUint32(nil, Format)))
}
