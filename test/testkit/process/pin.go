package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// startPinned starts a command whose process, with all its threads, may use only those cores (all if cpus is empty),
// with that niceness. The process is killed when the calling thread ends, for instance because this program was killed.
// The caller therefore locks its goroutine to the thread, and keeps the thread idle until the process has ended.
func startPinned(c *exec.Cmd, cpus []int, nice int) error {
	// A new process has the affinity and the niceness of the thread that starts it.
	if len(cpus) > 0 {
		if err := unix.SchedSetaffinity(0, setOf(cpus)); err != nil {
			return fmt.Errorf("pin to cores %v: %w", cpus, err)
		}
	}
	if nice != 0 {
		if err := unix.Setpriority(unix.PRIO_PROCESS, 0, nice); err != nil {
			return fmt.Errorf("set niceness %d: %w", nice, err)
		}
	}
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return c.Start()
}

// PinSelf restricts this process to the cores, with that niceness: its threads, and so those that they will start.
func PinSelf(cpus []int, nice int) error {
	if session, err := unix.Getsid(0); nice != 0 && err == nil && session == os.Getpid() {
		// If Linux groups processes by session, niceness counts only within a session, and the session has its own.
		err := os.WriteFile("/proc/self/autogroup", []byte(strconv.Itoa(nice)), 0)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("set niceness of the session: %w", err)
		}
	}
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return fmt.Errorf("list threads: %w", err)
	}
	for _, task := range tasks {
		id, err := strconv.Atoi(task.Name())
		if err != nil {
			continue
		}
		if err := unix.SchedSetaffinity(id, setOf(cpus)); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("pin to cores %v: %w", cpus, err)
		}
		if nice == 0 {
			continue
		}
		if err := unix.Setpriority(unix.PRIO_PROCESS, id, nice); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("set niceness %d: %w", nice, err)
		}
	}
	return nil
}

func setOf(cpus []int) *unix.CPUSet {
	var set unix.CPUSet
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	return &set
}
