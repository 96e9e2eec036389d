package store

import (
	"os"
	"syscall"
	"testing"
	"unsafe"

	"github.com/voxelpopuli/voxeld/internal/kv"
)

// TestCommitIsOnTheDisk: when Commit has returned, the kernel has nothing of the journal left to write. Killing a
// process cannot show that, because the kernel keeps running; a power cut can.
func TestCommitIsOnTheDisk(t *testing.T) {
	path := newPath(t)
	db := run(t, Options{Path: path})
	mustCommit(t, db, kv.Write{Table: "many", Key: []byte("first"), Value: []byte{1}}) // makes the journal
	file, err := os.Open(journalPaths(path)[0])                                        // it also covers a checkpoint in progress
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for i := range 20 {
		mustCommit(t, db, kv.Write{Table: "many", Key: []byte{byte(i)}, Value: make([]byte, 10_000)})
		if n := unwritten(t, file); n > 0 {
			t.Fatalf("commit %d has returned, and %d pages of the journal are not on the disk", i, n)
		}
	}
}

// unwritten returns how many of the file's pages the kernel has yet to write (Linux 6.5 and later report it).
func unwritten(t *testing.T, file *os.File) uint64 {
	t.Helper()
	const cachestat = 451
	all := [2]uint64{0, 1 << 40} // offset, length
	var is struct{ cached, dirty, underway, evicted, recently uint64 }
	_, _, errno := syscall.Syscall6(cachestat, file.Fd(), uintptr(unsafe.Pointer(&all)), uintptr(unsafe.Pointer(&is)), 0, 0, 0)
	if errno != 0 {
		t.Skipf("the kernel does not report what it has to write: %v", errno)
	}
	return is.dirty + is.underway
}
