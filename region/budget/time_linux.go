package budget

import (
	"runtime"
	"syscall"
	"time"
)

// ThreadTime runs a piece of work and returns the CPU time that its thread used.
func ThreadTime(work func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, after syscall.Rusage
	start := time.Now()
	known := syscall.Getrusage(syscall.RUSAGE_THREAD, &before) == nil
	work()
	if !known || syscall.Getrusage(syscall.RUSAGE_THREAD, &after) != nil {
		return time.Since(start)
	}
	return time.Duration(after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano())
}
