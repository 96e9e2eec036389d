package backup

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Create writes a backup that produce writes to the file, under a temporary name until all of it is on disk. A backup
// that lacks something is named incomplete instead, and never path. Create verifies everything that it writes, and
// returns what the backup has. Progress is called after each group, if not nil. Of files that exist it replaces only
// backups and empty ones.
func Create(path, incomplete string, produce func(io.Writer) error, progress func(groups int, rows uint64)) (c Contents, err error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return Contents{}, fmt.Errorf("create backup: %s is not a regular file (- is the standard output)", path)
	}
	for _, path := range []string{path, incomplete} {
		if err := checkReplaceable(path); err != nil {
			return Contents{}, fmt.Errorf("create backup: %w", err)
		}
	}
	dir, name := filepath.Split(path)
	f, err := os.CreateTemp(filepath.Clean(dir+"."), "."+name+".*")
	if err != nil {
		return Contents{}, fmt.Errorf("create backup: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ignoreClosed(f.Close()), os.Remove(f.Name()))
		}
	}()
	if c, err = CheckedCopy(f, produce, progress); err != nil {
		return Contents{}, err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return Contents{}, fmt.Errorf("create backup: %w", err)
	}
	if c.File = path; len(c.Problems()) > 0 {
		c.File = incomplete
	}
	if err := os.Rename(f.Name(), c.File); err != nil {
		return Contents{}, fmt.Errorf("create backup: %w", err)
	}
	return c, syncDirectory(filepath.Dir(c.File))
}

// checkReplaceable returns an error if there is a file that is neither empty nor a backup.
func checkReplaceable(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it was only read
	begin := make([]byte, len(magic))
	n, err := io.ReadFull(f, begin)
	if errors.Is(err, io.EOF) || err == nil && bytes.Equal(begin[:n-1], magic[:n-1]) { // the last byte is the version
		return nil
	}
	return fmt.Errorf("%s is not a backup, and would be replaced: remove it, or choose another name", path)
}

func ignoreClosed(err error) error {
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

// syncDirectory makes a file's name durable.
func syncDirectory(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("create backup: %w", err)
	}
	return errors.Join(d.Sync(), d.Close())
}

// CheckedCopy passes on to w what produce writes, and verifies it meanwhile.
func CheckedCopy(w io.Writer, produce func(io.Writer) error, progress func(groups int, rows uint64)) (Contents, error) {
	out, in := io.Pipe()
	type result struct {
		contents Contents
		err      error
	}
	verified := make(chan result, 1)
	go func() {
		c, err := Verify(out, progress)
		if err != nil {
			_, _ = io.Copy(io.Discard, out) // the producer's own error says more
		}
		verified <- result{c, err}
	}()
	err := produce(io.MultiWriter(w, in))
	in.CloseWithError(err)
	r := <-verified
	if err != nil {
		return Contents{}, err
	}
	return r.contents, r.err
}
