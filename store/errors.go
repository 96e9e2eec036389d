package store

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"syscall"

	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/voxelpopuli/voxeld/internal/kv"
)

// Errors that callers branch on. Each is wrapped in a message with the remedy.
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

// guard calls into bbolt. bbolt does not check its pages: on a damaged one it panics, or follows a pointer out of its
// memory map. guard converts both to kv.ErrDamaged, only for this goroutine and this call.
func guard(call func() error) (err error) {
	before := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(before)
		if reason := recover(); reason != nil {
			err = damaged("%v", reason)
		}
	}()
	return translate(call())
}

// translate converts bbolt's errors to those of this package.
func translate(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, bolterrors.ErrDatabaseNotOpen):
		return ErrClosed
	case errors.Is(err, bolterrors.ErrMaxSizeReached), isDiskFull(err):
		return fmt.Errorf("%w: %w", ErrFull, err)
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrChecksum),
		errors.Is(err, bolterrors.ErrVersionMismatch), errors.Is(err, bolterrors.ErrIncompatibleValue):
		return fmt.Errorf("%w: %w", kv.ErrDamaged, err)
	}
	return err
}

// isDiskFull also compares the text: bbolt does not wrap the error of a file that cannot grow.
func isDiskFull(err error) bool {
	for _, full := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT} {
		if errors.Is(err, full) || strings.HasSuffix(err.Error(), full.Error()) {
			return true
		}
	}
	return false
}

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", kv.ErrDamaged, fmt.Sprintf(format, args...))
}
