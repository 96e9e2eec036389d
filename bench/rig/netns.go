package rig

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

// inside marks the environment of a program that runs in a network of its own.
const inside = "BENCH_OWN_NETWORK"

// OwnNetwork runs this program again in a network namespace of its own, where nothing listens and nobody else
// sends, and gives true with its end when it has. It gives false where that is not allowed (it takes root), or
// where the program is in such a namespace already.
func OwnNetwork(ctx context.Context) (ran bool, err error) {
	if os.Getenv(inside) != "" {
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
	c.WaitDelay = time.Minute // it has daemons to stop
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.Env = append(os.Environ(), inside+"=1")
	// A session of its own, for BoundSelf: Linux shares cores among sessions first.
	// It is told to end when this program is killed. Linux does so when the thread that started it ends.
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Setsid: true, Pdeathsig: syscall.SIGTERM}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err = c.Run()
	if errors.Is(err, syscall.EPERM) {
		return false, nil
	}
	return true, err
}

// raiseLoopback turns the loopback interface of a new namespace on.
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
