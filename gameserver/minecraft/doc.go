// Package minecraft serves clients of Minecraft Java 1.20.2: protocol 764
// (https://wiki.vg/index.php?title=Protocol&oldid=18641), without encryption. Packets have at most 64 KiB; a keep-alive
// must be answered within 30 s. Unknown packets are ignored.
//
// An Adapter makes a Client of each connection, which translates: packets of the client become messages of a session,
// and those of the session become packets (package games). A Client checks nothing that the session checks; it keeps
// what the other protocol needs:
//
//   - The client logs in, is configured, and then plays. A session begins with the login; what it sends until the client plays is kept.
//   - A client says which face of which block it has clicked, and with which slot, so the chunks in view are kept packed, with the changes
//     since, and so are the items at hand.
//   - A client shows what it has asked for until its request, by its number, is acknowledged. That is done when the session has answered
//     all requests up to it.
//   - A teleport has a number, which the client confirms. What it sends before is ignored.
//
// Goroutines: the session's reader calls Read, its writer Send, Flush and Close, and a third one Tick when no flush was
// one. The lock of a Client guards what they share, and is held while they write.
package minecraft
