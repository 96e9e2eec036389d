package netns

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// envInside is the environment variable that marks a program in its own network namespace.
const envInside = "BENCH_OWN_NETWORK"

// OwnNetwork runs this program again in its own network namespace, which has no other traffic. It returns true and
// the result once that run has ended. It returns false if that is not allowed (it requires root), or if the program
// is in such a namespace already.
func OwnNetwork(ctx context.Context) (ran bool, err error) {
	if os.Getenv(envInside) != "" {
		return false, raiseLoopback()
	}
	if os.Geteuid() != 0 {
		return false, nil
	}
	self, err := os.Executable()
	if err != nil {
		return false, fmt.Errorf("find this program: %w", err)
	}
	c := exec.CommandContext(ctx, self, os.Args[1:]...)
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.WaitDelay = time.Minute // the program has daemons to stop
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.Env = append(os.Environ(), envInside+"=1")
	// A session of its own, for BoundSelf: Linux divides cores among sessions first. Pdeathsig ends the child when
	// this program is killed. Linux sends it when the thread that started the child ends.
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Setsid: true, Pdeathsig: syscall.SIGTERM}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err = c.Run()
	if errors.Is(err, syscall.EPERM) {
		return false, nil
	}
	return true, err
}

// raiseLoopback enables the loopback interface of a new namespace.
func raiseLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("raise loopback: %w", err)
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written
	ifreq, err := unix.NewIfreq("lo")
	if err != nil {
		return fmt.Errorf("raise loopback: %w", err)
	}
	ifreq.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifreq); err != nil {
		return fmt.Errorf("raise loopback: %w", err)
	}
	return nil
}
