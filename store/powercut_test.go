//go:build linux

package store

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// TestPowerCuts needs root and loop devices, and the number of cuts in VOXELD_POWER_CUTS. The disk of a writing process
// fails in the middle of its work, without unsynced data. After a remount everything acknowledged is there, and each
// commit is complete or absent.
func TestPowerCuts(t *testing.T) {
	cuts, err := strconv.Atoi(os.Getenv("VOXELD_POWER_CUTS"))
	if err != nil {
		t.Skip("VOXELD_POWER_CUTS is no number")
	}
	image, mount := filepath.Join(t.TempDir(), "disk"), t.TempDir()
	command := func(name string, args ...string) {
		t.Helper()
		if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s %v: %v: %s", name, args, err, out)
		}
	}
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, 512<<20); err != nil {
		t.Fatal(err)
	}
	command("mkfs.ext4", "-q", "-F", image)
	mounted := false
	unmount := func() {
		for deadline := time.Now().Add(5 * time.Second); mounted; { // the killed writer's memory map disappears a moment after it
			err := syscall.Unmount(mount, 0)
			if mounted = err != nil; mounted && time.Now().After(deadline) {
				t.Fatalf("unmount: %v", err)
			}
		}
	}
	t.Cleanup(unmount)
	acknowledged := [writers]int{-1, -1, -1, -1, -1, -1, -1, -1}
	total := 0
	for cut := range cuts {
		command("mount", "-o", "loop", image, mount)
		mounted = true
		path := filepath.Join(mount, "voxeld.db")
		if cut > 0 {
			verify(t, path, acknowledged)
		}
		if cut%5 == 4 { // sometimes from an empty disk
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
		for i := range acknowledged {
			acknowledged[i] = -1
		}
		total += cutPower(t, mount, path, time.Duration(30+cut*37%400)*time.Millisecond, &acknowledged)
		unmount()
	}
	t.Logf("%d power cuts, %d acknowledged commits, none lost", cuts, total)
}

// cutPower lets a process write for a while and removes its disk.
func cutPower(t *testing.T, mount, path string, after time.Duration, acknowledged *[writers]int) (total int) {
	t.Helper()
	dir, err := os.Open(mount)
	if err != nil {
		t.Fatal(err)
	}
	cmd, lines := startWriter(t, path)
	time.AfterFunc(after, func() {
		const goingDown, noLogFlush = 0x8004587d, 2 // FS_IOC_GOINGDOWN
		how := uint32(noLogFlush)
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, dir.Fd(), goingDown, uintptr(unsafe.Pointer(&how))); errno != 0 {
			t.Errorf("cut power: %v", errno)
		}
	})
	for {
		line, err := lines.ReadString('\n')
		if err != nil || strings.HasPrefix(line, "error") {
			break
		}
		var writer, n int
		if _, err := fmt.Sscanf(line, "%d %d\n", &writer, &n); err != nil || n != acknowledged[writer]+1 {
			t.Fatalf("the writer printed %q (%v)", line, err)
		}
		acknowledged[writer] = n
		total++
	}
	cmd.Process.Kill() //nolint:errcheck // it may have ended by itself
	cmd.Wait()         //nolint:errcheck // it failed or was killed
	dir.Close()
	return total
}

// verify checks that everything acknowledged is there, and no half commits.
func verify(t *testing.T, path string, acknowledged [writers]int) {
	t.Helper()
	db, err := Open(Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	for writer, last := range acknowledged {
		for n := range last + 1 {
			for _, w := range pair(writer, n) {
				if got, err := db.Get(w.Table, w.Key); err != nil || string(got) != string(w.Value) {
					t.Fatalf("acknowledged write %d of writer %d in %s is %x, %v", n, writer, w.Table, got, err)
				}
			}
		}
	}
	count := map[string]int{}
	for _, table := range []string{"one", "two"} {
		if err := db.Scan(table, nil, func(_, _ []byte) error { count[table]++; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if count["one"] != count["two"] {
		t.Errorf("half a commit: %v", count)
	}
	if err := errors.Join(db.Check(), db.Close()); err != nil {
		t.Fatal(err)
	}
}
