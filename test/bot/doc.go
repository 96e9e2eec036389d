// Package bot puts load on a world: it simulates many players over the real protocols, as any client would, and
// reports what they measured. It reproduces the test client of VoxelPopuli (dissertation §3.4.3) with its three
// modes: all players in one chunk, players spread evenly over many chunks of one server, and players that wander
// through the network.
//
// A player uses either the session protocol (JSON or CBOR, over a WebSocket as pages
// in Chromium do, or over TCP) or the original one (one connection per
// chunk, found through a dht connection). All randomness comes from the seed: the same options produce the same walk
// over the same land.
//
// When a gateway redirects a session (Reconnect), its player continues at another gateway as any client should, and
// sends the edits that were not answered again.
//
// Each player is owned by one goroutine, which walks, edits and writes. One more goroutine per connection reads,
// measures delays and passes on what the player needs. Run awaits all of them. Players share only the meter and the
// latency probes.
//
// Only cmd and test/bench/cmd may import it. It imports chunk, grid, player, testkit and wire only, so that it has no means that
// another client lacks.
package bot
