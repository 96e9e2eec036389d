package store

import (
	"math"
	"os"
	"path/filepath"
	"syscall"
)

// datasync makes the written data durable, and of the file's attributes only those needed to read it.
func datasync(file *os.File) error {
	for {
		err := syscall.Fdatasync(int(file.Fd()))
		if err != syscall.EINTR {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}

// freeSpace returns the bytes that the disk of the file has left for this process.
func freeSpace(path string) int64 {
	var s syscall.Statfs_t
	if err := syscall.Statfs(filepath.Dir(path), &s); err != nil {
		return 0 // unknown: assume none
	}
	return int64(min(s.Bavail, math.MaxInt64/uint64(s.Bsize)) * uint64(s.Bsize))
}
