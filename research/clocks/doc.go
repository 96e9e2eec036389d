// Package clocks measures pruned vector clocks: many players walk about a square world, occasionally one of them does
// something, and all who have that player in vision receive the event a round later. Besides the pruned clocks of
// vclock it keeps whole vector clocks, which are exact, and counts the results of each comparison on pairs of events
// (research/measured.md).
//
// A walk is a function of its Config, seed included, and keeps no state. cmd/sim imports the package.
package clocks
