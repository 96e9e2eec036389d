// Package chaos tests, with real daemons, that no acknowledged edit is lost. It starts daemons on this machine, lets
// players edit through their gateways, injects faults, lets the cluster recover, reads the land at every gateway, and
// checks everything that players received against its own ledger. docs/reliability.md explains how to run it and read
// its findings.
//
// # What the history contains
//
// Players use the session protocol. Forty of them (at 200 edits/s) work in four regions that meet at a corner; each
// has a home gateway, so that every region is edited through every gateway. Those of a region work on the same site
// of 9×9×4 blocks at a time and race for some blocks of it. After 450 edits they move to the next site: most blocks
// are written a few times within seconds and then rest until the end, where a lost edit shows.
//
// An edit's interval runs from just before it is first sent until its ack is read. A player whose gateway dies, or
// does not answer for 8 s (half of the players wait forever instead), joins through another gateway and sends
// unanswered edits again, under the same sequence: one operation, however often it is sent. A player also follows the
// redirect of a gateway that shuts down. An acknowledged edit has taken effect within its interval. An edit that was
// refused on its first attempt has taken none. The code "unavailable" is not such a refusal: the protocol lets a
// client ask again, and players do. An edit that is never answered is unknown: it may take effect at any time after
// it was sent, or never. But once any player has received the change of an unknown edit, it has taken effect, and
// must stay.
//
// A gateway shows its mirror, which follows the region's leader. What it shows to a new session was confirmed by a
// majority of the region's members after the session asked, or the session is told that it may be old. So there are
// three kinds of reads, and changes that players receive:
//
//   - Final readings. After recovery, when every edit is answered, a new session at every gateway receives the whole
//     area. All must agree, and porcupine must find an order of each block's edits that ends with what they show.
//   - Intermediate readings. From time to time, while the cluster is healthy, the same is done during edits. Such a
//     reading is of some time between when its session was opened and its end.
//   - Joins. During the whole run, faults included, a new session joins at every gateway again and again, and receives the
//     whole area. No block may lack an edit that was acknowledged before the session began to join, unless the session was
//     told before that the land may be old.
//   - Changes that players receive. A block's edits put different blocks in turn, so a change identifies its edit, if
//     only one is possible. A change must have been asked for. Two changes must not arrive in an order that their
//     intervals exclude. An observer who receives changes before and after an acknowledged edit must not miss it,
//     since a view contains all changes of a chunk (except in its last 5 s, before the chunk is shown anew).
//
// Histories are checked per block with porcupine; one that is not legal is drawn.
//
// # Ownership
//
// A run is one goroutine, which injects the faults and owns the nodes. A scenario is a shape of cluster and a list of
// strikes (strike.go). A strike draws a fault: what to do, for how long, how to undo it, and what to measure meanwhile.
// That goroutine inflicts one after another. Each player is a goroutine, with one more that reads its connection;
// players.Writers.Stop awaits them. A goroutine for each gateway joins there. They share the Ledger and whether a Node
// serves. A slot separates concurrent runs on one machine. Its sweep removes what a killed run left: disks that hang,
// processes, mounts, loop devices, namespaces, files.
//
// It imports chunk, grid, testkit and wire only, so that it has no means that another client lacks. Package hostile,
// which attacks nodes, is made of what nodes are made of.
package chaos
