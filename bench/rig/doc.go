// Package rig runs real daemons for the benchmarks, each in its own process, and reads their resource usage: CPU from
// /proc, ticks from Prometheus metrics, profiles from the admin socket. Linux only.
//
// Values of this package belong to the goroutine that made them.
//
// Only bench/cmd and bench/durable may import it.
package rig
