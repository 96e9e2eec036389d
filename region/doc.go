// Package region runs regions: it finds and founds them (Directory), opens the ones that live on this
// node, runs their tick loops, and links them with the gateways that follow them (Host).
//
// Goroutines. Each loaded region is owned by the goroutine of its loop; others hand it closures through
// its inbox and never touch its state. The catalog, where this node holds it, has a goroutine of its
// own, and so has each search for a region and each load. All of them are started and awaited by
// Host.Run. A link's two ends belong to whoever called Follow, or to the stream handler that serves it.
//
// Nothing in a tick waits for a disk, a peer or a lock held elsewhere: terrain hashes, records and
// routes are fetched by goroutines beside the loop, which hand in their result as a closure.
//
// A node that stops is drained first (Drain): it hands over what it leads while everything still runs.
//
// Only gameserver and cmd import this package.
package region
