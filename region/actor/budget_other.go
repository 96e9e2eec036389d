//go:build !linux

package actor

import "time"

// threadTime runs a piece of work and returns how long it took by the wall clock: only Linux reports the CPU time of a
// thread.
func threadTime(work func()) time.Duration {
	start := time.Now()
	work()
	return time.Since(start)
}
