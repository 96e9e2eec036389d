// Package gameserver is the part of the daemon that serves players: the Gateway with its sessions, the original VoxelPopuli
// protocol, and the HTTP server that serves the browser client.
//
// A gateway subscribes to regions on behalf of its players, wherever these are led. It has one subscription for each region: one
// link to the leader, and a mirror of every chunk in view. The leader sends only edits; the terrain under them is generated here
// (docs/adr/0003). Sessions never use regions directly, only subscriptions.
//
// A subscriber receives the changes of one chunk in the order in which the region committed them: deltas and whole chunks are
// queued under the subscription's lock, and a whole chunk is queued only if it is of the newest version.
//
// CBOR sessions receive moves from the frame loop: once a tick it updates the interest index, which holds all avatars in view of
// a session here, encodes the motion of each cell once, and writes one frame to each session (docs/adr/0011). JSON sessions and
// original clients receive moves from chunk deltas.
//
// Chat goes through the sequencer of package chat, where events wait for those that they follow, whichever subscription they
// arrive on (docs/causality.md).
//
// With an overlay other than relay, gateways send one another the moves of their players (package p2p; docs/overlays.md). These updates
// are handled like a region's deltas, and take precedence over what regions send of the same avatars.
//
// Goroutines, all started and awaited by Gateway.Run: the frame loop; the chat sequencer; p2p, and its queues; for each
// connection a reader, which owns the session, and a writer; for each subscription a receiver and a sender; the builders, which
// generate terrain and encode chunks; those of the player store, of which one saves players and some publish them; the clock of
// original clients; during shutdown the drain, with one goroutine for each session that it hands off.
//
// Locks, in the order in which they may be taken: park.Socket.mu, then Gateway.mu, then legacyConn.mu, then subscription.mu, then
// sharedIndex.mu or p2p.Driver.mu, then one of the leaves session.mu, party.mu, chat.Clock.mu, chat.Sequencer.mu, outbox.mu,
// pendingEdits.mu, handoff.Targets.mu, admission.Limits.mu, jobs.mu, players.Store.mu and park.Poller.mu. None is held while a goroutine waits, except
// subscription.sending, which is locked before subscription.mu: the sender holds it while the link takes a message, and others
// only try to lock it.
//
// Only cmd imports this package.
package gameserver
