package store

import (
	"math"
	"os"
	"path/filepath"
	"syscall"
)

// datasync makes what was written to the file durable, and of the file's attributes only what reading it needs.
func datasync(file *os.File) error {
	for {
		err := syscall.Fdatasync(int(file.Fd()))
		if err != syscall.EINTR {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}

// freeSpace is how many bytes the disk of the file has left for us.
func freeSpace(path string) int64 {
	var s syscall.Statfs_t
	if err := syscall.Statfs(filepath.Dir(path), &s); err != nil {
		return 0 // who knows: as if there were none
	}
	return int64(min(s.Bavail, math.MaxInt64/uint64(s.Bsize)) * uint64(s.Bsize))
}
