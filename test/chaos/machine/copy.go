package machine

import (
	"os"
	"path/filepath"

	"github.com/voxelpopuli/voxeld/test/testkit/process"
)

// CopyDir makes the directory to a copy of from, as an operator or a snapshot would. What was in it is gone.
func CopyDir(from, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	if err := EmptyDir(to); err != nil {
		return err
	}
	return process.Run("cp", "-a", from+"/.", to)
}

// EmptyDir removes what is in a directory, which may be where a disk is mounted.
func EmptyDir(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == "lost+found" { // of the file system
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}
