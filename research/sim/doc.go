// Package sim runs overlay's machines by the thousand, in rounds: a message sent in round r arrives in r+1, as in the
// papers' PeerSim. Movement is the papers' Random or Hotspot game, or read from a file; the measures are the papers'
// PQ, PQ1 and PQ2 (quality.go).
//
// A run is a pure function of its Config: the same seed leads to the same Result. It starts no goroutine, so the caller
// may run many seeds at once, each in a goroutine of its own; cmd/sim does.
//
// It imports overlay and the machines below it; cmd/sim imports it.
package sim
