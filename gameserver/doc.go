// Package gameserver is a daemon's side that faces players: the Gateway with its sessions, the original
// VoxelPopuli protocol, and the HTTP server that brings the browser its client.
//
// A gateway follows regions on behalf of its players, wherever they are led. For each followed region it
// has one feed: one link to the leader, and a mirror of every chunk that somebody here views. The leader
// sends only edits; the terrain under them is generated here (docs/adr/0003). Sessions never talk to
// regions, only to feeds.
//
// What a viewer is told of one chunk is in the order in which the region committed it: news and whole
// chunks are queued under the feed's lock, and a whole chunk is queued only if it is of the newest version.
//
// Sessions in CBOR learn of moves from the beat: once a tick it looks at the stage, on which all avatars are that
// somebody here sees, makes the motion of each cell once, and hands each session one frame (docs/adr/0011). Sessions in
// JSON and original clients learn of moves from the news.
//
// Chat goes through the talk, where lines wait for those that they follow, whichever feed brings them (docs/causality.md).
//
// With another overlay than relay, gateways tell one another how their players move (swarm; docs/overlays.md). What it tells
// goes the way of a region's news, and comes before what regions tell of the same avatars.
//
// Goroutines, all started and awaited by Gateway.Run: the beat; the talk; the swarm, and its lines; for each connection a reader, which owns the
// session, and a writer; for each feed one that receives and one that sends; the builders, which generate
// terrain and encode chunks; the keeper's, of which one saves players and some publish them; the clock of original
// clients; at the end the drain, with one for each session that it sends on.
//
// Locks, in the order in which they may be taken: Gateway.mu, then classic.mu, then feed.mu, then stage.mu or swarm.mu, then
// one of the leaves session.mu, party.mu, voice.mu, talk.mu, line.mu, outbox.mu, outstanding.mu, rooms.mu, jobs.mu and keeper.mu.
// None is held while anything waits, but feed.sending, which is locked before feed.mu: the feed's sender holds it while the
// link takes a message, and others only try to lock it.
//
// Only cmd imports this package.
package gameserver
