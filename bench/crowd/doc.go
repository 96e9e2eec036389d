// Package crowd plays thousands of lean players from one goroutine, so that a benchmark's players cost a fraction of
// what its server costs. They speak the real protocol, walk on the real land, and send moves that the server accepts;
// what makes them lean is that most of them do not look at what they are sent: they read it, count its bytes, and drop
// it. A few of them, the samples, decode every message, know whom they see where, and so measure for all: frames a
// second, how long a move takes to be seen, and how far those around them really are from where they are shown. That
// is possible because all players of a crowd are in one process: where each one really is, the crowd knows.
//
// A crowd may speak the original protocol instead (Options.Original). Its samples also compare each position that they
// receive with those that the player really sent: see Deliveries.
//
// Package bot plays each player in full, at about ten times the cost.
//
// All players belong to the goroutine of Crowd.Run, except while they join. Counts are read under a lock.
//
// Who may import it: bench/cmd.
package crowd
