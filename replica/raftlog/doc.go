// Package raftlog is what a node stores of its raft groups: the log, the state, the configuration and the tombstone of
// each. It returns the writes that change them; package replica commits these.
//
// A Log belongs to the goroutine of replica.Host.Run; all else is without state.
//
// # Storage layout
//
// All integers are big-endian. The storage adds the checksums.
//
//	table       key                        value
//	raft_log    group u64 ‖ index u64      kind u8 (0 entry, 1 and 2 configuration change) ‖ term u64 ‖ data
//	raft_state  group u64 ‖ 's'            version u8 = 1 ‖ term u64 ‖ vote u64 ‖ commit u64 ‖ applied u64
//	                                       ‖ start index u64 ‖ start term u64
//	raft_state  group u64 ‖ 'c'            CBOR of the Configuration
//	raft_state  group u64 ‖ 'x'            tombstone: the replica id that this node had, u64
//	raft_state  0 u64 ‖ 'p'                written to check whether storage accepts writes again; no meaning
//
// The log holds the entries after the start index, without gaps. A founding stores start index 1, start term 1,
// applied 1, and the members as replica ids 1..n: the first entry has index 2, so that a replica without state can
// never be caught up from the log alone, without the configuration. A replica that was joined and has no state yet
// stores zeros, and a configuration of index 0. Invariants: start ≤ applied ≤ commit ≤ last index; the configuration is
// the newest whose entry is at applied or below. Entries below the stored applied index are deleted, but for the last
// 1,000 or so (more while a snapshot is on its way that they must follow), whether other members have them or not.
package raftlog
