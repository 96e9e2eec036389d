package crowd

import (
	"maps"

	"github.com/voxelpopuli/voxeld/test/testkit/histogram"
)

// nearby is the distance from a sample, in blocks, within which delays and position errors are counted.
const nearby = 16

// Counts are what a crowd has done and observed since it began.
type Counts struct {
	Players  int                 // in the world now
	Lost     int                 // lost the connection
	BytesIn  uint64              // read from sockets, of those in the world
	BytesOut uint64              // written to sockets
	Due      uint64              // moves that should have been sent by now
	Sent     uint64              // moves that were
	Blocked  uint64              // moves that the socket did not accept because its buffer was full
	Late     histogram.Histogram // seconds by which moves were sent too late, because the players' machine was busy

	// Observed by the samples.
	Samples    int                 // in the world now
	Frames     uint64              // frames with moves, of all samples
	Delay      histogram.Histogram // seconds from sending a move to a sample's reading it
	Error      histogram.Histogram // blocks between where avatars are shown and where they are, at any time
	Deliveries Deliveries          // of moves, in the original protocol
	Failed     map[string]int      // why players could not join, or were lost
}

// clone returns an independent copy.
func (c Counts) clone() Counts {
	c.Late, c.Delay, c.Error, c.Failed = c.Late.Clone(), c.Delay.Clone(), c.Error.Clone(), maps.Clone(c.Failed)
	return c
}

// Since returns what was counted after an earlier reading. Players, Lost, Samples and Failed are the current
// ones.
func (c Counts) Since(earlier Counts) Counts {
	c.BytesIn -= earlier.BytesIn
	c.BytesOut -= earlier.BytesOut
	c.Due -= earlier.Due
	c.Sent -= earlier.Sent
	c.Blocked -= earlier.Blocked
	c.Late = c.Late.Since(earlier.Late)
	c.Frames -= earlier.Frames
	c.Deliveries = c.Deliveries.Since(earlier.Deliveries)
	c.Delay, c.Error = c.Delay.Since(earlier.Delay), c.Error.Since(earlier.Error)
	return c
}

// Deliveries count how moves reached the samples. They are counted for the original protocol only, in which a server
// relays the positions that players sent.
type Deliveries struct {
	Due      uint64 // moves of other players, once for each sample in the world
	Exact    uint64 // of those, moves whose position a sample received; each at most once for each sample
	Received uint64 // moves of others that samples received
	Inexact  uint64 // of those, positions that the player did not send
}

// Delivered returns the share of moves that reached the samples exactly as sent; NaN if none was sent.
func (d Deliveries) Delivered() float64 { return float64(d.Exact) / float64(d.Due) }

// NotExact returns the share of received moves that nobody sent; NaN if none was received.
func (d Deliveries) NotExact() float64 { return float64(d.Inexact) / float64(d.Received) }

// Since returns what was counted after an earlier reading.
func (d Deliveries) Since(earlier Deliveries) Deliveries {
	return Deliveries{
		Due: d.Due - earlier.Due, Exact: d.Exact - earlier.Exact, Received: d.Received - earlier.Received, Inexact: d.Inexact - earlier.Inexact,
	}
}
