// Package classicube serves clients of ClassiCube and Minecraft Classic: protocol 7 with the Classic Protocol Extension
// (CPE): https://minecraft.wiki/w/Classic_server_protocol and https://wiki.vg/Classic_Protocol_Extension. login.go lists
// the extensions. Over TCP, and in binary WebSocket messages (subprotocol ClassiCube) on the same port. Unknown packets
// end the connection.
//
// An Adapter makes a Client of each connection, which translates: packets of the client become messages of a session,
// and those of the session become packets (package games). A Client checks nothing that the session checks; it keeps
// what the other protocol needs:
//
//   - Classic has finite levels. The client is sent a window of the world around the player, and another one when they come near its edge.
//     The chunks in view are kept packed, with the changes since.
//   - The client cannot be asked where it is in which level. After a new level, or a correction, what it sends is ignored until it says that
//     it is where it was put.
//   - Others are known by numbers of one byte. Whoever gets none is not shown.
//
// Goroutines: the session's reader calls Read, its writer Send, Flush and Close, and a third one Tick when no flush was
// one. The lock of a Client guards what they share, and is held while they write.
package classicube
