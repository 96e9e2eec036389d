package actor

import (
	"runtime"
	"syscall"
	"time"
)

// threadTime runs a piece of work and returns the CPU time that its thread used.
func threadTime(work func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := time.Now()
	before, known := used(syscall.RUSAGE_THREAD)
	work()
	after, still := used(syscall.RUSAGE_THREAD)
	if !known || !still {
		return time.Since(start)
	}
	return after - before
}

func used(by int) (time.Duration, bool) {
	var r syscall.Rusage
	if err := syscall.Getrusage(by, &r); err != nil {
		return 0, false
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()), true
}
