package machine

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// newDisk returns a disk for a test, and its mount point.
func newDisk(t *testing.T) (*Disk, string) {
	t.Helper()
	if why := DisksMissing(); why != "" {
		t.Skip(why)
	}
	at := filepath.Join(t.TempDir(), "disk")
	d, err := NewDisk(at+".ext4", at)
	if err != nil {
		t.Skip(err) // as in a container without loop devices
	}
	t.Cleanup(func() {
		if err := d.unmount(); err != nil {
			t.Error(err)
		}
	})
	return d, at
}

// write writes to a file on the disk, syncs it, and returns how long that took. Any goroutine may call it.
func write(t *testing.T, at string) time.Duration {
	begin := time.Now()
	file, err := os.OpenFile(filepath.Join(at, "file"), os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = file.Write([]byte("text"))
	}
	if err == nil {
		err = file.Sync()
	}
	if err != nil {
		t.Error(err)
		return 0
	}
	if err := file.Close(); err != nil {
		t.Error(err)
	}
	return time.Since(begin)
}

// A disk that hangs finishes no write until it goes on, and can be read meanwhile.
func TestHang(t *testing.T) {
	d, at := newDisk(t)
	write(t, at)
	if err := d.Hang(); err != nil {
		t.Fatal(err)
	}
	const hold = 200 * time.Millisecond
	took := make(chan time.Duration, 1)
	go func() { took <- write(t, at) }()
	if text, err := os.ReadFile(filepath.Join(at, "file")); string(text) != "text" {
		t.Errorf("read %q: %v", text, err)
	}
	select {
	case <-took:
		t.Error("a write was finished")
	case <-time.After(hold):
	}
	if err := d.Resume(); err != nil {
		t.Fatal(err)
	}
	if n := <-took; n < hold {
		t.Errorf("a write took %v", n)
	}
	if err := d.Resume(); err == nil {
		t.Error("a disk that does not hang went on without an error")
	}
}

// On a slow disk most writes wait for the end of a stall, and some are finished all the time.
func TestSlow(t *testing.T) {
	d, at := newDisk(t)
	const stall = 100 * time.Millisecond
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Slow(ctx, stall) }()
	slow := 0
	for begin := time.Now(); slow < 3; {
		if write(t, at) > stall/2 {
			slow++
		}
		if time.Since(begin) > 20*time.Second {
			t.Errorf("%d writes were slow", slow)
			break
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	write(t, at)
}

// A directory is made a copy of another one without being removed: a disk may be mounted there.
func TestCopyDirReplacesContents(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	for path, text := range map[string]string{
		filepath.Join(from, "new"): "new", filepath.Join(from, "both"): "of from",
		filepath.Join(to, "both"): "of to", filepath.Join(to, "old"): "old",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before, err := os.Stat(to)
	if err != nil {
		t.Fatal(err)
	}
	if err := CopyDir(from, to); err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(to)
	if err != nil || !os.SameFile(before, after) {
		t.Errorf("the directory is another one: %v", err)
	}
	for name, want := range map[string]string{"new": "new", "both": "of from", "old": ""} {
		if got, _ := os.ReadFile(filepath.Join(to, name)); string(got) != want {
			t.Errorf("%s has %q, want %q", name, got, want)
		}
	}
}
