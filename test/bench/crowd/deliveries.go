package crowd

import (
	"time"

	"github.com/voxelpopuli/voxeld/motion"
)

const (
	// deliveryHistory is the number of moves kept for a player to compare received moves with: at 20 a second, those of
	// the last 25 s. A move that arrives later counts as inexact.
	deliveryHistory = 512
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

// receive counts a move that a sample has received. The crowd's lock is held.
func (c *Crowd) receive(p *client, id string, pose motion.Pose, now time.Time) {
	if id == p.player {
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
		c.recordDelay(p, pose, now.Sub(sent))
	case repeated:
	}
}
