// Package region runs regions. The Directory locates and founds them. The Host opens the ones that live on this node, runs their
// tick loops, and links them with the gateways that follow them.
//
// Goroutines: each loaded region is owned by the goroutine of its loop. Other goroutines send closures to its inbox and never
// touch its state. The catalog, on a node that holds it, has its own goroutine; so has each search for a region and each load.
// Host.Run starts and awaits all of them. The two ends of a link belong to the caller of Follow and to the stream handler that
// serves it.
//
// A tick never waits for a disk, a peer or a lock held elsewhere. Terrain hashes, records and routes are fetched by goroutines
// beside the loop, which send the result back as a closure.
//
// A node that stops is drained first (Drain): it hands over its leaderships while everything still runs.
//
// Only gameserver and cmd import this package.
package region
