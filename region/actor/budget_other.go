//go:build !linux

package budget

import "time"

// ThreadTime runs a piece of work and returns how long it took by the wall clock: only Linux reports the CPU time of a thread.
func ThreadTime(work func()) time.Duration {
	start := time.Now()
	work()
	return time.Since(start)
}
