//go:build !linux

package budget

import "time"

// ThreadTime runs a piece of work and returns how long it took by the wall clock: only Linux reports the CPU time of a thread.
func ThreadTime(work func()) time.Duration {
	start := time.Now()
	work()
	return time.Since(start)
}

// ProcessTime returns the CPU time that the process has used, and whether it is known: only Linux's is.
func ProcessTime() (time.Duration, bool) { return 0, false }
