package store

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/voxelpopuli/voxeld/internal/kv"
)

// A process that may open no more files, because of its clients perhaps, goes on committing, in either file of the
// journal.
func TestCommitsWithoutFreeDescriptors(t *testing.T) {
	db := run(t, Options{Path: newPath(t)})
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	none := before
	none.Cur = 1
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	defer syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before) //nolint:errcheck // it was the limit before
	used := make(map[int]bool)
	for i := range 100 {
		mustCommit(t, db, kv.Write{Table: "t", Key: fmt.Append(nil, i), Value: make([]byte, 1<<20)})
		db.writer.Lock()
		used[db.writer.journal.at] = true
		db.writer.Unlock()
	}
	if len(used) != 2 {
		t.Errorf("of the journal's files only %v were used", used)
	}
}
