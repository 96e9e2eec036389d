// Package dht connects a node to the network: its libp2p host, and the Kademlia table of one world.
//
// The Host holds the peer identity and listens on TCP and QUIC. It offers ordered streams (Handle, Open) and short
// questions (HandleAsk, Ask) between peers that have proved their keys to each other (noise, TLS 1.3). The DHT on top of
// it stores two kinds of signed records under a prefix specific to the world, so that the nodes of two worlds never
// answer each other:
//
//	/chunk/<dx>,<dz>/<label>/<nonce>   which region covers a cell, signed by its leader
//	/chunk/catalog                     the same for the catalog
//	/player/<player id>                a player's last position, signed by the gateway that saved it
//
// Records are hints. A reader asks the peers named in a record, and these may disagree; the region's log is
// authoritative. Any node may sign a record that names itself, so a hint can also be wrong on purpose.
//
// Nodes that were cut off reconnect by themselves: DHT.Run keeps dialling bootstrap addresses and known peers, also while
// others are connected.
//
// A Host and a DHT may be used from many goroutines. Each guards its state with a mutex named mu, and no goroutine waits
// while holding one. Only the goroutine of DHT.Run decides which peers to dial and when. Stop in this order: cancel
// DHT.Run and await it, DHT.Close, Host.Close, and the storage last.
//
// Packages region and cmd import dht. It is the only package that imports libp2p, and no libp2p type appears in its
// exported signatures.
package dht
