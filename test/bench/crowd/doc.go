// Package crowd plays thousands of lightweight players from one goroutine, so that a benchmark's players cost a
// fraction of what its server costs. They use the real protocol, walk on the real land, and send moves that the server
// accepts. They are cheap because most of them do not decode what they receive: they read it, count its bytes, and drop
// it. A few of them, the samples, decode every message and measure for all: frames a second, the delay until a move is
// seen, and the distance between where avatars are shown and where they are. All players of a crowd are in one process,
// so the true positions are at hand.
//
// What players say is a protocol, and how it is framed on the connection is a sessionclient.Carrier; nothing else here
// depends on either. Package bot simulates each player in full, at about ten times the cost.
//
// All players belong to the goroutine of Crowd.Run, except while they join. Counts are read under a lock.
package crowd
