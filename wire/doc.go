// Package wire holds what the codecs of all messages share: the Error by which they refuse input, limits, CBOR and JSON
// decoders with strict checks, deflate, and the addresses of gateways. The messages are in three packages, by who
// speaks:
//
//	nodemsg      between nodes: links of gateways to regions, questions, raft frames, records in the DHT
//	sessionmsg   between a gateway and its clients, in voxeld's own protocol: JSON and CBOR
//	legacymsg    between a gateway and the clients of VoxelPopuli's protocol, and the handshake of the game port
//
// docs/protocol.md specifies the same for other implementations, with examples.
//
// The packages have no state, goroutine or socket; their functions are safe for concurrent use. They are floor 1: they
// import chunk, grid, motion and player, and every package above may import them.
//
// Every decoder checks sizes before it allocates, and refuses input with an *Error: a code for programs and a message
// for people.
package wire
