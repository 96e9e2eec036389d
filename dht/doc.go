// Package dht is a node's part in the Kademlia network of one world. It stores two kinds of signed records under a
// prefix specific to the world, so that the nodes of two worlds never answer each other:
//
//	/chunk/<dx>,<dz>/<label>/<nonce>   which region covers a cell, signed by its leader
//	/chunk/catalog                     the same for the catalog
//	/player/<player id>                a player's last position, signed by the gateway that saved it
//
// Records are hints. A reader asks the peers named in a record, and these may disagree; the region's log is
// authoritative. Any node may sign a record that names itself, so a hint can also be wrong on purpose.
//
// Nodes that were cut off reconnect by themselves: DHT.Run keeps dialling bootstrap addresses and known peers, also
// while others are connected.
//
//	transport   the libp2p host: identity, connections, streams and requests between nodes
//	record      the signed bytes of records, and what makes one valid
//	redial      when to dial which peer again (a step machine)
//	address     multiaddrs
//
// A DHT may be used from many goroutines. It guards its state with a mutex named mu, and no goroutine waits while
// holding it. Only the goroutine of DHT.Run decides which peers to dial and when. Stop in this order: cancel DHT.Run
// and await it, DHT.Close, transport.Host.Close, and the storage last.
//
// Only cmd imports dht and transport. No package outside of dht imports libp2p, and no libp2p type appears in the
// exported signatures of dht.
package dht
