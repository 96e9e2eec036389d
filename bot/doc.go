// Package bot puts load on a world: it plays many simulated players over the real protocols, as any client
// would, and reports what they measured. It is the test client of VoxelPopuli (dissertation §3.4.3) with its
// three modes: all players in one chunk, players spread evenly over many chunks of one server, and players
// that wander through the network.
//
// A player speaks either the session protocol (join over TCP, JSON) or the original one (one connection per
// chunk, found through a dht connection). All randomness comes from the seed, so the same options walk the
// same way over the same land.
//
// A session's player whom a gateway sends on (Reconnect) goes on at another one as any client should: with the edits
// that were not answered.
//
// Each player is owned by one goroutine, which walks, edits and writes; one more goroutine per connection
// reads, stamps what arrives and hands over what matters for walking. All of them are awaited by Run. The
// meter and the stamps are the only things that players share.
//
// Who may import it: cmd. It imports chunk, grid, player and wire only, so that it can cheat in no way that
// another client could not.
package bot
