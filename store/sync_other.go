//go:build !linux

package store

import "os"

// datasync makes what was written to the file durable.
func datasync(file *os.File) error { return file.Sync() }

// freeSpace returns 0, because it is not implemented here: commits bypass the journal.
func freeSpace(string) int64 { return 0 }
