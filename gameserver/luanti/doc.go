// Package luanti serves clients of Luanti, once called Minetest: network protocol 39, which versions 5.6 to 5.15 speak
// (https://github.com/luanti-org/luanti/blob/5.6.1/src/network/networkprotocol.h), over UDP, with map blocks of version
// 28. Datagrams have at most 1,200 bytes, packets 16 KiB. The block at X, Y, Z is node X−x₀, Y, z₀−Z−1, where x₀ and z₀
// are the multiples of 16,384 nearest to where the player joined. Unknown packets are ignored.
//
// A Listener gives UDP peers as connections that carry whole packets: what one Write writes is what one Read of the
// other side returns, in order. An Adapter makes a Client of each, which translates: packets of the client become
// messages of a session, and those of the session become packets (package games). A Client checks nothing that the
// session checks; it keeps what the other protocol needs:
//
//   - An address gets no memory before it has sent back a number that was sent to it, and that answer is no longer than the question.
//   - The game's Z runs the other way: its space is left-handed. Blocks have their middle at whole numbers, and places are in tenths.
//   - Places have 16 bits. The client's origin is near where the player joins; far from there they are asked to join again.
//   - The client is sent columns of 16³ blocks when it has the definitions of nodes, the nearest first, as fast as it acknowledges them. The
//     chunks in view are kept packed, with the changes since.
//   - The client cannot be asked where it is. After a correction, what it sends is ignored until it says that it is where it was put.
//
// Goroutines: the session's reader calls Read, its writer Send, Flush and Close, and a third one Tick when no flush was
// one. The lock of a Client guards what they share. A Listener has two of its own: one reads the socket, and one sends
// again what was not acknowledged.
package luanti
