// Package rig runs real daemons for the benchmarks, each in a process of its own, and reads what the operating
// system and the daemons themselves say about them: CPU from /proc, ticks from Prometheus metrics, profiles from
// the admin socket. Linux only.
//
// Values of this package belong to the goroutine that made them.
//
// Who may import it: bench/cmd, bench/durable.
package rig
