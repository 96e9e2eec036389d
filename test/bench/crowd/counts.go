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
	Landed   histogram.Histogram // seconds from when a player was to connect until the chunk under their feet was there
	Loaded   histogram.Histogram // and until all land in view was; of fresh players who are no samples

	// Observed by the samples.
	Samples int                 // in the world now
	Frames  uint64              // frames with moves, of all samples
	Gaps    histogram.Histogram // seconds from one of them to the next
	Delay   histogram.Histogram // seconds from sending a move to a sample's reading it
	Error   histogram.Histogram // blocks between where avatars are shown and where they are, at any time
	Failed  map[string]int      // why players could not join, or were lost
}

// clone returns an independent copy.
func (c Counts) clone() Counts {
	c.Late, c.Landed, c.Loaded = c.Late.Clone(), c.Landed.Clone(), c.Loaded.Clone()
	c.Gaps, c.Delay, c.Error, c.Failed = c.Gaps.Clone(), c.Delay.Clone(), c.Error.Clone(), maps.Clone(c.Failed)
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
	c.Late, c.Landed, c.Loaded = c.Late.Since(earlier.Late), c.Landed.Since(earlier.Landed), c.Loaded.Since(earlier.Loaded)
	c.Frames -= earlier.Frames
	c.Gaps = c.Gaps.Since(earlier.Gaps)
	c.Delay, c.Error = c.Delay.Since(earlier.Delay), c.Error.Since(earlier.Error)
	return c
}
