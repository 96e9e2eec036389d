// Package walk measures pruned vector clocks: many players walk about a square world, now and then one of them does
// something, and all who have him in vision hear of it a round later. Beside the pruned clocks of vclock it keeps whole vector
// clocks, which know the truth, and counts what each comparison makes of pairs of events (docs/causality.md).
//
// It is a function of its Config, seed included, and keeps no state. Who may import it: cmd/voxeld (sim), and tests.
package walk
