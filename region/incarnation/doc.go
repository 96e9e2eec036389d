// Package incarnation notices when a node's storage was put back to an earlier state: a copy of its data directory, or a snapshot of
// its disk. Such a node has forgotten what it has promised as a voter, and must not vote again with what it has
// (docs/adr/0024-no-way-back-in-time.md).
//
// Every start of a node is an incarnation, with a random number. The node stores them all, in order: its lineage. Other nodes remember
// the newest incarnation that it has shown to them. A lineage without the remembered incarnation is from an earlier state. While the
// node runs and promises something it counts, so that a snapshot of the disk beneath a running node is noticed as well, if the node
// ran on for raiseEvery.
//
// A Keeper may be used from any goroutine. Its Run announces what the node has promised since. Package region and cmd import this one.
package incarnation
