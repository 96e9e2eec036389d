// Package machine is what a run of package chaos occupies on this machine: a slot with addresses and names of its own,
// and disks that can lose power. All of it is found and removed by the next run if a run is killed.
package machine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/voxelpopuli/voxeld/test/testkit/netns"
)

// slots is the maximum number of concurrent runs on a machine, each with its own addresses.
const slots = 8

// Slot is the place of one run on this machine: a directory, a block of addresses, names for its namespaces. A
// process locks its slot. Whatever is found in a free slot was left by a run that was killed, and is removed.
type Slot struct {
	Number int
	Dir    string // data directories, disk images and sockets; gone after Close
	lock   *os.File
}

// root returns the directory of all files that runs leave on a machine.
func root() string { return filepath.Join(os.TempDir(), "voxeld-chaos") }

// TakeSlot locks the first free slot, and removes what a killed run left in it.
func TakeSlot() (*Slot, error) {
	if err := os.MkdirAll(root(), 0o755); err != nil {
		return nil, fmt.Errorf("create slot directory: %w", err)
	}
	for n := range slots {
		lock, err := os.OpenFile(filepath.Join(root(), fmt.Sprintf("slot-%d.lock", n)), os.O_CREATE|os.O_RDWR, 0o644)
		if err != nil {
			return nil, fmt.Errorf("open lock of slot %d: %w", n, err)
		}
		err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if errors.Is(err, syscall.EWOULDBLOCK) {
			lock.Close() //nolint:errcheck // another run has it
			continue
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("lock slot %d: %w", n, err), lock.Close())
		}
		s := &Slot{Number: n, Dir: filepath.Join(root(), fmt.Sprintf("slot-%d", n)), lock: lock}
		if err := s.sweep(); err != nil {
			return nil, errors.Join(err, lock.Close())
		}
		if err := os.MkdirAll(s.Dir, 0o755); err != nil {
			return nil, errors.Join(fmt.Errorf("make slot %d: %w", n, err), lock.Close())
		}
		return s, nil
	}
	return nil, fmt.Errorf("all %d slots in %s are in use by other runs", slots, root())
}

// Close clears the slot and frees it.
func (s *Slot) Close() error {
	return errors.Join(s.sweep(), s.lock.Close())
}

// Loopback returns the address of the n-th node, counted from 1, if all share the machine's network.
func (s *Slot) Loopback(n int) string { return fmt.Sprintf("127.%d.0.1", 170+10*s.Number+n) }

// Prefix returns the beginning of the names of the slot's network devices and namespaces.
func (s *Slot) Prefix() string { return fmt.Sprintf("vxchaos%d", s.Number) }

// sweep ends the processes, and removes the namespaces, mounts, loop devices and files that are in the slot.
func (s *Slot) sweep() error {
	mounts, err := s.mounts()
	if err != nil {
		return err
	}
	for _, at := range mounts {
		control(at, thawCommand, 0) //nolint:errcheck // few hang; a process that waits for its disk cannot be killed
	}
	pids, err := filepath.Glob(filepath.Join(s.Dir, "*.pid"))
	if err != nil {
		return fmt.Errorf("look for processes of slot %d: %w", s.Number, err)
	}
	for _, path := range pids {
		s.end(path)
	}
	errs := []error{netns.Sweep(s.Prefix())}
	for _, at := range mounts { // their loop devices go with them
		if err := syscall.Unmount(at, syscall.MNT_DETACH); err != nil {
			errs = append(errs, fmt.Errorf("unmount %s: %w", at, err))
		}
	}
	return errors.Join(append(errs, os.RemoveAll(s.Dir))...)
}

// end kills the process that a pid file names, if it is still a node of this slot: the number may belong to another
// process by now.
func (s *Slot) end(pidFile string) {
	text, err := os.ReadFile(pidFile)
	if err != nil {
		return
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 1 {
		return
	}
	command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || !strings.Contains(string(command), s.Dir+"/") {
		return
	}
	syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // it may have ended
	for syscall.Kill(pid, 0) == nil {  // its mounts are busy until it has ended
		state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(state), ") Z ") {
			return
		}
	}
}

// mounts returns where filesystems are mounted in the slot.
func (s *Slot) mounts() (all []string, err error) {
	text, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil, fmt.Errorf("look for mounts of slot %d: %w", s.Number, err)
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 1 && strings.HasPrefix(fields[1], s.Dir+"/") {
			all = append(all, fields[1])
		}
	}
	return all, nil
}
