// Package replica keeps the regions' logs: it runs one raft group (go.etcd.io/raft/v3) per region, and makes the
// commits of the node. A region proposes entries, and receives them back in order once they are safe.
//
// # Ownership
//
// There is one Host per daemon. One goroutine, inside Host.Run, owns the raft state of all groups. Its loop takes the
// input (proposals, reports of applied entries, raft messages, ticks, opens and closes), steps the groups, collects the
// writes of all of them, makes these durable in ONE storage transaction (one fsync), and only then sends messages and
// delivers committed entries. Entries for followers are sent before the commit: they promise nothing on behalf of this
// node (sendAhead). While an fsync runs the inbox fills, which results in group commit.
// A Group is a handle for its owner (one region's goroutine). Its methods may be called from any goroutine. None but
// Close waits for the disk, and none but ReadIndex for other members.
//
// It imports kv, and no package but this one and its subpackages imports raft; no raft type is exported. Package
// raftlog has the layout of the tables.
//
// # Guarantees
//
//   - Committed is delivered after the entry is on the disks of a majority, and on this node's disk in any case (so a
//     group of one never acknowledges before its own fsync, etcd issue 14370). Indexes only grow; every committed
//     entry comes exactly once per Open, from AppliedIndex()+1 on, but for those that a Restored stands for.
//   - For every entry that Propose accepted there follows either a Committed, or a Leadership that differs from the
//     previous one (Self false, or another Term), or a Failed. After one of the latter two the outcome is unknown: the
//     entry may still be committed if it had reached another member.
//   - Leadership{Self: true} is delivered behind every entry committed before this node took over: an owner that has
//     applied what came before it has the newest state.
//   - The writes passed to Group.ReportApplied are stored together with the applied index in one transaction, in the
//     order of the calls, with the next fsync and after 50 ms at the latest. After a crash the owner's tables contain
//     exactly the entries up to AppliedIndex(), and the rest is delivered again.
//
// # When storage refuses
//
// If a commit fails (a full disk), nothing of it is acknowledged. All groups stall: each owner gets Leadership with
// Self false and a Cause, and Propose returns ErrStorage with the reason. Everything not yet durable is discarded: a
// group's memory returns to what is stored, as if the process had restarted, except that the owner's applied writes are
// kept. The host retries every 500 ms. Once 256 KiB can be written the groups continue, and a Leadership reports that.
// Owners need not reload.
//
// If the storage works again but still refuses one group's writes, only that group gets Failed. A group gets Failed at
// once if the commit was to replace stored data by a snapshot or by another leader's entries: it is unknown then which
// of the two is on the disk, so its owner opens it again. The storage decides whether a success may follow a failed
// fsync; package store refuses all later writes.
//
// # When storage does not answer
//
// While a commit is under way Run does nothing else: no promise may leave the node before it is stored. If the commit
// hangs, the others elect leaders without this node, and it does not learn of them: Leadership{Self: true} may be
// outdated. Hung reports that, without Run. An owner must not show what it has as the newest state then. Afterwards
// raft decides by itself who leads.
//
// # Members
//
// AddLearner, Promote and Remove change one replica at a time, in entries of the log. A change is in force when it is
// committed. Configured reports it, in log order. It is stored in the transaction that stores an applied index at or
// behind its entry. So a restart resumes with the configuration that belongs to its applied index, and then applies the
// later ones again. All members alike refuse a change that does not fit the configuration in force (its replica id was
// given out, its replica is gone). Replica ids grow with the log and are never used again; the tombstone of a removed
// replica keeps a node from joining under that id or an earlier one.
//
//   - Growing: AddLearner on the leader; on the new node, after Configured, Join with the id in it; Promote (ErrBehind
//     until the learner has nearly all entries).
//   - Shrinking: Remove on the leader, which cannot remove itself (Transfer first). A member informed of its removal
//     gets Removed; its owner closes the group and calls Host.Remove, which leaves the tombstone. The message may be
//     lost, and nothing else is sent to a removed member: the owner of a group that has had no leader for long asks an
//     authority.
//   - A node that was removed and added again without noticing gets messages for its later replica: Receive returns
//     ErrReplaced.
//   - A node that has lost its disk must not join under its old id, because its promises are lost. Remove it, then add
//     it.
//
// Receive accepts messages from the committed members, and from those added by a change in this node's log that is not
// yet known to be committed. Otherwise, if a leader died while a member was being added, the surviving members could
// refuse each other's messages. A member that was cut off over several changes may still not recognize the leader:
// Receive returns ErrNotMember, its owner asks an authority, and passes the answer to TrustMembers.
//
// One case is left to operators. Of two members, one proposes to remove the other and loses its leadership to it; the
// other commits the change, and its message about that (sent once) is lost. The remaining member then waits for a vote
// that never comes. Recover helps, and loses nothing in this case.
//
// # Snapshots
//
// Founding.Tables selects the rows that are the owner's state. A member that needs entries no longer in the log gets a
// snapshot: the rows, the configuration and the applied index of one moment (Storage.View), on a stream of its own
// (Options.SendSnapshot, Host.ReceiveSnapshot; format in package raftframe). It is read completely, checked, and
// installed in one commit: old rows deleted, new ones put, log, configuration and applied index replaced. Then the
// owner gets Restored. Sender and receiver hold all rows in memory meanwhile, 256 MiB at most.
//
// # Hibernation
//
// A hibernated group was closed on all its members, by agreement: a closed group costs nothing. To wake it, one member
// opens it and calls Campaign. The other hosts return ErrNotOpen for incoming messages; their transports then have the
// group opened and deliver the messages again. The first member need not have the longest log: a member that has more
// entries, and is asked for its vote, campaigns itself. An election takes four fsyncs one after the other, the first
// entry two more. Messages that a leader sent before it closed still count, for an election timeout, for a member that
// is opened within the same milliseconds.
//
// # Recovery
//
// Host.Recover makes one surviving member the only one; see there what may be lost.
//
// # Tests
//
// TestSimulation runs whole clusters in virtual time, with region's membership rules and world's state machines on top
// of the hosts, and replays a failing seed exactly:
//
//	make simulate SEEDS=1-100 MINUTES=60      # virtual minutes for each seed
//	go test ./replica -run '^TestSimulation$' -v -simulation.seeds=7 -simulation.minutes=60 -simulation.trace=/tmp/trace
//
// Five nodes hold two to four cells, in which four players build and read. Storms of a minute alternate with peace:
// crashes at any point of a commit or snapshot, lost machines, partitions, lost, doubled and reordered messages, full
// and slow disks, pauses, clocks at 0.4 to 2.4 times the speed, late invitations, hibernation, and disks that are put
// back to earlier copies. Always, members get the same entries at the same indexes; stored rows are what the applied
// entries make; an edit is applied once; a term has one leader; replica ids are used once; the stored configuration is
// not ahead of the applied index; a cell has one region; reads are linearizable. Within 60 s of a storm's end every
// player has built and read in every cell, every group has its members on the nearest nodes and no learners, and the
// catalog lists them. At the end porcupine finds an order for each block's history. Short forms stand for the region's
// actor, supervisor and transport, players, gateways, and the catalog's answers: so it cannot detect bugs about lying
// members, members confirmed within seconds, repeated reads, the goroutines of region, libp2p, bbolt or the kernel.
//
// TestChurn shrinks its failures: random
// changes, crashes, full disks, and lost, duplicated and reordered messages and snapshots. TestHostileFrames,
// FuzzReceive and FuzzReceiveSnapshot cover dishonest members. tools/mutants.sh switches on seeded bugs, one for each
// trap, and checks that a test detects each.
package replica
