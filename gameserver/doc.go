// Package gameserver is the part of the daemon that serves players: the Gateway with its sessions, the original
// VoxelPopuli protocol, and the HTTP server that serves the browser client.
//
// Sessions and original connections are subscribers of package mirror, which subscribes to regions and holds the chunks
// in view. They never use regions directly.
//
// CBOR sessions receive moves from the frame loop: once a tick it updates the interest index, which holds all avatars
// in view of a session here, encodes the motion of each cell once for each tier, and writes one frame to each session
// (docs/adr/0011). JSON sessions and original clients receive moves from chunk deltas.
//
// Chat goes through the sequencers of package chat, where events wait for those that they follow: one for what arrives
// on subscriptions, whichever it is, and one for lines to the whole world, which other gateways send (world_chat.go).
//
// With an overlay other than relay, gateways send one another the moves of their players (package p2p).
// These updates are handled like a region's deltas, and take precedence over what regions send of
// the same avatars.
//
// Goroutines, all started and awaited by Gateway.Run: the frame loop; judgePlayers, after changes of the policy; the
// servers of other games; for each connection a reader, which owns the session, and a writer; those of chat, mirror,
// p2p, park, players and legacy; during shutdown the drain, with one goroutine for each session that it hands off.
//
// Locks, in the order in which they may be taken: park.Socket.mu, then those of legacy, then Gateway.mu, then those of
// mirror, then sharedIndex.mu or p2p.Driver.mu, then one of the leaves place.mu, lastNotice.mu, chat.Clock.mu,
// chat.Sequencer.mu, outbox.Outbox.mu, pendingEdits.mu, handoff.Targets.mu, admission.Limits.mu, players.Store.mu
// (under which its publisher's is taken) and park.Poller.mu. None is held while a goroutine waits. The order of the
// locks of legacy and of mirror is in their package documentation.
package gameserver
