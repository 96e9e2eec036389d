// Package chaos proves, with real daemons, that what was acknowledged is not lost. It starts some on this machine, lets
// players edit through their gateways, makes faults, lets everything heal, reads the land at every gateway, and judges
// what everybody was told against a ledger of its own. docs/reliability.md says how to run it and read its findings.
//
// # What the history contains
//
// Players speak the session protocol. Forty of them (at 200 edits/s) work in four regions that meet at a corner; each
// has a home gateway, so that every region is edited through every gateway. Those of a region work on the same plot of
// 9×9×4 blocks at a time and race for some blocks of it; after 450 edits they go on, so that most blocks are written a
// few times within seconds and then rest until the end, where a lost edit shows.
//
// An edit's interval runs from just before it is first sent until its ack is read. A player whose gateway dies, or does
// not answer for 8 s (of every two, one waits for ever), joins through another and sends what is unanswered again, under
// the same sequence: one operation, however often it is sent. He follows a gateway that goes away and says where to. What is acknowledged has taken effect within its interval.
// What was refused when it was sent for the first time has taken none; not counted so is "unavailable", after which
// the protocol lets a client ask again, as players do. What is never answered is unknown: it may take effect at any time after
// it was sent, or never. But an unknown edit whose change anybody was told of has happened by then, and must stay.
//
// The protocol has no linearizable read: a gateway shows its mirror, which follows the region's leader. Three things
// stand for reads:
//
//   - Final readings. When all is healed, and every edit answered, a new session at every gateway is shown the whole
//     area. All must agree, and porcupine must find an order of each block's edits that ends with what they show.
//   - Readings amidst. From time to time, when all is well, the same while players edit. Such a reading is of some time
//     between 2 s before its session was opened (a mirror may be behind) and its end.
//   - Changes that players are told of. A block's edits put different blocks in turn, so a change tells which edit it is
//     of, if only one can be meant. A change must have been asked for; two must not be told in an order that their
//     intervals exclude; and nobody who is told of changes before and after an acknowledged edit may miss it, since a view tells all
//     changes of a chunk (but for its last 5 s, before the chunk is shown anew).
//
// Histories are checked per block with porcupine; one that is not legal is drawn.
//
// # Who owns what
//
// A run is one goroutine, which makes the faults and owns the nodes. Each player is a goroutine, with one more that
// reads its connection; they are awaited by Writers.Stop. What they share is the Ledger and whether a Node serves.
// A slot keeps runs on one machine apart, and its sweep clears away what a killed run left: processes, mounts, loop
// devices, namespaces, files.
//
// Floor 6: only cmd/chaos imports it. It imports chunk, grid and wire only, so it can cheat in no way that another
// client could not.
package chaos
