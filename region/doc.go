// Package region runs regions on a node. The Host opens the ones that live here and closes them, answers other nodes,
// and is the API of gateways and operators. It only wires its subpackages, which import downwards and never import it:
// the table of open regions is made first (regions.go), then each part with those that it uses, and what opens regions
// last (opener in load.go). These are the ones to read first (docs/ARCHITECTURE.md has all):
//
//	actor      the owner of one raft group: a region's land, or the catalog
//	directory  locates and founds regions
//	placement  which nodes are members of a group, and who leads; what a node does that stops
//	copies     the table that decides about a copy
//	integrity  keeps copies sound: scrub, repair, replacement, quarantine, recovery
//	transport  raft messages, snapshots, questions and links between nodes
//
// Goroutines: each loaded region is owned by the goroutine of its actor. Other goroutines send closures to its mailbox
// and never touch its state. The catalog, on a node that holds it, has its own goroutine; so has each search for a
// region and each load. Host.Run starts and awaits all of them. The two ends of a link belong to the caller of Follow
// and to the stream handler that serves it.
//
// A tick never waits for a disk, a peer or a lock held elsewhere. Terrain hashes, records and routes are fetched by
// goroutines beside the actor, which send the result back as a closure.
//
// A node that stops is drained first (Drain): it hands over its leaderships while everything still runs.
package region
