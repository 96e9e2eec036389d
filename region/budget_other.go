//go:build !linux

package region

import "time"

// threadTime runs a piece of work and gives how long it took: only Linux tells the CPU time of a thread.
func threadTime(work func()) time.Duration {
	start := time.Now()
	work()
	return time.Since(start)
}
