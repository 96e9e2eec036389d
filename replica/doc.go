// Package replica keeps the regions' logs: it runs one raft group (go.etcd.io/raft/v3) per region and is the node's
// committer. A region proposes entries, and gets them back in order once they are safe.
//
// # Who owns what
//
// There is one Host per daemon. One goroutine, inside Host.Run, owns the raft state of all groups. It loops: take
// what came in (proposals, reports of what was applied, raft messages, ticks, opens and closes), step the groups,
// collect what all of them have to write, make it durable in ONE storage transaction (one fsync), and only then send
// messages and deliver committed entries. Entries for followers go before the commit: they promise nothing of this node
// (sendAhead). While an fsync runs the inbox fills: group commit comes by itself.
// A Group is a handle that its owner (one region's goroutine) uses; its methods may be called from any goroutine,
// and none but Close waits for the disk (and ReadIndex for other members).
//
// Floor 3: region and cmd may import this package. It imports kv, and raft only here; no raft type is exported.
//
// # What is promised
//
//   - Committed is delivered after the entry is on the disks of a majority, and on this node's disk in any case (so a
//     group of one never acknowledges before its own fsync, etcd issue 14370). Indexes only grow; every committed
//     entry comes exactly once per Open, from AppliedIndex()+1 on, but for those that a Restored stands for.
//   - Every entry that Propose took is delivered as Committed, or a Leadership that says otherwise than before (Self
//     false, or another Term) follows, or Failed does. After one of the latter two it is in doubt: it may still be
//     committed if it had reached another member.
//   - Leadership{Self: true} is delivered behind every entry committed before this node took over: an owner that has
//     applied what came before it has the newest state.
//   - What Group.Applied hands in is stored together with the applied index in one transaction, in the order of the
//     calls, with the next fsync and after 50 ms at the latest. After a crash the owner's tables contain exactly the
//     entries up to AppliedIndex(), and the rest is delivered again.
//
// # When storage refuses
//
// If a commit fails (a full disk), nothing of it is acknowledged. All groups stall: each owner gets Leadership with
// Self false and a Cause, Propose answers ErrStorage with the reason, and what was not yet durable is thrown away: a
// group's memory goes back to what is stored, as if the process had restarted, except that the owner's applied writes
// are kept. The host tries again every 500 ms; when 256 KiB can be written the groups go on, and a Leadership says so. Owners
// need not reload. Should the storage work again but one group's own writes be refused still, that group alone gets
// Failed; so does a group at once if the commit was to replace what is stored by a snapshot or by another leader's
// entries, since which of the two is on the disk is not known then: its owner opens it again. Whether an error of fsync may be followed by a success is the storage's to decide; ours refuses for good.
//
// # Storage layout
//
// All integers are big-endian. Checksums are the storage's business.
//
//	table       key                        value
//	raft_log    group u64 ‖ index u64      kind u8 (0 entry, 1 and 2 configuration change) ‖ term u64 ‖ data
//	raft_state  group u64 ‖ 's'            version u8 = 1 ‖ term u64 ‖ vote u64 ‖ commit u64 ‖ applied u64
//	                                       ‖ start index u64 ‖ start term u64
//	raft_state  group u64 ‖ 'c'            CBOR of the configuration (record.go)
//	raft_state  group u64 ‖ 'x'            tombstone: the replica id that this node had, u64
//	raft_state  0 u64 ‖ 'p'                written to see whether storage takes writes again; means nothing
//
// The log holds the entries after the start index, without gaps. A founding stores start index 1, start term 1,
// applied 1, and the members as replica ids 1..n: the first entry has index 2, so that a replica without state can
// never be caught up from the log alone, without the configuration. A replica that was joined and has no state yet
// stores zeros, and a configuration of index 0. Invariants: start ≤ applied ≤ commit ≤ last index; the configuration is
// the newest whose entry is at applied or below. Entries below the stored applied index are deleted, but for the last
// 1,000 or so (more while a snapshot is on its way that they must follow), whether other members have them or not.
//
// # Members
//
// AddLearner, Promote and Remove change one replica at a time, in entries of the log. A change is in force when it is
// committed; Configured tells it, in log order; and it is stored in the transaction that stores an applied index at or
// behind its entry. So a restart resumes with the configuration that belongs to its applied index, and comes to the
// later ones again. A change that does not fit what is in force (its replica id was given out, its replica is gone) is
// refused by all members alike. Replica ids grow with the log and are never used again; the tombstone of a removed
// replica keeps a node from joining under that id or an earlier one.
//
//   - Growing: AddLearner on the leader; on the new node, once Configured is out, Join with the id it says; Promote
//     (ErrBehind until the learner has nearly everything).
//   - Shrinking: Remove on the leader, who cannot remove itself (Transfer first). A member that hears of its removal
//     gets Removed; its owner closes the group and has Host.Remove leave the tombstone. It may miss that word, since
//     nobody speaks to it any more: an owner whose group has no leader for long asks an authority.
//   - A node that was removed and added again without noticing gets messages to its later replica: Receive answers
//     ErrReplaced.
//   - A node that has lost its disk must not join under its old id: what it had promised is forgotten. Remove it, add it.
//
// The gate hears the committed members, and those whom a change in this node's log adds that is not known to be
// committed yet. Otherwise, when a leader dies while a member is being added, some who live could refuse to hear each
// other. A member that was cut off over several changes may still find that the leader is a stranger: Receive answers
// ErrNotMember, its owner asks an authority, and tells the gate by Vouch.
//
// One case is left to operators: of two members one proposes to remove the other, loses its leadership to that other,
// who commits the change, and the word of it is lost (it is sent once). The one who stays then waits for a vote that
// nobody gives. Recover helps, and loses nothing there.
//
// # Snapshots
//
// Founding.Tables names the rows that are the owner's state. A member that needs entries which the log has no more gets
// a snapshot: the rows, the configuration and the applied index of one moment (Storage.View), on a stream of its own
// (Options.SendSnapshot, Host.ReceiveSnapshot; bytes in snapshot.go). It is read completely, checked, and installed in
// one commit: old rows deleted, new ones put, log, configuration and applied index replaced. Then the owner gets
// Restored. Sender and receiver hold all rows in memory meanwhile, 256 MiB at most.
//
// # Sleeping and waking
//
// A hibernated group is one that was closed on all its members, who have agreed on it: a closed group costs nothing.
// To wake it one member opens it and calls Campaign; the others' hosts answer ErrNotOpen to what comes, upon which their
// carriers have it opened and deliver again. It need not be the one with the longest log: a member that has more, and is
// asked for its vote, stands itself. An election takes four fsyncs one after the other, the first entry two more. What a
// leader sent before it closed speaks for it to a member that is opened within the same milliseconds, for an election
// timeout.
//
// # Recovery
//
// Host.Recover makes the only member out of one that is left; see there what may be lost.
//
// # Proof
//
// TestSimulation runs whole clusters in virtual time, with region's rules of membership and world's state machines above
// the hosts, and replays a failing seed exactly (docs/simulation.md). TestChurn shrinks what it finds: random changes,
// crashes, full disks, lost, doubled and reordered messages and snapshots. TestHostileFrames, FuzzReceive and
// FuzzReceiveSnapshot stand for those who are not honest. tools/mutants.sh switches on seeded bugs, one for each trap, and
// shows that a test notices each.
package replica
