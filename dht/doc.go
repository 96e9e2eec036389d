// Package dht is a node's place in the network: its libp2p host, and the Kademlia table of one world.
//
// The Host carries the peer identity, listens on TCP and QUIC, and offers ordered streams (Handle, Open) and
// short questions (HandleAsk, Ask) between peers that have proved their keys to each other (noise, TLS 1.3).
// The DHT that joins it stores two kinds of signed records under a prefix of the world's own, so that the nodes
// of two worlds never answer each other:
//
//	/chunk/<dx>,<dz>/<label>/<nonce>   which region covers a cell, signed by its leader
//	/chunk/catalog                     the same for the catalog
//	/player/<player id>                where a player was last, signed by the gateway that saved it
//
// Records are hints. Whoever reads one asks the peers named in it, and these may disagree; the authority is in
// the region's log. Any node may sign a record that names itself, so a hint can be wrong out of malice too.
//
// Nodes that were cut off find back by themselves: DHT.Run dials bootstrap addresses and known peers again and
// again, also while others are connected.
//
// A Host and a DHT may be used from many goroutines. Each owns what it keeps behind a mutex named mu, and nothing
// waits while holding one; only the goroutine of DHT.Run knows whom to dial when. Stop in this order: cancel
// DHT.Run and await it, DHT.Close, Host.Close, and the storage last.
//
// Package region and cmd import dht. It is the only package that knows libp2p, and no libp2p type leaves it:
// peers are base58 ids, addresses are multiaddrs in text.
package dht
