//go:build unix

package store

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// lockRetry is the time between two attempts to lock a file. flock cannot wait for a limited time.
const lockRetry = 50 * time.Millisecond

// lock takes the exclusive lock on the file that bbolt takes, too. It is released when the file closes, also by a
// crash. lock returns ErrInUse after the timeout.
func lock(file *os.File, timeout time.Duration) error {
	deadline := time.Now().Add(timeout)
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		if time.Now().After(deadline) {
			return ErrInUse
		}
		time.Sleep(lockRetry)
	}
}

// release closes the file for good, after bbolt has panicked. Otherwise bbolt's memory map would stay, and the lock
// with it.
func release(file *os.File) error {
	return errors.Join(syscall.Flock(int(file.Fd()), syscall.LOCK_UN), file.Close())
}
