package crowd

import (
	"maps"

	"github.com/voxelpopuli/voxeld/testkit/histogram"
)

// BandLimits are the upper bounds of the distance bands, in blocks from the sample, by which positions and delays are
// counted. One more band holds what is farther than the last.
var BandLimits = [...]float64{16, 32, 64}

// bands is the number of distance bands.
const bands = len(BandLimits) + 1

func bandOf(distance float64) int {
	for i, r := range BandLimits {
		if distance <= r {
			return i
		}
	}
	return bands - 1
}

// Counts are what a crowd has done and observed since it began.
type Counts struct {
	Players  int                 // in the world now
	Lost     int                 // lost the connection
	Joined   int                 // ever
	BytesIn  uint64              // read from sockets, of those in the world
	BytesOut uint64              // written to sockets
	Due      uint64              // moves that should have been sent by now
	Sent     uint64              // moves that were
	Blocked  uint64              // moves that the socket did not accept because its buffer was full
	Late     histogram.Histogram // seconds by which moves were sent too late, because the players' machine was busy

	// Observed by the samples.
	Samples    int                        // in the world now
	Frames     uint64                     // frames with moves, of all samples
	Gap        histogram.Histogram        // seconds between two of them
	Delay      [bands]histogram.Histogram // seconds from sending a move to a sample's reading it, by distance
	Error      [bands]histogram.Histogram // blocks between where avatars are shown and where they are, at any time, by distance
	Unseen     [bands]uint64              // checks that found a player whom the sample was never shown, by distance
	Looks      [bands]uint64              // all checks
	Deliveries Deliveries                 // of moves, in the original protocol
	Failed     map[string]int             // why players could not join, or were lost
}

// clone returns an independent copy.
func (c Counts) clone() Counts {
	c.Late, c.Gap, c.Failed = c.Late.Clone(), c.Gap.Clone(), maps.Clone(c.Failed)
	for i := range bands {
		c.Delay[i], c.Error[i] = c.Delay[i].Clone(), c.Error[i].Clone()
	}
	return c
}

// Since returns what was counted after an earlier reading. Players, Lost, Joined, Samples and Failed are the current
// ones.
func (c Counts) Since(earlier Counts) Counts {
	c.BytesIn -= earlier.BytesIn
	c.BytesOut -= earlier.BytesOut
	c.Due -= earlier.Due
	c.Sent -= earlier.Sent
	c.Blocked -= earlier.Blocked
	c.Late = c.Late.Since(earlier.Late)
	c.Frames -= earlier.Frames
	c.Gap = c.Gap.Since(earlier.Gap)
	c.Deliveries = c.Deliveries.Since(earlier.Deliveries)
	for i := range bands {
		c.Delay[i] = c.Delay[i].Since(earlier.Delay[i])
		c.Error[i] = c.Error[i].Since(earlier.Error[i])
		c.Unseen[i] -= earlier.Unseen[i]
		c.Looks[i] -= earlier.Looks[i]
	}
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
