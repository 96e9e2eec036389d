package crowd

import (
	"time"

	"github.com/voxelpopuli/voxeld/motion"
)

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

const (
	// deliveryHistory is the number of moves kept for a player to compare received moves with: at 20 a second, those of
	// the last 25 s. A move that arrives later counts as inexact.
	deliveryHistory = 512
	// maxSamples is the number of bits in sentMove.received, one for each sample.
	maxSamples = 64
)

// receipt classifies a received move.
type receipt int

const (
	neverSent receipt = iota // the player did not send this position
	repeated                 // they sent it, and the sample has received it before
	delivered                // they sent it, and the sample receives it for the first time
)

// receive looks for the newest move with exactly this position that the sample has not received, and marks it as
// received. The sample is one bit. The yaw is not compared: servers keep it in a float32. If the move is delivered,
// sent is when the player sent it.
func (t *moveHistory) receive(pose motion.Pose, sample uint64) (r receipt, sent time.Time) {
	for i := range t.n {
		s := &t.at[(t.next-1-i+2*len(t.at))%len(t.at)]
		if s.pose.X != pose.X || s.pose.Y != pose.Y || s.pose.Z != pose.Z {
			continue
		}
		if s.received&sample == 0 {
			s.received |= sample
			return delivered, s.at
		}
		r = repeated
	}
	return r, sent
}

// due counts a move that a player has sent. The crowd's lock is held.
func (c *Crowd) due(p *client) {
	n := c.mu.Samples
	if p.sampler != nil {
		n--
	}
	c.mu.Deliveries.Due += uint64(n)
}

// receive counts a move that a sample has received. The crowd's lock is held.
func (c *Crowd) receive(p *client, id string, pose motion.Pose, now time.Time) {
	if id == p.id {
		return
	}
	c.mu.Deliveries.Received++
	r, sent := neverSent, time.Time{}
	if who := c.known[id]; who != nil {
		r, sent = who.history.receive(pose, p.sampler.bit)
	}
	switch r {
	case neverSent:
		c.mu.Deliveries.Inexact++
	case delivered:
		c.mu.Deliveries.Exact++
		c.mu.Delay[bandOf(distance(p.mover.pose, pose))].Add(now.Sub(sent).Seconds())
	case repeated:
	}
}
